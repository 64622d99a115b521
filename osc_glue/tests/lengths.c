// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Long data are copied in pieces, and those whose destination is some bytes behind their source,
 * modulo a page, in another way: do put and get move all bytes, and none beside them?
 */
#include "common.h"

#define PIECE (256 << 10)
#define PAGE 4096
#define MOST (3 * PIECE)

static char *origin, *memory;
static MPI_Win win;
static int target;

static char pattern(int of, int at)
{
	return 1 + (of * 31 + at * 7 + (at >> 12)) % 101;
}

/* Are there @n bytes of rank @of from @at on, and zeros around? */
static void compare(const char *buf, int at, int n, int of, const char *what)
{
	int i, bad = buf[at - 1] != 0 || buf[at + n] != 0;

	for (i = 0; i < n; i++)
		bad += buf[at + i] != pattern(of, i);
	expect(!bad, "%s of %d bytes, %d behind: %d are wrong", what, n, at % PAGE, bad);
}

static void fill(char *buf, int n)
{
	int i;

	for (i = 0; i < n; i++)
		buf[PAGE + i] = pattern(rank, i);
}

static void check(int n, int behind)
{
	const int at = PAGE + behind;

	memset(memory, 0, MOST + 2 * PAGE);
	fill(origin, n);
	MPI_Win_fence(0, win);
	MPI_Put(origin + PAGE, n, MPI_CHAR, target, at, n, MPI_CHAR, win);
	MPI_Win_fence(0, win);
	compare(memory, at, n, (rank + size - 1) % size, "put");
	memset(origin, 0, MOST + 2 * PAGE);
	fill(memory, n);
	MPI_Win_fence(0, win);
	MPI_Get(origin + at, n, MPI_CHAR, target, PAGE, n, MPI_CHAR, win);
	MPI_Win_fence(0, win);
	compare(origin, at, n, target, "get");
}

int main(int argc, char **argv)
{
	static const int lengths[] = { 2047, 2048, 2049, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE,
				       2 * PIECE + 65, MOST };
	static const int behind[] = { 0, 1, 31, 32 };
	size_t i, j;

	begin(&argc, &argv);
	target = (rank + 1) % size;
	origin = aligned_alloc(PAGE, MOST + 2 * PAGE);
	MPI_Win_allocate(MOST + 2 * PAGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (j = 0; j < sizeof(behind) / sizeof(behind[0]); j++)
			check(lengths[i], behind[j]);
	MPI_Win_free(&win);
	free(origin);
	return finish();
}
