// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program of an unusual shape, by the way it is compiled and linked (tests.mk): it
 * checks how the loader has mapped its segments.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends inside a page: the rest of the page must be zero, but is not in the file. */
static char filled[5000] = "filled";

#ifndef BSS
#define BSS 100000
#endif
static char zeros[BSS];
static const char *volatile reloc = filled;
static __thread int tls = 42;

#ifdef ALIGN
static char aligned[64] __attribute__((aligned(ALIGN))) = "aligned";
#endif

#ifdef EXEC_STACK
/* A nested function whose address is taken is code on the stack. */
static int call(int (*f)(int))
{
	return f(1);
}

static int on_stack(int x)
{
	int nested(int y) { return x + y; }

	return call(nested);
}
#endif

static int all_zero(const char *p, size_t n)
{
	size_t i;

	/* A large array is checked every 64 KiB, and fully at its ends. */
	for (i = 0; i < n; i += i < 20000 || n - i < 70000 ? 1 : 65536)
		if (p[i])
			return 0;
	return 1;
}

int main(int argc, char **argv)
{
	int bad = 0;

	bad |= strcmp((const char *)reloc, "filled") ? 1 : 0;
	bad |= all_zero(zeros, sizeof(zeros)) ? 0 : 2;
	bad |= tls == 42 ? 0 : 4;
	memset(zeros, 1, 20000);
	zeros[sizeof(zeros) - 1] = 1;
#ifdef ALIGN
	bad |= (uintptr_t)aligned % (ALIGN) || strcmp(aligned, "aligned") ? 8 : 0;
#endif
#ifdef EXEC_STACK
	bad |= on_stack(41) == 42 ? 0 : 16;
#endif
	bad |= (uintptr_t)&bad % 4 ? 32 : 0;
	free(malloc(1 << 20));
	/* A descriptor that must not be open */
	if (argc > 2)
		bad |= fcntl(atoi(argv[2]), F_GETFD) >= 0 ? 64 : 0;
	printf("%s: %d\n", argc > 1 ? argv[1] : "shape", bad);
	return bad;
}
