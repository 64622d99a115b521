// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Put, get and accumulates between each layout of a datatype and each other one. The result must
 * be that of MPI_Pack and MPI_Unpack, and of MPI_Reduce_local; nothing else in the buffers changes.
 */
#include "common.h"

#include "../../coll_glue/tests/layouts.h"

#define BYTES 16384
#define AT(buf) ((buf) + 4096)	/* Layouts reach below their address. */

static unsigned char origin[BYTES], result[BYTES], expected[BYTES], before[BYTES], packed[BYTES];
static unsigned char *memory;
static MPI_Win win;
static int target;

static void fill(unsigned char *buf, int key, int bytes, MPI_Datatype base)
{
	int i, extent;

	MPI_Type_size(base, &extent);
	for (i = 0; i < bytes; i++)
		buf[i] = base == MPI_DOUBLE || i % extent ? 0 : key + i / extent;
	if (base == MPI_DOUBLE)
		for (i = 0; i < bytes / 8; i++)
			((double *)buf)[i] = key + i;
}

/* As a copy between layouts leaves it in @to */
static void copy(unsigned char *to, const struct layout *to_layout, const unsigned char *from,
		 const struct layout *from_layout)
{
	int at = 0, bytes;

	MPI_Pack(AT(from), ELEMENTS / from_layout->elements, from_layout->type, packed, BYTES, &at,
		 MPI_COMM_SELF);
	bytes = at;
	at = 0;
	MPI_Unpack(packed, bytes, &at, AT(to), ELEMENTS / to_layout->elements, to_layout->type,
		   MPI_COMM_SELF);
}

static void compare(const unsigned char *got, const char *what, int a, int b)
{
	expect(!memcmp(got, expected, BYTES), "%s between layouts %d and %d is wrong", what, a, b);
}

/* Nobody else accesses the target, so nobody needs to wait. */
static void prepare(MPI_Datatype base)
{
	fill(origin, 50 + rank, BYTES, base);
	memset(result, 0xee, BYTES);
	fill(before, 1 + target, BYTES, base);
	MPI_Put(before, BYTES, MPI_BYTE, target, 0, BYTES, MPI_BYTE, win);
	MPI_Win_flush(target, win);
}

/* The target's memory, as it is after the operation */
static void look(unsigned char *at)
{
	MPI_Get(at, BYTES, MPI_BYTE, target, 0, BYTES, MPI_BYTE, win);
	MPI_Win_flush(target, win);
}

#define ARGUMENTS(l) ELEMENTS / (l)->elements, (l)->type

static void put_and_get(MPI_Datatype base, const struct layout *a, const struct layout *b, int i,
			int j)
{
	static unsigned char now[BYTES];

	prepare(base);
	MPI_Put(AT(origin), ARGUMENTS(a), target, 4096, ARGUMENTS(b), win);
	MPI_Win_flush(target, win);
	memcpy(expected, before, BYTES);
	copy(expected, b, origin, a);
	look(now);
	compare(now, "put", i, j);
	prepare(base);
	MPI_Get(AT(result), ARGUMENTS(a), target, 4096, ARGUMENTS(b), win);
	MPI_Win_flush(target, win);
	memset(expected, 0xee, BYTES);
	copy(expected, a, before, b);
	compare(result, "get", i, j);
}

/* Layout @b of the target, with the origin's data combined into it */
static void combine(MPI_Datatype base, MPI_Op op, const struct layout *a, const struct layout *b)
{
	static unsigned char from[BYTES], to[BYTES];
	const struct layout flat = { base, 1 };

	copy(from, &flat, origin, a);
	copy(to, &flat, before, b);
	MPI_Reduce_local(AT(from), AT(to), ELEMENTS, base, op);
	memcpy(expected, before, BYTES);
	copy(expected, b, to, &flat);
}

static void accumulate(MPI_Datatype base, MPI_Op op, const struct layout *a,
		       const struct layout *b, int i, int j)
{
	static unsigned char now[BYTES];

	prepare(base);
	MPI_Get_accumulate(AT(origin), ARGUMENTS(a), AT(result), ARGUMENTS(a), target, 4096,
			   ARGUMENTS(b), op, win);
	MPI_Win_flush(target, win);
	combine(base, op, a, b);
	look(now);
	compare(now, "get_accumulate", i, j);
	memset(expected, 0xee, BYTES);
	copy(expected, a, before, b);
	compare(result, "get_accumulate's result", i, j);
	prepare(base);
	MPI_Accumulate(AT(origin), ARGUMENTS(a), target, 4096, ARGUMENTS(b), op, win);
	MPI_Win_flush(target, win);
	combine(base, op, a, b);
	look(now);
	compare(now, "accumulate", i, j);
}

static void replace(MPI_Datatype base, const struct layout *a, const struct layout *b, int i, int j)
{
	static unsigned char now[BYTES];

	prepare(base);
	MPI_Accumulate(AT(origin), ARGUMENTS(a), target, 4096, ARGUMENTS(b), MPI_REPLACE, win);
	memcpy(expected, before, BYTES);
	copy(expected, b, origin, a);
	look(now);
	compare(now, "replace", i, j);
	prepare(base);
	MPI_Get_accumulate(NULL, 0, base, AT(result), ARGUMENTS(a), target, 4096, ARGUMENTS(b),
			   MPI_NO_OP, win);
	memset(expected, 0xee, BYTES);
	copy(expected, a, before, b);
	compare(result, "no_op", i, j);
}

static void all_layouts(MPI_Datatype base, MPI_Op op, int lock)
{
	struct layout l[NR_LAYOUTS];
	int i, j;

	for (i = 0; i < NR_LAYOUTS; i++)
		l[i] = layout_create(i, base);
	MPI_Win_lock(lock, target, 0, win);
	for (i = 0; i < NR_LAYOUTS; i++)
		for (j = 0; j < NR_LAYOUTS; j++) {
			put_and_get(base, &l[i], &l[j], i, j);
			accumulate(base, op, &l[i], &l[j], i, j);
			replace(base, &l[i], &l[j], i, j);
		}
	MPI_Win_unlock(target, win);
	for (i = 0; i < NR_LAYOUTS; i++)
		MPI_Type_free(&l[i].type);
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	target = (rank + 1) % size;
	MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	all_layouts(MPI_INT, MPI_SUM, MPI_LOCK_SHARED);
	all_layouts(MPI_INT, MPI_MAX, MPI_LOCK_EXCLUSIVE);
	all_layouts(MPI_UNSIGNED_CHAR, MPI_BXOR, MPI_LOCK_SHARED);
	all_layouts(MPI_DOUBLE, MPI_PROD, MPI_LOCK_SHARED);
	all_layouts(MPI_2INT, MPI_MAXLOC, MPI_LOCK_SHARED);
	all_layouts(MPI_SHORT_INT, MPI_MINLOC, MPI_LOCK_SHARED);
	all_layouts(MPI_DOUBLE_INT, MPI_MAXLOC, MPI_LOCK_EXCLUSIVE);
	MPI_Win_free(&win);
	return finish();
}
