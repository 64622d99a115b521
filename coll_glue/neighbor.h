/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The neighbors of a rank in its communicator's topology. */
#ifndef COLL_PVAS_NEIGHBOR_H
#define COLL_PVAS_NEIGHBOR_H

#include "coll_pvas.h"

/**
 * struct mca_coll_pvas_neighbors - a rank's neighbors
 * @sources:	ranks that it receives from, or MPI_PROC_NULL
 * @destinations: ranks that it sends to, or MPI_PROC_NULL
 * @block:	for each source: which of the source's destinations is this rank; negative:
 *		not known yet, or none of them
 * @known:	all ranks know @block without asking each other
 */
struct mca_coll_pvas_neighbors {
	int nr_sources;
	int nr_destinations;
	bool known;
	const int *sources;
	const int *destinations;
	int *block;
	int memory[];
};

/* topology.c */
struct mca_coll_pvas_neighbors *mca_coll_pvas_topology(struct ompi_communicator_t *comm);
bool mca_coll_pvas_find_neighbors(struct mca_coll_pvas_module *m);
int mca_coll_pvas_find_block(const struct mca_coll_pvas_module *m, int source,
			     const int *destinations, int nr);
void mca_coll_pvas_learn_blocks(struct mca_coll_pvas_module *m);
void mca_coll_pvas_wait_neighbors_finished(struct mca_coll_pvas_module *m, uint64_t op);

#endif /* COLL_PVAS_NEIGHBOR_H */
