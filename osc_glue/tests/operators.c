// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Each predefined operator on each predefined type for which Open MPI defines it, by each
 * function, at aligned and other addresses, under each lock: results are those of
 * MPI_Reduce_local. Then all ranks at once, on the same elements: nothing is lost.
 */
#include "common.h"

#include <stddef.h>

#define MOST 70		/* more than are combined at a time */
#define WIDEST 32
#define ROOM (WIDEST * (MOST + 2))
#define MOST_ROUNDS 40

static const MPI_Datatype types[] = {
	MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT8_T, MPI_INT16_T,
	MPI_INT32_T, MPI_INT64_T, MPI_AINT, MPI_OFFSET, MPI_COUNT, MPI_UNSIGNED_CHAR,
	MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T,
	MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T, MPI_BYTE, MPI_C_BOOL, MPI_FLOAT, MPI_DOUBLE,
	MPI_LONG_DOUBLE, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX,
	MPI_2INT, MPI_SHORT_INT, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_LONG_DOUBLE_INT,
};
#define NR_TYPES (int)(sizeof(types) / sizeof(types[0]))

static const MPI_Op ops[] = {
	MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR, MPI_LXOR,
	MPI_BXOR, MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE,
};
#define NR_OPS (int)(sizeof(ops) / sizeof(ops[0]))

static MPI_Win win;
static unsigned char *memory;
static int target, tested;
static uint64_t seed = 7;

static const char *name_of(MPI_Datatype type)
{
	static char name[MPI_MAX_OBJECT_NAME];
	int length;

	MPI_Type_get_name(type, name, &length);
	return name;
}

static MPI_Aint extent_of(MPI_Datatype type)
{
	MPI_Aint lb, extent;

	MPI_Type_get_extent(type, &lb, &extent);
	return extent;
}

/*
 * Random bits are numbers of all integer types, half of them with the highest bit set. Sums and
 * products must not overflow: MPI_Reduce_local saturates, or not, as the processor can.
 */
static void fill(unsigned char *buf, MPI_Datatype type, int n, MPI_Op op)
{
	int i, bytes = extent_of(type) * n;
	const int small = op == MPI_SUM || op == MPI_PROD;

	for (i = 0; i < bytes; i++)
		buf[i] = !small ? mix(&seed) : i % extent_of(type) ? 0 : mix(&seed) & 7;
	for (i = 0; i < n; i++) {
		if (type == MPI_C_BOOL)
			buf[i] &= 1;
		else if (type == MPI_FLOAT || type == MPI_FLOAT_INT)
			*(float *)(buf + i * extent_of(type)) = below(&seed, 100) - 50;
		else if (type == MPI_DOUBLE || type == MPI_DOUBLE_INT)
			((double *)buf)[i * extent_of(type) / 8] = below(&seed, 100) - 50;
		else if (type == MPI_LONG_DOUBLE || type == MPI_LONG_DOUBLE_INT)
			((long double *)buf)[i * extent_of(type) / 16] = below(&seed, 100) - 50;
	}
	if (type == MPI_C_FLOAT_COMPLEX)
		for (i = 0; i < 2 * n; i++)
			((float *)buf)[i] = below(&seed, 9) - 4;
	if (type == MPI_C_DOUBLE_COMPLEX)
		for (i = 0; i < 2 * n; i++)
			((double *)buf)[i] = below(&seed, 9) - 4;
	if (type == MPI_C_LONG_DOUBLE_COMPLEX)
		for (i = 0; i < 2 * n; i++)
			((long double *)buf)[i] = below(&seed, 9) - 4;
}

/* Of each long double, 10 of 16 bytes are the number. */
static int is_number(MPI_Datatype type, int byte)
{
	if (type == MPI_LONG_DOUBLE || type == MPI_C_LONG_DOUBLE_COMPLEX)
		return byte % 16 < 10;
	return type != MPI_LONG_DOUBLE_INT || byte % 20 < 10 || byte % 20 >= 16;
}

/* Without what lies between the members of pairs */
static int same(const unsigned char *a, const unsigned char *b, MPI_Datatype type, int n)
{
	static unsigned char x[ROOM], y[ROOM];
	int at = 0, bytes = 0, i;

	MPI_Pack(a, n, type, x, ROOM, &at, MPI_COMM_SELF);
	MPI_Pack(b, n, type, y, ROOM, &bytes, MPI_COMM_SELF);
	for (i = 0; i < at; i++)
		if (x[i] != y[i] && is_number(type, i))
			return 0;
	return 1;
}

