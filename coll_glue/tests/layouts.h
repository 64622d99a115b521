/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Datatypes of the same elements in different layouts. */
#ifndef PVAS_TEST_COLL_LAYOUTS_H
#define PVAS_TEST_COLL_LAYOUTS_H

#include <mpi.h>

#define NR_LAYOUTS 7
#define ELEMENTS 12	/* a multiple of the number of elements in each layout */

struct layout {
	MPI_Datatype type;
	int elements;
};

static inline struct layout layout_create(int which, MPI_Datatype base)
{
	static const int reversed[] = { 7, 3, 0 }, lengths[] = { 1, 2, 3 }, at[] = { 9, 0, 4 };
	struct layout l = { .elements = 1 };
	MPI_Datatype inner;
	MPI_Aint lb, extent;

	MPI_Type_get_extent(base, &lb, &extent);
	switch (which) {
	case 0:
		MPI_Type_dup(base, &l.type);
		break;
	case 1:
		MPI_Type_contiguous(l.elements = 4, base, &l.type);
		break;
	case 2:
		MPI_Type_vector(2, 3, 5, base, &l.type);
		l.elements = 6;
		break;
	case 3:
		MPI_Type_create_indexed_block(3, 1, reversed, base, &l.type);
		l.elements = 3;
		break;
	case 4:
		MPI_Type_create_resized(base, -extent, 3 * extent, &l.type);
		break;
	case 5:
		MPI_Type_indexed(3, lengths, at, base, &l.type);
		l.elements = 6;
		break;
	default:
		MPI_Type_vector(2, 1, 2, base, &inner);
		MPI_Type_create_hvector(2, 1, 7 * extent, inner, &l.type);
		MPI_Type_free(&inner);
		l.elements = 4;
	}
	MPI_Type_commit(&l.type);
	return l;
}

#endif /* PVAS_TEST_COLL_LAYOUTS_H */
