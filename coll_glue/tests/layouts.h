/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Datatypes of the same elements in different layouts. */
#ifndef PVAS_TEST_COLL_LAYOUTS_H
#define PVAS_TEST_COLL_LAYOUTS_H

#include <mpi.h>

#define NR_LAYOUTS 11
#define ELEMENTS 48	/* a multiple of the number of elements in each layout */

struct layout {
	MPI_Datatype type;
	int elements;
};

/* A part of an array, at one of several places: the same layout but for a distance */
static inline MPI_Datatype layout_part(int place, MPI_Datatype base)
{
	static const int whole[] = { 3, 4, 6 }, part[] = { 2, 3, 2 };
	const int at[] = { place & 1, place >> 1, 2 * place - place / 2 };
	MPI_Datatype type;

	MPI_Type_create_subarray(3, whole, part, at, MPI_ORDER_C, base, &type);
	return type;
}

/* Pieces that are not short */
static inline MPI_Datatype layout_long(MPI_Datatype base, MPI_Aint extent)
{
	MPI_Datatype inner, type;

	MPI_Type_contiguous(ELEMENTS, base, &inner);
	MPI_Type_create_resized(inner, 0, (ELEMENTS + 2) * extent, &type);
	MPI_Type_free(&inner);
	return type;
}

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
	case 6:
	case 7:
	case 8:
		l.type = layout_part(which - 6, base);
		l.elements = 12;
		break;
	case 9:
		l.type = layout_long(base, extent);
		l.elements = ELEMENTS;
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