static int is_defined(MPI_Op op, MPI_Datatype type)
{
	unsigned char a[WIDEST] = "", b[WIDEST] = "";

	return op == MPI_REPLACE || MPI_Reduce_local(a, b, 1, type, op) == MPI_SUCCESS;
}

/* Data at all possible places must be read and written as by MPI_Reduce_local. */
static void one(MPI_Datatype type, int o, int n, int shift, int call)
{
	static _Alignas(16) unsigned char origin[ROOM], before[ROOM], wanted[ROOM], now[ROOM],
		result[ROOM];

	fill(origin, type, n, ops[o]);
	fill(before, type, n, ops[o]);
	memcpy(wanted, before, ROOM);
	if (ops[o] == MPI_REPLACE)
		memcpy(wanted, origin, ROOM);
	else
		MPI_Reduce_local(origin, wanted, n, type, ops[o]);
	MPI_Put(before, n, type, target, shift, n, type, win);
	if (call == 0)
		MPI_Accumulate(origin, n, type, target, shift, n, type, ops[o], win);
	else if (call == 1)
		MPI_Get_accumulate(origin, n, type, result, n, type, target, shift, n, type, ops[o],
				   win);
	else
		MPI_Fetch_and_op(origin, result, type, target, shift, ops[o], win);
	MPI_Get(now, n, type, target, shift, n, type, win);
	MPI_Win_flush(target, win);
	expect(same(now, wanted, type, n), "operator %d on %d %s at %d by call %d is wrong", o, n,
	       name_of(type), shift, call);
	expect(!call || same(result, before, type, n), "operator %d on %d %s at %d: fetched wrong",
	       o, n, name_of(type), shift);
	tested++;
}

static void all_operators(int lock)
{
	int t, o, shift;

	MPI_Win_lock(lock, target, 0, win);
	for (t = 0; t < NR_TYPES; t++)
		for (o = 0; o < NR_OPS; o++) {
			if (!is_defined(ops[o], types[t]))
				continue;
			for (shift = 0; shift < 4; shift += shift + 1) {
				one(types[t], o, 1, shift, 0);
				one(types[t], o, MOST, shift, 0);
				one(types[t], o, 1, shift, 1);
				one(types[t], o, MOST, shift, 1);
				one(types[t], o, 1, shift, 2);
			}
		}
	MPI_Win_unlock(target, win);
}

/* ---- unsigned numbers above half their range ---- */

