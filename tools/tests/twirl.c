// SPDX-License-Identifier: GPL-2.0-only
/* A program for perf, valgrind and the sanitizers: busy for a while, then wrong if told so. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void TWIRL(long n);

static volatile unsigned long turns;
static char *volatile heap;

__attribute__((noinline)) void TWIRL(long n)
{
	while (n--)
		turns += n;
}

/* The purpose of each tool; volatile, so that no compiler sees it first. */
static int be_wrong(const char *how)
{
	volatile int big = INT_MAX;

	heap = malloc(10);
	if (!strcmp(how, "overflow"))
		big++;
	if (!strcmp(how, "heap"))
		memset(heap, 1, 24);
	free(heap);
	return big == 0;
}

int main(int argc, char **argv)
{
	int i;

	for (i = 0; i < 20 && argc < 2; i++)
		TWIRL(10000000);
	if (argc > 1 && be_wrong(argv[1]))
		return 1;
	puts("done");
	return 0;
}
