// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Find a place for the space header: the first multiple of PVAS_HEADER_STEP where
 * nothing is mapped. The code and heap of a program that is not position-independent
 * can occupy some of them. Raw system calls: the kernel backend's child calls this.
 */
#include <asm/mman.h>
#include <linux/mman.h>
#include <stddef.h>

#include "header.h"
#include "rawsys.h"

long pvas_header_map(size_t len, size_t below)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
	uint64_t base;
	long at;

	for (base = PVAS_HEADER_STEP; base + len < PVAS_HEADER_LIMIT; base += PVAS_HEADER_STEP) {
		at = pvas_raw6(__NR_mmap, base - below, below + len, PROT_READ | PROT_WRITE, flags,
			       -1, 0);
		if (at != -EEXIST)
			return at < 0 ? at : (long)base;
	}
	return -EEXIST;
}