#define CHECK_UNSIGNED(ctype, type)							\
	do {										\
		ctype high = (ctype)~(ctype)0, low = 1, old = 0, now = 0;		\
											\
		MPI_Put(&low, 1, type, target, 0, 1, type, win);			\
		MPI_Win_flush(target, win);						\
		MPI_Fetch_and_op(&high, &old, type, target, 0, MPI_MAX, win);		\
		MPI_Win_flush(target, win);						\
		MPI_Get(&now, 1, type, target, 0, 1, type, win);			\
		MPI_Win_flush(target, win);						\
		expect(old == low && now == high, "maximum of %s is wrong", #type);	\
		MPI_Accumulate(&low, 1, type, target, 0, 1, type, MPI_SUM, win);	\
		MPI_Win_flush(target, win);						\
		MPI_Get(&now, 1, type, target, 0, 1, type, win);			\
		MPI_Win_flush(target, win);						\
		expect(now == 0, "sum of %s does not wrap around", #type);		\
		MPI_Put(&high, 1, type, target, 0, 1, type, win);			\
		MPI_Win_flush(target, win);						\
		MPI_Accumulate(&low, 1, type, target, 0, 1, type, MPI_MIN, win);	\
		MPI_Win_flush(target, win);						\
		MPI_Get(&now, 1, type, target, 0, 1, type, win);			\
		MPI_Win_flush(target, win);						\
		expect(now == low, "minimum of %s is wrong", #type);			\
	} while (0)

static void unsigned_numbers(int lock)
{
	MPI_Win_lock(lock, target, 0, win);
	CHECK_UNSIGNED(uint8_t, MPI_UINT8_T);
	CHECK_UNSIGNED(uint16_t, MPI_UINT16_T);
	CHECK_UNSIGNED(uint32_t, MPI_UINT32_T);
	CHECK_UNSIGNED(uint64_t, MPI_UINT64_T);
	CHECK_UNSIGNED(unsigned long long, MPI_UNSIGNED_LONG_LONG);
	MPI_Win_unlock(target, win);
}

/* ---- all ranks at once ---- */

static void fill_ones(unsigned char *buf, MPI_Datatype type)
{
	int i;

	memset(buf, 0, ROOM);
	for (i = 0; i < MOST; i++) {
		if (type == MPI_DOUBLE || type == MPI_C_DOUBLE_COMPLEX)
			*(double *)(buf + i * extent_of(type)) = 1;
		else if (type == MPI_FLOAT || type == MPI_C_FLOAT_COMPLEX)
			*(float *)(buf + i * extent_of(type)) = 1;
		else if (type == MPI_LONG_DOUBLE)
			((long double *)buf)[i] = 1;
		else
			buf[i * extent_of(type)] = 1;
	}
}

/* All add to the same elements of rank 0: at the end, each has had all. */
static void sum_by_all(MPI_Datatype type, int shift)
{
	static _Alignas(16) unsigned char ones[ROOM], zeros[ROOM], wanted[ROOM], now[ROOM];
	/* No sum overflows. */
	const int rounds = 120 / size < MOST_ROUNDS ? 120 / size : MOST_ROUNDS;
	int i;

	fill_ones(ones, type);
	if (!rank) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Put(zeros, ROOM - 8, MPI_BYTE, 0, shift, ROOM - 8, MPI_BYTE, win);
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (i = 0; i < rounds; i++) {
		if (i % 3 == 0)
			MPI_Get_accumulate(ones, MOST, type, now, MOST, type, 0, shift, MOST, type,
					   MPI_SUM, win);
		else
			MPI_Accumulate(ones, MOST, type, 0, shift, MOST, type, MPI_SUM, win);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	memset(wanted, 0, ROOM);
	for (i = 0; i < rounds * size; i++)
		MPI_Reduce_local(ones, wanted, MOST, type, MPI_SUM);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Get(now, MOST, type, 0, shift, MOST, type, win);
	MPI_Win_unlock(0, win);
	expect(same(now, wanted, type, MOST), "sums of %s at %d are wrong", name_of(type), shift);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void all_at_once(void)
{
	static const MPI_Datatype of[] = {
		MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_UINT64_T, MPI_FLOAT, MPI_DOUBLE,
		MPI_LONG_DOUBLE, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX,
	};
	int i;

	for (i = 0; i < (int)(sizeof(of) / sizeof(of[0])); i++) {
		sum_by_all(of[i], 0);
		sum_by_all(of[i], 4);
		sum_by_all(of[i], 1);
	}
}

#define WINDOWS 12
#define ARRAYS 3000

/*
 * Rank 0 adds arrays of ones, and meanwhile the others begin to add to single elements, in windows
 * in which nobody has done so before.
 */
static void first_single_beside_arrays(void)
{
	int64_t ones[MOST], sums[MOST], *mem, sum, one = 1, old;
	MPI_Win fresh;
	int w, i;

	for (i = 0; i < MOST; i++)
		ones[i] = 1;
	for (w = 0; w < WINDOWS; w++) {
		MPI_Win_allocate(sizeof(ones), sizeof(*ones), MPI_INFO_NULL, MPI_COMM_WORLD, &mem,
				 &fresh);
		memset(mem, 0, sizeof(ones));
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_lock_all(0, fresh);
		for (i = 0; i < ARRAYS; i++) {
			if (!rank)
				MPI_Accumulate(ones, MOST, MPI_INT64_T, 0, 0, MOST, MPI_INT64_T,
					       MPI_SUM, fresh);
			else
				MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, i % MOST, MPI_SUM,
						 fresh);
		}
		MPI_Win_unlock_all(fresh);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, fresh);
		MPI_Get(sums, MOST, MPI_INT64_T, 0, 0, MOST, MPI_INT64_T, fresh);
		MPI_Win_unlock(0, fresh);
		for (sum = 0, i = 0; i < MOST; i++)
			sum += sums[i];
		expect(sum == (int64_t)ARRAYS * (MOST + size - 1), "window %d has %lld of %lld", w,
		       (long long)sum, (long long)ARRAYS * (MOST + size - 1));
		MPI_Win_free(&fresh);
	}
}

/* Programs exchange structures as bytes: nobody sees half of one. */
static void structures(void)
{
	unsigned char ours[16], seen[16];
	int i, k, halves = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (i = 0; i < 2000; i++) {
		memset(ours, size * (i % 10) + rank, sizeof(ours));
		MPI_Accumulate(ours, 16, MPI_BYTE, 0, 0, 16, MPI_BYTE, MPI_REPLACE, win);
		MPI_Get_accumulate(NULL, 0, MPI_BYTE, seen, 16, MPI_BYTE, 0, 0, 16, MPI_BYTE,
				   MPI_NO_OP, win);
		MPI_Win_flush(0, win);
		for (k = 1; k < 16; k++)
			halves += seen[k] != seen[0];
	}
	MPI_Win_unlock_all(win);
	expect(!halves, "%d bytes are from another structure", halves);
	MPI_Barrier(MPI_COMM_WORLD);
}

#define ADDITIONS 20000

struct mixed {
	int number;
	double real;
};

static MPI_Datatype mixed_type(void)
{
	const int length[] = { 1, 1 };
	const MPI_Aint at[] = { offsetof(struct mixed, number), offsetof(struct mixed, real) };
	MPI_Datatype type, members[] = { MPI_INT, MPI_DOUBLE };

	MPI_Type_create_struct(2, length, at, members, &type);
	MPI_Type_commit(&type);
	return type;
}

/* Others add to a member of a structure that one rank takes, and sets to 0. */
static void take_structure(void)
{
	MPI_Datatype type = mixed_type();
	struct mixed zero = { 0, 0 }, taken;
	int one = 1, before, finished = 0, all = 0, i;
	MPI_Request others;
	long sum = 0;

	memset(memory, 0, sizeof(zero));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (i = 0; rank && i < ADDITIONS; i++) {
		MPI_Fetch_and_op(&one, &before, MPI_INT, size - 1, 0, MPI_SUM, win);
		MPI_Win_flush(size - 1, win);
	}
	MPI_Ibarrier(MPI_COMM_WORLD, &others);
	for (; !all; all = finished) {
		MPI_Test(&others, &finished, MPI_STATUS_IGNORE);
		for (i = 0; !rank && i < 100; i++) {
			MPI_Get_accumulate(&zero, 1, type, &taken, 1, type, size - 1, 0, 1, type,
					   MPI_REPLACE, win);
			MPI_Win_flush(size - 1, win);
			sum += taken.number;
		}
	}
	MPI_Win_unlock_all(win);
	expect(rank || sum == (long)ADDITIONS * (size - 1), "%ld of %d additions were taken", sum,
	       ADDITIONS * (size - 1));
	MPI_Type_free(&type);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- compare and swap ---- */

#define DRAWS 200

/* Each number is drawn by one rank, at any alignment. */
static void draw(MPI_Datatype type, int bytes, int shift)
{
	int64_t drawn = 0, sum, old, next, seen, zero = 0;
	const int draws = bytes == 1 ? 100 / size : DRAWS;
	int i;

	if (!rank) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Put(&zero, bytes, MPI_BYTE, 0, shift, bytes, MPI_BYTE, win);
		MPI_Win_unlock(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	for (i = 0; i < draws; i++) {
		seen = 0;
		do {
			old = seen;
			next = old + 1;
			seen = 0;
			MPI_Compare_and_swap(&next, &old, &seen, type, 0, shift, win);
			MPI_Win_flush(0, win);
		} while (seen != old);
		drawn += old;
	}
	MPI_Win_unlock_all(win);
	MPI_Allreduce(&drawn, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	next = (int64_t)draws * size;
	expect(sum == next * (next - 1) / 2, "%s at %d: %lld was drawn", name_of(type), shift,
	       (long long)sum);
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	target = (rank + 1) % size;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	all_operators(MPI_LOCK_SHARED);
	MPI_Barrier(MPI_COMM_WORLD);
	all_operators(MPI_LOCK_EXCLUSIVE);
	expect(tested > 2000, "only %d operations were tested", tested);
	MPI_Barrier(MPI_COMM_WORLD);
	unsigned_numbers(MPI_LOCK_SHARED);
	MPI_Barrier(MPI_COMM_WORLD);
	unsigned_numbers(MPI_LOCK_EXCLUSIVE);
	MPI_Barrier(MPI_COMM_WORLD);
	all_at_once();
	first_single_beside_arrays();
	structures();
	take_structure();
	draw(MPI_INT8_T, 1, 0);
	draw(MPI_UINT16_T, 2, 0);
	draw(MPI_INT, 4, 4);
	draw(MPI_INT64_T, 8, 0);
	draw(MPI_INT64_T, 8, 3);
	MPI_Win_free(&win);
	return finish();
}
