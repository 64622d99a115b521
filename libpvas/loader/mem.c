// SPDX-License-Identifier: LGPL-2.1-or-later
/* Functions that compilers call on their own, even in freestanding code. */
#include <stddef.h>

#include "../arch.h"

void *memset(void *to, int c, size_t n);
void *memcpy(void *to, const void *from, size_t n);

void *memset(void *to, int c, size_t n)
{
	pvas_fill_bytes(to, c, n);
	return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
	pvas_copy_bytes(to, from, n);
	return to;
}
