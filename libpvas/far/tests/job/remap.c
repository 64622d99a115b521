// SPDX-License-Identifier: LGPL-2.1-or-later
/* mremap() of far memory that has a protection of its own, or a hole: as of any memory. */
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "job.h"

enum { SIZE = 2 * MIB };

static void fill(char *p)
{
	size_t i;

	for (i = 0; i < SIZE; i++)
		p[i] = (char)(i * 7 >> 5);
}

static bool is_filled(const char *p, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (p[i] != (char)(i * 7 >> 5))
			return false;
	return true;
}

/* It has to move: other memory lies behind it. */
static char *boxed_in(void)
{
	char *p = far_memory(SIZE);

	far_memory(SIZE);
	fill(p);
	return p;
}

static void moves_with_protection(int protection)
{
	char *p = boxed_in(), *q;

	check(!mprotect(p, SIZE, protection));
	evict();
	q = mremap(p, SIZE, 2 * SIZE, MREMAP_MAYMOVE);
	check(q != MAP_FAILED && q != p && faults(p));
	check(faults(q) == !(protection & PROT_READ));
	check(rejects_stores(q + 5 * PAGE) && rejects_stores(q + 2 * SIZE - 1));
	check(!mprotect(q, 2 * SIZE, PROT_READ | PROT_WRITE));
	check(is_filled(q, SIZE) && !q[SIZE] && !q[2 * SIZE - 1]);
	check(!munmap(q, 2 * SIZE));
}

static void grows_with_protection(void)
{
	char *p = far_memory(SIZE);

	fill(p);
	check(mremap(p, SIZE, SIZE / 2, 0) == p && !mprotect(p, SIZE / 2, PROT_READ));
	check(mremap(p, SIZE / 2, SIZE, 0) == p);
	check(rejects_stores(p) && rejects_stores(p + SIZE - 1) && !p[SIZE - 1]);
	check(is_filled(p, SIZE / 2));
	check(!munmap(p, SIZE));
}

/* It stays as it is. */
static void is_refused(char *p)
{
	check(mremap(p, SIZE, 2 * SIZE, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
	check(mremap(p, SIZE, SIZE + PAGE, 0) == MAP_FAILED && errno == EFAULT);
	check(is_filled(p, SIZE / 4));
}

void test_protection(void)
{
	char *p = boxed_in();

	moves_with_protection(PROT_READ);
	moves_with_protection(PROT_NONE);
	grows_with_protection();
	/* Several protections, and a hole smaller than a page of the pager's */
	check(!mprotect(p + SIZE / 2, PAGE, PROT_READ));
	is_refused(p);
	check(!munmap(p + SIZE / 2, PAGE));
	is_refused(p);
}
