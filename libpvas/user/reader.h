/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* User backend: the memory and files of callers, see reader.c. */
#ifndef PVAS_USER_READER_H
#define PVAS_USER_READER_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

struct user_space;

#define USER_HUNG_MAX	64	/* readers that nobody waits for */

/**
 * struct user_hung - a reader that waits for a server although its caller is dead
 * @connection:	to it, as long as it exists
 * @owner:	whose call that was, see user_request_owner()
 */
struct user_hung {
	int connection;
	int64_t owner;
};

/**
 * struct user_readers - the processes that read
 * @pid:	the first one, 0 if there is none
 * @connection:	to it, in the workers' table of descriptors; -1 if there is none
 * @pidfd:	of it, likewise
 * @since:	when it began
 * @lock:	held while it begins, or makes another one
 * @hung_lock:	protects the rest
 * @hung:	those that nobody waits for
 * @nr_hung:	number of @hung
 */
struct user_readers {
	pid_t pid;
	int connection;
	int pidfd;
	int64_t since;
	pthread_mutex_t lock;
	pthread_mutex_t hung_lock;
	struct user_hung hung[USER_HUNG_MAX];
	unsigned int nr_hung;
};

/* Before the place of the space is chosen. 0 or -ENOMEM */
int user_reader_begin(void);

/* In a worker, when a task's memory can't be left out of copies from now on; without a lock */
void user_reader_before_exempt(struct user_space *u);

/* In the pool's thread */
void user_reader_stop(struct user_space *u);

/*
 * In a helper: copy from or to the memory of the current request's caller, which is not ours.
 * The number of bytes; -EPERM if this process has no right to it, or why there is no reader.
 */
ssize_t user_reader_read(pid_t tid, uint64_t from, void *to, size_t len);
ssize_t user_reader_write(pid_t tid, uint64_t to, const void *from, size_t len);

/*
 * In a worker or helper: the file system (statfs.f_type) of /proc/TID/NAME; or of @below, in the
 * directory that this is, with that as root and without links. -errno if it can't be told.
 */
int64_t user_reader_type(pid_t tid, const char *name, const char *below);

/*
 * In a worker or helper: begin to open /proc/TID/fd/FD, with the first flags or, if they are not 0,
 * with the second ones. Returns the connection on which the descriptor comes, or -errno. Afterwards
 * user_reader_leave().
 */
int user_reader_open(pid_t tid, int fd, const int flags[2]);

/* The descriptor, or -errno. -EINTR: it may still come. */
int user_reader_take(int from);

/* In a helper: the request is handled. */
void user_reader_done(void);

/* In a worker or helper that ends */
void user_reader_leave(void);

/* Processor time in ns that this helper's reader has used since this was asked last */
uint64_t user_reader_cost(void);

/* ---- hung.c ---- */

/* Whether there is room for one more of this owner's; then its connection is kept here. */
int user_hung_add(struct user_readers *r, int connection, int64_t owner);

/* Give up all connections. */
void user_hung_end(struct user_readers *r);

#endif /* PVAS_USER_READER_H */
