// SPDX-License-Identifier: GPL-2.0-only
/*
 * One of the workers that bench/onemm starts: repeats one operation until it is told
 * to stop, and counts.
 *
 * usage: worker FD INDEX N THREADS WHAT
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "worker_group.h"

#define PAGE		4096UL
#define FAULTS		(2UL << 20)	/* bytes touched at once, in small pages */
#define HUGE		(8UL << 20)	/* and where huge ones may be used */
#define ALIGN		(2UL << 20)
#define MAPPED		(64UL << 10)
#define BLOCKS		64		/* of the heap, alive at once */

static struct group_page *page;

struct self {
	pthread_t thread;
	unsigned int index, n;
	uint32_t seed;
	void (*once)(struct self *self);
	char *block[BLOCKS];
};

static void done(struct self *self, uint64_t more)
{
	uint64_t *count = &page->worker[self->index].count;

	__atomic_store_n(count, *count + more, __ATOMIC_RELAXED);
}

static void fail(const char *what)
{
	fprintf(stderr, "worker: %s: %s\n", what, strerror(errno));
	exit(1);
}

static char *map(size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	return p;
}

static void touch(char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i += PAGE)
		*(volatile char *)(p + i) = 1;
}

static void fault(struct self *self)
{
	char *p = map(FAULTS);

	if (madvise(p, FAULTS, MADV_NOHUGEPAGE))
		fail("madvise");
	touch(p, FAULTS);
	munmap(p, FAULTS);
	done(self, FAULTS / PAGE);
}

/* The same pages, but all in the one call */
static void populate(struct self *self)
{
	char *p = map(FAULTS);

	if (madvise(p, FAULTS, MADV_NOHUGEPAGE) || madvise(p, FAULTS, MADV_POPULATE_WRITE))
		fail("madvise");
	munmap(p, FAULTS);
	done(self, FAULTS / PAGE);
}

/* Where huge pages are wanted: does the kernel place the area so that they fit? */
static void huge(struct self *self)
{
	char *p = map(HUGE);

	madvise(p, HUGE, MADV_HUGEPAGE);
	touch(p, HUGE);
	munmap(p, HUGE);
	done(self, HUGE / PAGE);
}

/* The same, placed by hand */
static void aligned(struct self *self)
{
	char *area = map(HUGE + ALIGN);
	char *p = (char *)(((uintptr_t)area + ALIGN - 1) & ~(ALIGN - 1));

	madvise(p, HUGE, MADV_HUGEPAGE);
	touch(p, HUGE);
	munmap(area, HUGE + ALIGN);
	done(self, HUGE / PAGE);
}

static void map_unmap(struct self *self)
{
	munmap(map(MAPPED), MAPPED);
	done(self, 1);
}

/* One page used, so that its unmapping must be told to all processors. */
static void map_touch(struct self *self)
{
	char *p = map(MAPPED);

	*(volatile char *)p = 1;
	munmap(p, MAPPED);
	done(self, 1);
}

static uint32_t next(struct self *self)
{
	self->seed = self->seed * 1664525 + 1013904223;
	return self->seed >> 8;
}

/* 64 B to 512 KiB, each power of two as often; all pages written, as a program would. */
static void allocate(struct self *self)
{
	char **block = &self->block[next(self) % BLOCKS];
	uint32_t r = next(self);
	size_t len = (64UL << r % 13) + r % 64;

	free(*block);
	*block = malloc(len);
	if (!*block)
		fail("malloc");
	touch(*block, len);
	done(self, 1);
}

/* Pairs that wake each other; all on one processor, so each time is a switch. */
static void turns(struct self *self)
{
	uint32_t *turn = &page->worker[self->index & ~1u].turn, mine = self->index & 1, now;

	while (((now = __atomic_load_n(turn, __ATOMIC_ACQUIRE)) & 1) != mine) {
		if (group_stopped(page))
			return;
		syscall(SYS_futex, turn, FUTEX_WAIT, now, NULL, NULL, 0);
	}
	done(self, 1);
	__atomic_add_fetch(turn, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static const struct {
	const char *name;
	void (*once)(struct self *self);
} whats[] = {
	{ "fault", fault }, { "populate", populate }, { "huge", huge }, { "aligned", aligned },
	{ "mmap", map_unmap }, { "mmap-touch", map_touch }, { "malloc", allocate },
	{ "switch", turns },
};

static void pin(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("processor 0");
}

static void *run(void *arg)
{
	struct self *self = arg;

	if (self->once == turns)
		pin();
	group_ready(page, 1);
	while (!group_stopped(page))
		self->once(self);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int threads = argc > 4 ? atoi(argv[4]) : 0, i, j;
	struct self *self = calloc(threads, sizeof(*self));

	if (argc != 6 || !threads || !self)
		return 2;
	page = group_open(argv[1]);
	for (i = 0; i < threads; i++) {
		self[i].index = atoi(argv[2]) + i;
		self[i].n = atoi(argv[3]);
		self[i].seed = self[i].index;
		for (j = 0; j < sizeof(whats) / sizeof(whats[0]); j++)
			if (!strcmp(argv[5], whats[j].name))
				self[i].once = whats[j].once;
		if (!self[i].once)
			return 2;
		if (i && pthread_create(&self[i].thread, NULL, run, &self[i]))
			fail("pthread_create");
	}
	run(&self[0]);
	for (i = 1; i < threads; i++)
		pthread_join(self[i].thread, NULL);
	return 0;
}
