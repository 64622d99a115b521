// SPDX-License-Identifier: GPL-2.0-only
/*
 * A task to look at: rows until told otherwise. Compiled twice, with other names
 * and lines, so that one task's symbols can't pass for another's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef SECOND
#define STROKE	paddle
#define BOAT	canoe
/* These lines move all that follows. */
#else
#define STROKE	stroke
#define BOAT	eight
#endif

int STROKE(int n);
int BOAT(int rank);

volatile int strokes;

__attribute__((noinline)) int STROKE(int n)
{
	strokes += n;
	return strokes;		/* stroke's line */
}

__attribute__((noinline)) int BOAT(int rank)
{
	const char *crash = getenv("CRASH_RANK");

	if (crash && atoi(crash) == rank)
		*(volatile int *)8 = STROKE(rank);
	for (;;) {
		STROKE(rank);
		usleep(20000);
	}
}

int main(void)
{
	const char *rank = getenv("PVAS_RANK");

	puts("ready");
	fflush(stdout);
	return BOAT(rank ? atoi(rank) : -1);
}
