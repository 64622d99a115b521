// SPDX-License-Identifier: LGPL-2.1-or-later
/* One-sided: put, get, accumulate, fetch-and-op, compare-and-swap, with fences and locks. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 50
#define CELLS 4096

static int rank, size, errors;

static void expect(int64_t got, int64_t want, const char *what)
{
	if (got != want && errors++ < 5)
		printf("rank %d: %s is %lld, not %lld\n", rank, what, (long long)got,
		       (long long)want);
}

/* Each rank writes its row into its right neighbour, and reads it from its left. */
static void put_get(MPI_Win win, int64_t *mem)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	int64_t *row = malloc(CELLS * sizeof(*row));
	int i;

	for (i = 0; i < CELLS; i++)
		row[i] = rank * 100000 + i;
	MPI_Win_fence(0, win);
	MPI_Put(row, CELLS, MPI_INT64_T, right, 0, CELLS, MPI_INT64_T, win);
	MPI_Win_fence(0, win);
	for (i = 0; i < CELLS; i++)
		expect(mem[i], left * 100000 + i, "what was put");
	MPI_Win_fence(0, win);
	MPI_Get(row, CELLS, MPI_INT64_T, right, 0, CELLS, MPI_INT64_T, win);
	MPI_Win_fence(0, win);
	for (i = 0; i < CELLS; i++)
		expect(row[i], rank * 100000 + i, "what was got");
	free(row);
}

static void accumulate(MPI_Win win, int64_t *mem)
{
	int64_t one = 1;
	int i, r;

	mem[0] = mem[1] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_fence(0, win);
	for (i = 0; i < ROUNDS; i++)
		for (r = 0; r < size; r++)
			MPI_Accumulate(&one, 1, MPI_INT64_T, r, 1, 1, MPI_INT64_T, MPI_SUM, win);
	MPI_Win_fence(0, win);
	expect(mem[1], (int64_t)ROUNDS * size, "the sum");
}

/* All ranks draw tickets from rank 0: each ticket exactly once. */
static void tickets(MPI_Win win, int64_t *mem)
{
	int64_t one = 1, got, sum = 0, all;
	int64_t n = (int64_t)ROUNDS * size;
	int i;

	mem[2] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (i = 0; i < ROUNDS; i++) {
		MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, 2, MPI_SUM, win);
		MPI_Win_flush(0, win);
		sum += got;
	}
	MPI_Win_unlock_all(win);
	MPI_Allreduce(&sum, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	expect(all, n * (n - 1) / 2, "the sum of all tickets");
}

/* A counter kept by compare-and-swap */
static void swaps(MPI_Win win, int64_t *mem)
{
	int64_t old, want, new;
	int i;

	mem[3] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (i = 0; i < ROUNDS; i++) {
		want = 0;
		for (;;) {
			new = want + 1;
			MPI_Compare_and_swap(&new, &want, &old, MPI_INT64_T, 0, 3, win);
			MPI_Win_flush(0, win);
			if (old == want)
				break;
			want = old;
		}
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		expect(mem[3], (int64_t)ROUNDS * size, "the counter");
}

/* Exclusive locks: read, add, write back */
static void locks(MPI_Win win, int64_t *mem)
{
	int64_t v;
	int i;

	mem[4] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < ROUNDS; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Get(&v, 1, MPI_INT64_T, 0, 4, 1, MPI_INT64_T, win);
		MPI_Win_flush(0, win);
		v++;
		MPI_Put(&v, 1, MPI_INT64_T, 0, 4, 1, MPI_INT64_T, win);
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	if (rank == 0)
		expect(mem[4], (int64_t)ROUNDS * size, "the locked counter");
	MPI_Win_unlock(rank, win);
}

/* One operation of rank 1's on rank 0's @type at place 5 */
static void operate(MPI_Win win, int64_t *mem, MPI_Datatype type, MPI_Op op, int64_t first,
		    int64_t second, int64_t want)
{
	int64_t got = first;

	mem[5] = first;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	if (rank == 1) {
		MPI_Fetch_and_op(&second, &got, type, 0, 5, op, win);
		MPI_Win_flush(0, win);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	expect(got, first, "the value before the operation");
	if (rank == 0)
		expect(mem[5], want, "the result of an operation");
	MPI_Barrier(MPI_COMM_WORLD);
}

/* An unsigned number with its highest bit set is large, a signed one is small. */
static void operators(MPI_Win win, int64_t *mem)
{
	const int64_t high = INT64_MIN, high32 = 0x80000000;

	operate(win, mem, MPI_UINT64_T, MPI_MAX, 1, high, high);
	operate(win, mem, MPI_UINT64_T, MPI_MIN, 1, high, 1);
	operate(win, mem, MPI_UINT32_T, MPI_MAX, 1, high32, high32);
	operate(win, mem, MPI_UINT32_T, MPI_MIN, 1, high32, 1);
	operate(win, mem, MPI_INT64_T, MPI_MAX, 1, high, 1);
	operate(win, mem, MPI_INT64_T, MPI_MIN, 1, high, high);
	operate(win, mem, MPI_INT64_T, MPI_LAND, 2, 4, 1);
	operate(win, mem, MPI_INT64_T, MPI_LOR, 0, 4, 1);
	operate(win, mem, MPI_INT64_T, MPI_LXOR, 2, 4, 0);
	operate(win, mem, MPI_INT64_T, MPI_PROD, 3, 5, 15);
	operate(win, mem, MPI_INT64_T, MPI_BXOR, 6, 3, 5);
}

static void all_of(MPI_Win win, int64_t *mem)
{
	put_get(win, mem);
	accumulate(win, mem);
	tickets(win, mem);
	swaps(win, mem);
	locks(win, mem);
	operators(win, mem);
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	int64_t *mem = calloc(CELLS, sizeof(*mem));
	int64_t *other;
	MPI_Win win;
	int all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Win_create(mem, CELLS * sizeof(*mem), sizeof(*mem), MPI_INFO_NULL, MPI_COMM_WORLD,
		       &win);
	all_of(win, mem);
	MPI_Win_allocate(CELLS * sizeof(*mem), sizeof(*mem), MPI_INFO_NULL, MPI_COMM_WORLD, &other,
			 &win);
	all_of(win, other);
	MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("rma: %d ranks, %d errors\n", size, all);
	MPI_Finalize();
	return all != 0;
}
