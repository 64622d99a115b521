// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: atomics [ROUNDS [SEED]]
 *
 * All ranks change the same words of all ranks at the same time, by single elements, by a few and
 * by many, which use different mechanisms: atomic instructions, these with the lock, and the lock
 * alone. In each kind of epoch and window, no change is lost or done twice, and an accumulate of
 * several elements is seen whole by others like it.
 */
#include "common.h"

#define TOKENS 64
#define BITS 8
#define ROW 64
#define ROWS 5

/* The window of each rank */
struct words {
	/* Numbers that are swapped: never lost, never doubled */
	uint64_t tokens[TOKENS];
	/* Sums */
	uint64_t sums[TOKENS];
	double reals[TOKENS];
	/* Changed by exclusive or, in numbers of 1 to 8 bytes */
	uint64_t bits[BITS];
	/* The same number in all elements; of each row more are exchanged */
	uint32_t rows[ROWS][ROW];
	/* The largest that was given */
	int32_t largest;
};

static const int row_length[ROWS] = { 2, 3, 5, 20, ROW };

static struct words *own, *expected;
static uint64_t hand[TOKENS];
static uint64_t state;
static MPI_Win win;
static MPI_Aint base_of[64];

/* ---- one access each ---- */

static MPI_Aint at(int target, const void *word)
{
	return base_of[target] + ((const char *)word - (const char *)own);
}

/* A few tokens of ours for as many of the target's */
static void swap(int target)
{
	static const int lengths[] = { 1, 1, 1, 2, 3, 30, TOKENS };
	const int n = lengths[below(&state, 7)], from = below(&state, TOKENS - n + 1);
	uint64_t got[TOKENS];

	if (n == 1 && below(&state, 2))
		MPI_Fetch_and_op(&hand[from], got, MPI_UINT64_T, target,
				 at(target, &own->tokens[from]), MPI_REPLACE, win);
	else
		MPI_Get_accumulate(&hand[from], n, MPI_UINT64_T, got, n, MPI_UINT64_T, target,
				   at(target, &own->tokens[from]), n, MPI_UINT64_T, MPI_REPLACE,
				   win);
	MPI_Win_flush(target, win);
	memcpy(&hand[from], got, n * sizeof(got[0]));
}

/* Also by compare-and-swap */
static void add(int target)
{
	const int n = below(&state, 2) ? 1 : 1 + below(&state, TOKENS);
	const int from = below(&state, TOKENS - n + 1);
	const uint64_t value = mix(&state);
	uint64_t values[TOKENS], next, seen, old;
	int i;

	for (i = 0; i < n; i++)
		expected[target].sums[from + i] += values[i] = value + i;
	if (n > 1 || below(&state, 2)) {
		MPI_Accumulate(values, n, MPI_UINT64_T, target, at(target, &own->sums[from]), n,
			       MPI_UINT64_T, MPI_SUM, win);
		return;
	}
	MPI_Fetch_and_op(NULL, &old, MPI_UINT64_T, target, at(target, &own->sums[from]),
			 MPI_NO_OP, win);
	MPI_Win_flush(target, win);
	for (;; old = seen) {
		next = old + value;
		MPI_Compare_and_swap(&next, &old, &seen, MPI_UINT64_T, target,
				     at(target, &own->sums[from]), win);
		MPI_Win_flush(target, win);
		if (seen == old)
			return;
	}
}

static void add_reals(int target)
{
	const int n = below(&state, 2) ? 1 : 1 + below(&state, TOKENS);
	double values[TOKENS];
	int i;

	for (i = 0; i < n; i++)
		expected[target].reals[i] += values[i] = below(&state, 100);
	MPI_Accumulate(values, n, MPI_DOUBLE, target, at(target, own->reals), n, MPI_DOUBLE,
		       MPI_SUM, win);
}

/* Parts of a word in numbers of each size */
static void flip(int target)
{
	const MPI_Datatype sizes[] = { MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T };
	const int shift = below(&state, 4), size = 1 << shift;
	const int most = sizeof(own->bits) / size;
	const int n = below(&state, 2) ? 1 : 1 + below(&state, most);
	const int from = below(&state, most - n + 1);
	unsigned char values[sizeof(own->bits)], *sum = (unsigned char *)expected[target].bits;
	int i;

	for (i = 0; i < n * size; i++)
		sum[from * size + i] ^= values[i] = mix(&state);
	MPI_Accumulate(values, n, sizes[shift], target,
		       at(target, (char *)own->bits + from * size), n, sizes[shift], MPI_BXOR, win);
}

/* All elements of a row are equal, also in what comes back. */
static void replace_row(int target)
{
	const int row = below(&state, ROWS), n = row_length[row], what = below(&state, 3);
	uint32_t values[ROW], old[ROW];
	int i;

	values[0] = mix(&state);
	for (i = 1; i < n; i++)
		values[i] = values[0];
	if (what == 0) {
		MPI_Accumulate(values, n, MPI_UINT32_T, target, at(target, own->rows[row]), n,
			       MPI_UINT32_T, MPI_REPLACE, win);
		return;
	}
	MPI_Get_accumulate(values, n, MPI_UINT32_T, old, n, MPI_UINT32_T, target,
			   at(target, own->rows[row]), n, MPI_UINT32_T,
			   what == 1 ? MPI_NO_OP : MPI_REPLACE, win);
	MPI_Win_flush(target, win);
	for (i = 1; i < n; i++)
		expect(old[i] == old[0], "row of %d: element %d is %x, the first one %x", n, i,
		       old[i], old[0]);
}

