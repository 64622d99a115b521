// SPDX-License-Identifier: LGPL-2.1-or-later
/* Functions that compilers call on their own, even in freestanding code. */
#include <stddef.h>

void *memset(void *to, int c, size_t n);
void *memcpy(void *to, const void *from, size_t n);

void *memset(void *to, int c, size_t n)
{
	void *d = to;

	__asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(c) : "memory");
	return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
	void *d = to;

	__asm__ volatile("rep movsb" : "+D"(d), "+S"(from), "+c"(n) : : "memory");
	return to;
}
