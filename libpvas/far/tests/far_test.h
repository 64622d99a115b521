/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the tests of far memory. */
#ifndef PVAS_FAR_TEST_H
#define PVAS_FAR_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "no_move.h"
#include "pvas_far.h"

/* The harness limits elapsed time: a busy machine needs more than half a minute. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 240

#define MIB ((size_t)1 << 20)

/* How a test runs the pager */
struct how {
	const char *stores;
	size_t page;
	unsigned int copies;
	bool no_move;
	bool kernel_faults;
	const char *protocol;
};

/* Start the pager with this budget and so much far memory. */
static inline int open_far(const struct how *how, size_t ram, size_t size)
{
	struct pvas_far_attr attr = {
		.size = sizeof(attr),
		.stores = how->stores,
		.ram = ram,
		.far = size,
		.page = how->page,
		.copies = how->copies,
		.protocol = how->protocol,
		.flags = how->kernel_faults ? 0 : PVAS_FAR_USER_FAULTS_ONLY,
	};
	int err;

	no_move = how->no_move;
	err = pvas_far_open(&attr);
	if (err)
		fprintf(stderr, "# pvas_far_open: %d: %s\n", err, pvas_far_error());
	return err;
}

static inline struct pvas_far_counters counters(void)
{
	struct pvas_far_counters c = { .size = sizeof(c) };

	pvas_far_get_counters(&c);
	return c;
}

/* The stores are told of freed pages in the background: wait for it. The test's time is limited. */
static inline void wait_until_nothing_is_stored(void)
{
	while (counters().stored)
		usleep(1000);
}

/* Bytes of this process that are resident */
static inline size_t resident(void)
{
	unsigned long all = 0, here = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%lu %lu", &all, &here) != 2)
		here = 0;
	fclose(f);
	return here * (size_t)sysconf(_SC_PAGESIZE);
}

/* A sequence that depends on its seed only */
static inline uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

#endif