static void raise_largest(int target)
{
	const int32_t value = below(&state, 1 << 30);

	if (value > expected[target].largest)
		expected[target].largest = value;
	MPI_Accumulate(&value, 1, MPI_INT32_T, target, at(target, &own->largest), 1, MPI_INT32_T,
		       MPI_MAX, win);
}

static void one(int target)
{
	static void (*const all[])(int target) = {
		swap, add, add_reals, flip, replace_row, raise_largest,
	};

	all[below(&state, sizeof(all) / sizeof(all[0]))](target);
}

/* ---- epochs ---- */

/* Locks of one target at a time, shared ones and exclusive ones */
static void with_locks(int rounds)
{
	int target, i, n;

	for (i = 0; i < rounds; i += n) {
		n = 1 + below(&state, 8);
		target = below(&state, size);
		MPI_Win_lock(below(&state, 4) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0,
			     win);
		for (int k = 0; k < n; k++)
			one(target);
		MPI_Win_unlock(target, win);
	}
}

static void with_lock_all(int rounds, int assertion)
{
	int i;

	MPI_Win_lock_all(assertion, win);
	for (i = 0; i < rounds; i++)
		one(below(&state, size));
	MPI_Win_unlock_all(win);
}

/* Half of the ranks of a window lock all, the others one by one. */
static void mixed(int rounds)
{
	if (rank % 2)
		with_lock_all(rounds, 0);
	else
		with_locks(rounds);
}

static void in_each_epoch(int rounds)
{
	with_locks(rounds);
	mixed(rounds);
	with_lock_all(rounds, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	with_lock_all(rounds, MPI_MODE_NOCHECK);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- windows ---- */

static void begin_words(int absolute)
{
	MPI_Aint base = 0;
	int i;

	expected = calloc(size, sizeof(*expected));
	memset(own, 0, sizeof(*own));
	for (i = 0; i < TOKENS; i++) {
		hand[i] = mix(&state);
		own->tokens[i] = mix(&state);
		expected[rank].tokens[i] = hand[i] + own->tokens[i];
	}
	if (absolute)
		MPI_Get_address(own, &base);
	MPI_Allgather(&base, 1, MPI_AINT, base_of, 1, MPI_AINT, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Of all ranks, that of each element */
static void check_tokens(void)
{
	uint64_t sums[2][TOKENS], all[2][TOKENS];
	int i;

	for (i = 0; i < TOKENS; i++) {
		sums[0][i] = expected[rank].tokens[i];
		sums[1][i] = hand[i] + own->tokens[i];
	}
	MPI_Allreduce(sums, all, 2 * TOKENS, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < TOKENS; i++)
		expect(all[0][i] == all[1][i], "token %d was lost or doubled", i);
}

static void check_words(const char *window)
{
	struct words sum;
	int i, k;

	check_tokens();
	for (i = 0; i < size; i++) {
		const struct words *e = &expected[i];

		MPI_Reduce(e->sums, sum.sums, TOKENS, MPI_UINT64_T, MPI_SUM, i, MPI_COMM_WORLD);
		MPI_Reduce(e->reals, sum.reals, TOKENS, MPI_DOUBLE, MPI_SUM, i, MPI_COMM_WORLD);
		MPI_Reduce(e->bits, sum.bits, BITS, MPI_UINT64_T, MPI_BXOR, i, MPI_COMM_WORLD);
		MPI_Reduce(&e->largest, &sum.largest, 1, MPI_INT32_T, MPI_MAX, i, MPI_COMM_WORLD);
	}
	for (k = 0; k < TOKENS; k++)
		expect(own->sums[k] == sum.sums[k] && own->reals[k] == sum.reals[k],
		       "%s: sum %d", window, k);
	for (k = 0; k < BITS; k++)
		expect(own->bits[k] == sum.bits[k], "%s: bits %d", window, k);
	expect(own->largest == sum.largest, "%s: %d is the largest, not %d", window, own->largest,
	       sum.largest);
	free(expected);
}

static void allocated(int rounds)
{
	MPI_Win_allocate(sizeof(*own), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
	begin_words(0);
	in_each_epoch(rounds);
	check_words("allocated");
	MPI_Win_free(&win);
}

static void shared(int rounds)
{
	MPI_Win_allocate_shared(sizeof(*own), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
	begin_words(0);
	in_each_epoch(rounds);
	check_words("shared");
	MPI_Win_free(&win);
}

static void dynamic(int rounds)
{
	own = malloc(sizeof(*own));
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_attach(win, own, sizeof(*own));
	begin_words(1);
	in_each_epoch(rounds);
	check_words("dynamic");
	MPI_Win_detach(win, own);
	MPI_Win_free(&win);
	free(own);
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 200;

	begin(&argc, &argv);
	expect(size <= 64, "too many ranks");
	state = argc > 2 ? atoll(argv[2]) : 1;
	state = state * 1000 + rank;
	mix(&state);
	allocated(rounds);
	shared(rounds);
	dynamic(rounds);
	return finish();
}
