// SPDX-License-Identifier: GPL-2.0-only
#include "heap.h"

#include <malloc.h>

size_t heap_in_use(void)
{
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 info = mallinfo2();
#else
	struct mallinfo info = mallinfo();	/* modulo 4 GiB */
#endif
	return (size_t)info.uordblks + (size_t)info.hblkhd;
}
