/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Several reads and writes of a file at once, by io_uring. By its system calls: of liburing, which
 * not every machine has, nothing else would be needed.
 */
#ifndef PVAS_FAR_RING_H
#define PVAS_FAR_RING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { FAR_RING_DEPTH = 32 };

/**
 * struct far_transfer - one of them
 * @write:	else it reads
 * @buf, @size, @at: memory, bytes, and where they are in the file
 * @done:	bytes, fewer if the rest must be tried in another way; or a negative errno value
 */
struct far_transfer {
	int write;
	void *buf;
	uint32_t size;
	off_t at;
	int32_t done;
};

/** struct far_ring - a ring; one thread at a time uses it */
struct far_ring {
	int fd;
	uint32_t *sq_head, *sq_tail, *sq_mask, *sq_array;
	uint32_t *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	void *rings;
	size_t rings_size, sqes_size;
};

/** far_ring_open - 0, or a negative errno value where the kernel or a sandbox forbids it */
int far_ring_open(struct far_ring *ring);
void far_ring_close(struct far_ring *ring);

/**
 * far_ring_run - all @count (at most FAR_RING_DEPTH) transfers of the file @fd
 *
 * Return: 0; a negative errno value if the kernel starts none any more: those not started have
 * done nothing, and the ring is of no more use.
 */
int far_ring_run(struct far_ring *ring, int fd, struct far_transfer *transfers,
		 unsigned int count);

#endif
