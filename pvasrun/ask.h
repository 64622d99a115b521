/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A child that reads in pvasrun's place where read() may never return: files of /proc wait for
 * an execve(2) of that process that has begun, and for its pages; other users' programs can be
 * on a file server that doesn't answer. Nobody waits for the child.
 */
#ifndef PVASRUN_ASK_H
#define PVASRUN_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* fork(2), but the parent gets no signal when the child ends, and wait(2) needs __WALL. */
pid_t fork_without_signal(void);

/*
 * Children unmap their copy of this memory first. With the user backend, that of all tasks is in
 * pvasrun's address space.
 */
void ask_without(void *begin, size_t length);

struct ask {
	pid_t child;
	int from;
};

/*
 * Runs answer(@about) in a child, which writes its answers to descriptor 0 and has no other.
 * It may use calls of the kernel only: pvasrun may have other threads, which held locks.
 * Returns 0 or -errno.
 */
int ask_begin(struct ask *ask, void (*answer)(const void *about), const void *about);

/*
 * Reads an answer of @len bytes. False if it doesn't come in *@patience milliseconds, from which
 * the time is taken that it took: several questions can share them.
 */
bool ask_read(const struct ask *ask, void *answer, size_t len, int64_t *patience);

/* Ends the child. One that can't be killed is left to init. */
void ask_end(struct ask *ask);

#endif
