/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A send or receive buffer of several blocks, with a random layout. */
#ifndef PVAS_TEST_COLL_SIDES_H
#define PVAS_TEST_COLL_SIDES_H

#include "common.h"
#include "layouts.h"

#define GUARD 64
#define MOST_BLOCKS 64

struct side {
	struct layout layout;
	char *memory, *buf;
	size_t bytes;
	int nr, count, counts[MOST_BLOCKS], displs[MOST_BLOCKS], displs_w[MOST_BLOCKS];
	MPI_Aint displs_wa[MOST_BLOCKS];
	MPI_Datatype types[MOST_BLOCKS];
};

/*
 * @nr blocks, in random order and with gaps. The @elements of each are a multiple of ELEMENTS;
 * operations with equal blocks have those of the first.
 */
static inline void make_side(struct side *side, uint64_t *own, MPI_Datatype base,
			     const int *elements, int nr)
{
	MPI_Aint lb, extent, true_lb, true_extent;
	int i, k, at = 1;

	side->nr = nr;
	side->layout = layout_create(below(own, NR_LAYOUTS), base);
	MPI_Type_get_extent(side->layout.type, &lb, &extent);
	MPI_Type_get_true_extent(side->layout.type, &true_lb, &true_extent);
	for (k = 0; k < nr; k++) {
		i = nr % 5 ? (k * 5 + 3) % nr : k;
		side->counts[i] = elements[i] / side->layout.elements;
		side->displs[i] = at;
		side->displs_wa[i] = side->displs_w[i] = at * extent;
		side->types[i] = side->layout.type;
		at += side->counts[i] + below(own, 3);
	}
	side->count = nr ? elements[0] / side->layout.elements : 0;
	if (at < nr * side->count)
		at = nr * side->count;
	/* A layout may begin before, and end behind, its extent. */
	side->bytes = (at + 2) * extent + true_extent + 2 * GUARD + 32 * extent;
	side->memory = malloc(side->bytes);
	side->buf = side->memory + GUARD + 2 * extent;
	for (i = 0; i < (int)side->bytes; i++)
		side->memory[i] = mix(own);
}

static inline int block_elements(uint64_t *common, int longest)
{
	static const int few[] = { 0, 1, 1, 2, 4, 10 };

	if (below(common, 2))
		return ELEMENTS * few[below(common, 6)];
	return ELEMENTS * below(common, longest / ELEMENTS);
}

#endif /* PVAS_TEST_COLL_SIDES_H */
