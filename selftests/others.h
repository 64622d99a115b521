/* SPDX-License-Identifier: GPL-2.0-only */
/* A peer for a task to attack, and what of the space it may not change. */
#ifndef PVAS_TEST_OTHERS_H
#define PVAS_TEST_OTHERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pvas_test.h"

struct io_uring_sqe;

#define TASK_MAX	((1UL << 47) - 4096)	/* the end of user space */
#define PEER_PAGES	4U			/* each has PEER_BYTE all over */
#define PEER_BYTE	7

struct others_job {
	struct pvas_space *space;
	pid_t peer;
	int up[2], down[2];
};

/* A peer at index 1 of @space; 0 or -errno */
int others_start(struct others_job *job, struct pvas_space *space);
/* Exit status of the task function @name, as its upper neighbour */
int others_attack(struct others_job *job, const char *name);
/* The peer's own verdict on its memory */
int others_end(struct others_job *job);

/* ---- in the attacking task ---- */

/* Where the peer's pages are, and its pid */
uintptr_t others_peer(void);
pid_t others_pid(void);
void others_remember(void);
/* Has a byte of the peer's pages changed? */
bool others_bytes_changed(void);
/* Or a mapping outside of our partition, its rights, flags or locked pages? */
bool others_maps_changed(void);
/* Is one of them registered with a userfaultfd? */
bool others_watched(void);
/* A userfaultfd, ready for use, or -1 */
int others_uffd(void);
/* An io_uring, or -1; one request, which goes on, or is done, with its result. 0 or -errno */
int ring_open(void);
long ring_begin(int fd, const struct io_uring_sqe *sqe);
long ring_do(int fd, const struct io_uring_sqe *sqe);

#endif /* PVAS_TEST_OTHERS_H */
