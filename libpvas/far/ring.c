// SPDX-License-Identifier: LGPL-2.1-or-later
/* Several reads and writes at once: see ring.h. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/io_uring.h>

#include "ring.h"

static int enter(const struct far_ring *r, unsigned int submit, unsigned int wait)
{
	return (int)syscall(__NR_io_uring_enter, r->fd, submit, wait, IORING_ENTER_GETEVENTS,
			    NULL, 0);
}

static void *map(int fd, size_t size, off_t what)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);

	return p == MAP_FAILED ? NULL : p;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Both rings are one mapping since Linux 5.4. */
static int map_rings(struct far_ring *r, const struct io_uring_params *p)
{
	char *base;

	r->rings_size = larger(p->sq_off.array + p->sq_entries * sizeof(uint32_t),
			       p->cq_off.cqes + p->cq_entries * sizeof(*r->cqes));
	r->sqes_size = p->sq_entries * sizeof(*r->sqes);
	r->rings = base = map(r->fd, r->rings_size, IORING_OFF_SQ_RING);
	r->sqes = map(r->fd, r->sqes_size, IORING_OFF_SQES);
	if (!r->rings || !r->sqes)
		return -ENOMEM;
	/* A child has a ring of its parent's no more than far memory. */
	if (madvise(r->rings, r->rings_size, MADV_DONTFORK) ||
	    madvise(r->sqes, r->sqes_size, MADV_DONTFORK))
		return -errno;
	r->sq_head = (uint32_t *)(base + p->sq_off.head);
	r->sq_tail = (uint32_t *)(base + p->sq_off.tail);
	r->sq_mask = (uint32_t *)(base + p->sq_off.ring_mask);
	r->sq_array = (uint32_t *)(base + p->sq_off.array);
	r->cq_head = (uint32_t *)(base + p->cq_off.head);
	r->cq_tail = (uint32_t *)(base + p->cq_off.tail);
	r->cq_mask = (uint32_t *)(base + p->cq_off.ring_mask);
	r->cqes = (struct io_uring_cqe *)(base + p->cq_off.cqes);
	return 0;
}

int far_ring_open(struct far_ring *r)
{
	struct io_uring_params p = { 0 };
	int err;

	memset(r, 0, sizeof(*r));
	r->fd = (int)syscall(__NR_io_uring_setup, FAR_RING_DEPTH, &p);
	if (r->fd < 0)
		return -errno;
	err = p.features & IORING_FEAT_SINGLE_MMAP && p.features & IORING_FEAT_NODROP ?
	      map_rings(r, &p) : -ENOSYS;
	if (err)
		far_ring_close(r);
	return err;
}

void far_ring_close(struct far_ring *r)
{
	if (r->rings)
		munmap(r->rings, r->rings_size);
	if (r->sqes)
		munmap(r->sqes, r->sqes_size);
	close(r->fd);
}

/* Only this thread writes the tail, and the kernel reads it in enter() only. */
static void queue(struct far_ring *r, int fd, const struct far_transfer *t, unsigned int number)
{
	uint32_t tail = *r->sq_tail, i = tail & *r->sq_mask;

	r->sqes[i] = (struct io_uring_sqe){
		.opcode = t->write ? IORING_OP_WRITE : IORING_OP_READ,
		.fd = fd,
		.addr = (uintptr_t)t->buf,
		.len = t->size,
		.off = (uint64_t)t->at,
		.user_data = number,
	};
	r->sq_array[i] = i;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
}

/* Take the results of those that have ended. Returns how many they are. */
static unsigned int reap(struct far_ring *r, struct far_transfer *transfers, unsigned int count)
{
	uint32_t head = *r->cq_head, tail = __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE);
	const struct io_uring_cqe *c;
	unsigned int n = 0;

	for (; head != tail; head++, n++) {
		c = &r->cqes[head & *r->cq_mask];
		if (c->user_data < count)
			transfers[c->user_data].done = c->res;
	}
	__atomic_store_n(r->cq_head, head, __ATOMIC_RELEASE);
	return n;
}

/* The kernel takes no more: take those back that it has not seen. Returns how many. */
static unsigned int withdraw(struct far_ring *r)
{
	uint32_t head = __atomic_load_n(r->sq_head, __ATOMIC_ACQUIRE), left = *r->sq_tail - head;

	__atomic_store_n(r->sq_tail, head, __ATOMIC_RELEASE);
	return left;
}

int far_ring_run(struct far_ring *r, int fd, struct far_transfer *transfers, unsigned int count)
{
	const struct timespec moment = { 0, 100000 };
	unsigned int i, waiting = 0, started = count;
	int err = 0, n;

	for (i = 0; i < count; i++) {
		transfers[i].done = 0;
		queue(r, fd, &transfers[i], i);
	}
	for (; waiting < started; waiting += reap(r, transfers, count)) {
		n = enter(r, *r->sq_tail - __atomic_load_n(r->sq_head, __ATOMIC_ACQUIRE),
			  started - waiting);
		if (n >= 0 || errno == EINTR)
			continue;
		if (!err)
			err = -errno;
		started -= withdraw(r);
		/* Their buffers are the kernel's until they have ended, whatever is forbidden. */
		nanosleep(&moment, NULL);
	}
	return err;
}
