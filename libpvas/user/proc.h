/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The user backend: files of a process in /proc (proc.c). */
#ifndef PVAS_USER_PROC_H
#define PVAS_USER_PROC_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct statx;

/* Before all others, when the space is made; -errno with the text set */
int user_proc_begin(void);
void user_proc_end(void);
/* In a fork child that does not have it */
void user_proc_forget(void);
/* The directory */
int user_proc_fd(void);
/* Has the thread the root in which this was found as /proc? 0: perhaps. */
int user_proc_in_root(pid_t tid);

/* Open /proc/TID/NAME. Returns a descriptor, or -errno. */
int user_proc_open(pid_t tid, const char *name, int flags);
/* Status of the file that the link refers to, without asking its server: 0 or -errno */
int user_proc_statx(pid_t tid, const char *name, struct statx *st);
/* The text of the link, cut to @size. Its length, or -errno: then it is empty. */
ssize_t user_proc_link(pid_t tid, const char *name, char *text, size_t size);

/*
 * Read that file as a string, cut to @size. Returns its length, or -errno: then the string
 * is empty.
 */
ssize_t user_proc_read(pid_t tid, const char *name, char *text, size_t size);

struct user_mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset;	/* in the file */
	int writable;
};

/*
 * The caller's own mappings: a descriptor, or -errno. Not /proc/self/maps, which is empty
 * once the first thread has ended by pthread_exit().
 */
int user_proc_own_maps(void);
/* The same to read from; NULL and errno */
FILE *user_maps_open(void);

/* Read the next mapping from an open /proc/PID/maps. Returns 0 if there is none. */
int user_maps_next(FILE *maps, struct user_mapping *m);

/*
 * The first mapping that ends above @addr, by the descriptor of such a file: 0, or -errno, for
 * example if the kernel can't tell (before Linux 6.11)
 */
int user_maps_query(int maps, uint64_t addr, uint64_t *start, uint64_t *end);

/* Of the caller's own: is all of this in one mapping? Is there none? No, if one can't tell. */
int user_maps_is_one(uint64_t addr, uint64_t len);
int user_maps_is_free(uint64_t from, uint64_t to);

#endif /* PVAS_USER_PROC_H */
