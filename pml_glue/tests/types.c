// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: types
 *
 * Messages from each layout of a datatype to each other one, short and long, posted before and
 * after, with and without room for all of it. The result must be that of MPI_Pack and
 * MPI_Unpack; nothing else in the buffer changes.
 */
#include "common.h"

#include "../../coll_glue/tests/layouts.h"

#define BYTES (1 << 18)

static unsigned char out[BYTES], in[BYTES], expected[BYTES], packed[BYTES];

/* Layouts reach below their address. */
#define AT(buf) ((buf) + 1024)

/* Those, and one whose rows go on at the same distance in the next element */
static struct layout create(int which, MPI_Datatype base)
{
	struct layout l = { .elements = 6 };
	MPI_Aint lb, extent;
	MPI_Datatype rows;

	if (which < NR_LAYOUTS)
		return layout_create(which, base);
	MPI_Type_get_extent(base, &lb, &extent);
	MPI_Type_vector(2, 3, 5, base, &rows);
	MPI_Type_create_resized(rows, 0, 10 * extent, &l.type);
	MPI_Type_free(&rows);
	MPI_Type_commit(&l.type);
	return l;
}

static void fits(int count, MPI_Datatype type)
{
	MPI_Aint lb, extent;

	MPI_Type_get_extent(type, &lb, &extent);
	if (lb < -1024 || (count + 1) * extent > BYTES - 1024) {
		fprintf(stderr, "types: %d of %ld bytes do not fit into the buffers\n", count,
			(long)extent);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
}

static void expect(int elements, int room, const struct layout *from, const struct layout *to)
{
	int at = 0, most;

	fits(elements / from->elements, from->type);
	fits(elements / to->elements, to->type);
	MPI_Pack(AT(out), elements / from->elements, from->type, packed, BYTES, &at,
		 MPI_COMM_SELF);
	most = at / elements * room;
	at = 0;
	MPI_Unpack(packed, most, &at, AT(expected), room / to->elements, to->type, MPI_COMM_SELF);
}

static void one(int elements, int room, int posted, const struct layout *from,
		const struct layout *to, int synchronous)
{
	const int right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Request req[2];
	int rc, class;

	memset(in, 0xee, sizeof(in));
	memset(expected, 0xee, sizeof(expected));
	expect(elements, room, from, to);
	if (posted)
		MPI_Irecv(AT(in), room / to->elements, to->type, left, 0, MPI_COMM_WORLD, &req[0]);
	MPI_Barrier(MPI_COMM_WORLD);
	if (synchronous)
		MPI_Issend(AT(out), elements / from->elements, from->type, right, 0,
			   MPI_COMM_WORLD, &req[1]);
	else
		MPI_Isend(AT(out), elements / from->elements, from->type, right, 0,
			  MPI_COMM_WORLD, &req[1]);
	if (!posted)
		MPI_Irecv(AT(in), room / to->elements, to->type, left, 0, MPI_COMM_WORLD, &req[0]);
	rc = MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	MPI_Error_class(rc, &class);
	check(class == (room < elements ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "wrong error class");
	MPI_Wait(&req[1], MPI_STATUS_IGNORE);
	check(!memcmp(in, expected, sizeof(in)), "wrong data");
}

static void pair(const struct layout *from, const struct layout *to)
{
	static const int times[] = { 1, 3, 10, 175 };
	int i, elements;

	for (i = 0; i < 4; i++) {
		elements = times[i] * ELEMENTS;
		one(elements, elements, i % 2, from, to, 0);
		one(elements, elements, !(i % 2), from, to, 1);
		if (i % 2)
			one(elements, elements - ELEMENTS, i / 2, from, to, 0);
	}
}

int main(int argc, char **argv)
{
	static const int bases = 2;
	const MPI_Datatype base[] = { MPI_CHAR, MPI_INT };
	struct layout from, to;
	size_t k;
	int b, i, j;

	begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (k = 0; k < sizeof(out); k++)
		out[k] = k * 7 + (k >> 8);
	for (b = 0; b < bases; b++)
		for (i = 0; i <= NR_LAYOUTS; i++)
			for (j = 0; j <= NR_LAYOUTS; j++) {
				from = create(i, base[b]);
				to = create(j, base[b]);
				pair(&from, &to);
				MPI_Type_free(&from.type);
				MPI_Type_free(&to.type);
			}
	return finish();
}
