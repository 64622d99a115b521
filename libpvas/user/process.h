/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* User backend: a task's process, and the supervisor's events (process.c). */
#ifndef PVAS_USER_PROCESS_H
#define PVAS_USER_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

struct user_part;
struct user_space;

/* Mark a file that has just been opened as the space's, of this process. Returns 0 in a sandbox. */
int user_file_mark(int fd);

/* Is a file without a mark none of a space's? */
int user_file_marks_tell(void);

/* Is the file that has this number now so marked, by this process or by @pid? */
int user_file_is_ours(int fd);
int user_file_is_of(int fd, pid_t pid);

/* Its server is not asked. */
int user_file_is_regular(int fd);

/* Wake the supervisor, from a thread that has its descriptors: this one, or another one. */
int user_try_wake(struct user_space *u);
void user_wake(struct user_space *u);

/* The supervisor waits for @fd as event @id. 0 or -errno. */
int user_watch(struct user_space *u, int fd, uint32_t id);

/* The descriptor @fd is the pidfd of a task, or no longer. */
void user_pidfd_note(struct user_space *u, int fd, int there);

/* Has the process behind a pidfd ended? No, if the application has closed it. */
int user_pidfd_dead(int pidfd);

/* Has this child of the launcher ended? Needs no descriptor. */
int user_child_dead(pid_t pid);

/*
 * Kill a task that has not been reaped a moment ago, by its pidfd or, if the application has
 * closed that or a sandbox forbids the call, by its number. 0 or -errno.
 */
long user_kill(const struct user_part *p);

/* A partition has no process any more. Under user_space.lock. */
void user_release_process(struct user_space *u, struct user_part *p);

#endif /* PVAS_USER_PROCESS_H */
