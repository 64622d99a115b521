/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the tests of mappings: sizes, kinds, and addresses in other partitions. */
#ifndef PVAS_TEST_MAPS_H
#define PVAS_TEST_MAPS_H

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pvas_test.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PAGE	4096UL
#define RW	(PROT_READ | PROT_WRITE)
#define ANON	(MAP_PRIVATE | MAP_ANONYMOUS)

/* In a task: new memory, or a failed check. */
static inline void *anon(size_t len)
{
	void *p = mmap(NULL, len, RW, ANON, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* The break as the kernel has it; glibc's brk() only says whether it moved. */
static inline uintptr_t raw_brk(uintptr_t to)
{
	return syscall(SYS_brk, to);
}

/* Addresses that are not ours: below, above, the header's, at the far end, the kernel's. */
static inline void *foreign(int i)
{
	uintptr_t at[] = {
		pt_base() - PAGE, pt_base() + pt_size(), pt_base() - pt_size(),
		pt_base() + 5 * pt_size(), 256UL << 20, 0x10000, (1UL << 47) - 2 * PAGE,
	};

	return i < (int)PT_ARRAY_SIZE(at) ? (void *)at[i] : NULL;
}

/* The last page of this partition and the first of the next one. */
static inline void *straddling(void)
{
	return (void *)(pt_base() + pt_size() - PAGE);
}

/* The outermost pages that a task can have: the first, and the end of the last. */
static inline uintptr_t first_page(void)
{
	return pt_base() + PAGE;
}

static inline uintptr_t last_end(void)
{
	return pt_base() + pt_size() - PAGE;
}

#define FOR_EACH_FOREIGN(p) \
	for (int i__ = 0; ((p) = foreign(i__)) != NULL; i__++)

#endif /* PVAS_TEST_MAPS_H */
