// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pages that something else uses, as far as the pager is told: they stay, and lose nothing. */
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "far.h"
#include "far_test.h"

enum { PAGES = 1024, LOADS = 8000, MARK = 77 };

#define PAGE ((size_t)16384)
#define RAM (PAGES / 4 * PAGE)
#define SIZE (PAGES * PAGE)

FIXTURE(in_use)
{
	char unused;
};

FIXTURE_VARIANT(in_use)
{
	struct how how;
};

FIXTURE_VARIANT_ADD(in_use, move) { { "zip", PAGE } };
FIXTURE_VARIANT_ADD(in_use, no_move) { { "zip", PAGE, .no_move = true } };

static volatile unsigned char *p;

FIXTURE_SETUP(in_use)
{
	ASSERT_EQ(0, open_far(&variant->how, RAM, SIZE));
	ASSERT_EQ(0, pvas_far_alloc((void **)&p, SIZE));
	memset((char *)p, 1, SIZE);
}

FIXTURE_TEARDOWN(in_use)
{
	before_ioctl = NULL;
	pvas_far_close();
}

static void load_at_random(void)
{
	uint64_t seed = 88172645463325252ULL;
	int i;

	for (i = 0; i < LOADS; i++)
		(void)p[next_random(&seed) % PAGES * PAGE];
}

/* ---- several pages that can't leave together are written before each leaves alone ---- */

static __thread bool apart;
static unsigned char stored[PAGES];

static bool all_are_used(const void *addr, size_t size)
{
	(void)addr;
	apart = size > PAGE;
	return apart;
}

/* The beginning of the second attempt, which has one page */
static bool takes_one(unsigned long request, const void *arg, uint64_t *from)
{
	const struct uffdio_writeprotect *protect = arg;
	const uint64_t *move = arg;	/* where it goes, from where, how much */

	if (request == UFFDIO_WRITEPROTECT && protect->mode && protect->range.len == PAGE) {
		*from = protect->range.start;
		return !far.uffd.move;
	}
	*from = move[1];
	return _IOC_TYPE(request) == UFFDIO && _IOC_NR(request) == 5 && move[2] == PAGE;
}

static void store_between(unsigned long request, void *arg)
{
	uint64_t from;

	if (!apart || !takes_one(request, arg, &from) || from - (uintptr_t)p >= SIZE)
		return;
	((volatile unsigned char *)from)[0]++;
	__atomic_add_fetch(&stored[(from - (uintptr_t)p) / PAGE], 1, __ATOMIC_RELAXED);
}

TEST_F(in_use, stores_are_kept)
{
	unsigned int i, n = 0, wrong = 0;

	memset(stored, 1, sizeof(stored));
	load_at_random();
	before_ioctl = store_between;
	__atomic_store_n(&far.uffd.used, all_are_used, __ATOMIC_RELEASE);
	load_at_random();
	__atomic_store_n(&far.uffd.used, NULL, __ATOMIC_RELEASE);
	load_at_random();
	for (i = 0; i < PAGES; i++) {
		wrong += p[i * PAGE] != stored[i];
		n += stored[i] != 1;
	}
	EXPECT_EQ(0, wrong);
	EXPECT_LT(0, n);
}

/* ---- one page is in use for a while ---- */

/* It is known by its contents: it may have been moved. */
static bool marked_is_used(const void *addr, size_t size)
{
	const unsigned char *at = addr;
	size_t i;

	for (i = 0; i < size; i += PAGE)
		if (at[i] == MARK)
			return true;
	return false;
}

static bool is_resident(size_t page)
{
	unsigned char there = 0;

	return !mincore((char *)p + page * PAGE, 1, &there) && there & 1;
}

TEST_F(in_use, it_stays_until_then)
{
	size_t i;

	p[5 * PAGE] = MARK;
	__atomic_store_n(&far.uffd.used, marked_is_used, __ATOMIC_RELEASE);
	for (i = 6; i < PAGES; i++)
		p[i * PAGE] = 2;
	load_at_random();
	EXPECT_TRUE(is_resident(5));
	EXPECT_EQ(MARK, p[5 * PAGE]);
	__atomic_store_n(&far.uffd.used, NULL, __ATOMIC_RELEASE);
	for (i = 6; i < PAGES; i++)
		p[i * PAGE] = 3;
	for (i = 6; i < PAGES; i++)
		p[i * PAGE] = 4;
	EXPECT_FALSE(is_resident(5));
	EXPECT_EQ(MARK, p[5 * PAGE]);
}

TEST_HARNESS_MAIN
