// SPDX-License-Identifier: GPL-2.0-only
/* io_uring by its system calls alone: calls that pass by the system calls' entries. */
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "hostile.h"

bool ring_make(struct actor *a, unsigned int flags)
{
	struct io_uring_params p = { .flags = flags, .sq_thread_idle = 2000 };
	struct ring *r = &a->ring;
	long fd, at, sqes;

	fd = CALL(a, SYS_io_uring_setup, 8, &p);
	if (fd < 0)
		return false;
	keep_fd(a, fd);
	r->fd = fd;
	r->entries = p.sq_entries;
	r->sq_len = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
	at = CALL(a, SYS_mmap, 0, r->sq_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
		  IORING_OFF_SQ_RING);
	sqes = CALL(a, SYS_mmap, 0, p.sq_entries * sizeof(struct io_uring_sqe),
		    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQES);
	if ((unsigned long)at > -PAGE || (unsigned long)sqes > -PAGE) {
		r->fd = -1;
		return false;
	}
	r->sq = (char *)at;
	r->sqes = (char *)sqes;
	r->off_tail = p.sq_off.tail;
	r->off_mask = p.sq_off.ring_mask;
	r->off_array = p.sq_off.array;
	return true;
}

static const unsigned char opcodes[] = {
	IORING_OP_MADVISE, IORING_OP_MADVISE, IORING_OP_MADVISE, IORING_OP_FADVISE,
	IORING_OP_NOP, IORING_OP_CLOSE, IORING_OP_MSG_RING, IORING_OP_OPENAT, IORING_OP_SPLICE,
	IORING_OP_POLL_ADD, IORING_OP_TIMEOUT, IORING_OP_FILES_UPDATE,
};

static void fill_sqe(struct actor *a, struct io_uring_sqe *e)
{
	static const unsigned char advice[] = { MADV_DONTNEED, MADV_DONTNEED, MADV_FREE, MADV_COLD,
						MADV_WIPEONFORK, MADV_PAGEOUT };

	memset(e, 0, sizeof(*e));
	e->opcode = opcodes[pick(a, ARRAY(opcodes))];
	e->flags = pick(a, 6) ? 0 : 1 << pick(a, 6);
	e->fd = any_fd(a);
	switch (e->opcode) {
	case IORING_OP_MADVISE:
		e->fd = -1;
		e->addr = any_addr(a) & ~(PAGE - 1);
		e->len = (1 + pick(a, 4)) * PAGE;
		e->fadvise_advice = advice[pick(a, ARRAY(advice))];
		break;
	case IORING_OP_OPENAT:
		strcpy(a->scratch + PAGE, "/dev/pvas");
		e->fd = -100;
		e->addr = (uintptr_t)a->scratch + PAGE;
		e->open_flags = 2;
		break;
	case IORING_OP_CLOSE:
		if (e->fd == a->ring.fd || e->fd == a->uffd)
			e->fd = -1;
		break;
	case IORING_OP_MSG_RING:
		e->len = pick(a, 100);
		e->addr = pick(a, 2);
		break;
	case IORING_OP_TIMEOUT:
	case IORING_OP_FILES_UPDATE:
		e->addr = (uintptr_t)a->scratch;
		e->len = 1;
		break;
	}
}

static void submit(struct actor *a)
{
	struct ring *r = &a->ring;
	unsigned int *tail, mask, n = 1 + pick(a, 3), i;
	struct io_uring_sqe *e;

	if (r->fd < 0)
		return;
	tail = (unsigned int *)(r->sq + r->off_tail);
	mask = *(unsigned int *)(r->sq + r->off_mask);
	for (i = 0; i < n; i++) {
		e = (struct io_uring_sqe *)r->sqes + (*tail & mask);
		fill_sqe(a, e);
		note(a, N_RING, e->opcode);
		note(a, N_RING, e->addr);
		((unsigned int *)(r->sq + r->off_array))[*tail & mask] = *tail & mask;
		__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	}
	CALL(a, SYS_io_uring_enter, r->fd, n, 0, 2 /* wake up */, 0, 0);
}

static void register_something(struct actor *a)
{
	int fds[4], i;
	struct { uint64_t base, len; } vec = { any_addr(a) & ~(PAGE - 1), PAGE };

	if (a->ring.fd < 0)
		return;
	switch (pick(a, 4)) {
	case 0:
		CALL(a, SYS_io_uring_register, a->ring.fd, IORING_REGISTER_BUFFERS, &vec, 1);
		break;
	case 1:
		CALL(a, SYS_io_uring_register, a->ring.fd, IORING_REGISTER_PERSONALITY, 0, 0);
		break;
	default:
		for (i = 0; i < 4; i++)
			fds[i] = i ? any_fd(a) : a->ring.fd;
		CALL(a, SYS_io_uring_register, a->ring.fd, IORING_REGISTER_FILES, fds + pick(a, 2),
		     1 + pick(a, 3));
	}
}

void op_ring(struct actor *a)
{
	static const unsigned int flags[] = {
		0, 0, IORING_SETUP_SQPOLL, IORING_SETUP_SQPOLL, IORING_SETUP_CQSIZE,
		IORING_SETUP_R_DISABLED,
	};
	unsigned int way = pick(a, 10);

	if (a->ring.fd < 0 || way == 0)
		ring_make(a, flags[pick(a, ARRAY(flags))]);
	if (way < 3)
		register_something(a);
	else
		submit(a);
}
