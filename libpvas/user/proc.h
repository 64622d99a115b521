/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The user backend: files of a process in /proc (proc.c). */
#ifndef PVAS_USER_PROC_H
#define PVAS_USER_PROC_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Open /proc/TID/NAME. Returns a descriptor, or -errno. */
int user_proc_open(pid_t tid, const char *name, int flags);

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

/* Not /proc/self/maps, which is empty once the first thread has ended by pthread_exit() */
#define OWN_MAPS	"/proc/thread-self/maps"

/* Read the next mapping from an open /proc/PID/maps. Returns 0 if there is none. */
int user_maps_next(FILE *maps, struct user_mapping *m);

#endif /* PVAS_USER_PROC_H */
