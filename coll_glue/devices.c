// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which neighbors can be reached over several devices, and does the schedule gain? The first
 * neighborhood operation of a communicator finds out, and all ranks must come to one answer.
 */
#include "devices.h"
#include "neighbor.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/coll/base/coll_tags.h"

#define component mca_coll_pvas_component

#define LONG_LONG (&ompi_mpi_long_long_int.dt)

/* ---- memory ---- */

static void free_side(struct mca_coll_pvas_side *side)
{
	free(side->edges);
	free(side->scheduled);
	free(side->used);
}

void mca_coll_pvas_devices_free(struct mca_coll_pvas_devices *d)
{
	mca_coll_pvas_devices_remove(d);
	free_side(&d->out);
	free_side(&d->in);
	free(d);
}

static bool make_side(struct mca_coll_pvas_side *side, const int *ranks, int nr)
{
	int i;

	side->nr = nr;
	side->edges = calloc(nr ? nr : 1, sizeof(*side->edges));
	side->scheduled = calloc(nr ? nr : 1, sizeof(struct mca_coll_pvas_edge *));
	side->used = calloc((size_t)(nr ? nr : 1) * MCA_COLL_PVAS_DEVICES_MOST, sizeof(bool));
	for (i = 0; side->edges && i < nr; i++)
		side->edges[i].rank = ranks[i];
	return side->edges && side->scheduled && side->used;
}

static struct mca_coll_pvas_devices *make(struct ompi_communicator_t *comm)
{
	struct mca_coll_pvas_devices *d = calloc(1, sizeof(*d));
	struct mca_coll_pvas_neighbors *n = mca_coll_pvas_topology(comm);

	if (d)
		d->comm = comm;
	if (d && n && make_side(&d->out, n->destinations, n->nr_destinations) &&
	    make_side(&d->in, n->sources, n->nr_sources)) {
		free(n);
		return d;
	}
	free(n);
	if (d)
		mca_coll_pvas_devices_free(d);
	return NULL;
}

/* ---- devices ---- */

/* Can it put data of any length and alignment anywhere, without further ado? */
static bool puts_anywhere(const mca_btl_base_module_t *btl)
{
	return btl->btl_flags & MCA_BTL_FLAGS_PUT && btl->btl_put && !btl->btl_register_mem &&
	       btl->btl_put_limit >= SIZE_MAX / 2 && btl->btl_put_alignment <= 1;
}

static int device_of(struct mca_coll_pvas_devices *d, mca_btl_base_module_t *btl)
{
	unsigned int i;

	for (i = 0; i < d->nr; i++)
		if (d->modules[i] == btl)
			return i;
	return -1;
}

/* All neighbors are reached over the same devices, those of the first one, or by the PML. */
static bool find_ways(struct mca_coll_pvas_devices *d, struct mca_coll_pvas_edge *edge)
{
	mca_bml_base_endpoint_t *endpoint =
		mca_bml_base_get_endpoint(ompi_comm_peer_lookup(d->comm, edge->rank));
	const size_t nr = endpoint ? mca_bml_base_btl_array_get_size(&endpoint->btl_send) : 0;
	mca_bml_base_btl_t *way;
	size_t i;
	int at;

	if (nr < 2 || nr > MCA_COLL_PVAS_DEVICES_MOST || (d->nr && nr != d->nr))
		return false;
	for (i = 0; i < nr; i++)
		if (!puts_anywhere(endpoint->btl_send.bml_btls[i].btl))
			return false;
	for (i = 0; !d->nr && i < nr; i++)
		d->modules[i] = endpoint->btl_send.bml_btls[i].btl;
	d->nr = nr;
	for (i = 0; i < nr; i++) {
		way = mca_bml_base_btl_array_get_index(&endpoint->btl_send, i);
		at = device_of(d, way->btl);
		if (at < 0)
			return false;
		edge->ways[at] = way;
	}
	return true;
}

/* Messages to ranks of this node, and to oneself, go over no device. */
static uint32_t find_edges(struct mca_coll_pvas_devices *d, struct mca_coll_pvas_side *side,
			   uint64_t home)
{
	struct mca_coll_pvas_edge *edge;
	uint32_t found = 0;

	for (edge = side->edges; edge < side->edges + side->nr; edge++) {
		if (edge->rank == MPI_PROC_NULL ||
		    mca_coll_pvas_home(d->comm, edge->rank) == home)
			continue;
		edge->on_devices = find_ways(d, edge);
		found += edge->on_devices;
	}
	return found;
}

/* ---- agreement ---- */

static int least_of_all(struct mca_coll_pvas_nodes *m, long long *value)
{
	return m->previous.allreduce(MPI_IN_PLACE, value, 1, LONG_LONG, &ompi_mpi_op_min.op,
				     m->comm, m->previous.allreduce_module);
}

/* A rank tells its destinations the number of the edge, and how it is used there. */
struct told {
	int number;
	int on_devices;
	int scheduled;
};

#define TOLD_INTS ((int)(sizeof(struct told) / sizeof(int)))

static void hear(struct mca_coll_pvas_edge *edge, const struct told *told, bool *same)
{
	if (edge->rank == MPI_PROC_NULL)
		return;
	edge->number = told->number;
	edge->scheduled = told->scheduled;
	*same &= edge->on_devices == told->on_devices;
}

/* Tell destinations, and hear from sources; false in @same: both ends of an edge differ. */
static int tell_neighbors(struct mca_coll_pvas_nodes *m, struct mca_coll_pvas_devices *d,
			  bool *same)
{
	const int nr = d->out.nr + d->in.nr;
	struct told *told = calloc(nr ? nr : 1, sizeof(*told)), *heard;
	int i, rc;

	if (!told)
		return OMPI_ERR_OUT_OF_RESOURCE;
	heard = told + d->out.nr;
	for (i = 0; i < d->out.nr; i++)
		told[i] = (struct told) {
			i, d->out.edges[i].on_devices, d->out.edges[i].scheduled,
		};
	rc = m->previous.neighbor_alltoall(told, TOLD_INTS, &ompi_mpi_int.dt, heard, TOLD_INTS,
					   &ompi_mpi_int.dt, d->comm,
					   m->previous.neighbor_alltoall_module);
	for (i = 0; rc == OMPI_SUCCESS && i < d->in.nr; i++)
		hear(&d->in.edges[i], &heard[i], same);
	free(told);
	return rc;
}

/* Put those that are scheduled at this end in the order of the schedule. */
static void list_scheduled(struct mca_coll_pvas_devices *d, struct mca_coll_pvas_side *side,
			   bool by_sender)
{
	struct mca_coll_pvas_edge *edge;

	side->schedule = (struct mca_coll_pvas_schedule) { .devices = d->nr };
	for (edge = side->edges; edge < side->edges + side->nr; edge++)
		if (edge->on_devices && edge->scheduled == by_sender)
			side->scheduled[side->schedule.neighbors++] = edge;
}

/* The shortest message with which a schedule of one of both sides gains */
static long long find_least(struct mca_coll_pvas_devices *d, uint32_t destinations,
			    uint32_t sources)
{
	const struct mca_coll_pvas_schedule out = { destinations, d->nr }, in = { sources, d->nr };
	uint64_t mbit = component.device_bandwidth, least, other;

	if (!d->nr)
		return LLONG_MAX;
	if (!mbit)
		mbit = d->modules[0]->btl_bandwidth;
	least = mca_coll_pvas_schedule_least(out, component.device_latency, mbit);
	other = mca_coll_pvas_schedule_least(in, component.device_latency, mbit);
	if (other < least)
		least = other;
	return least < LLONG_MAX ? (long long)least : LLONG_MAX;
}

static int agree(struct mca_coll_pvas_nodes *m, struct mca_coll_pvas_devices *d, bool listening,
		 long long *least)
{
	const uint64_t home = mca_coll_pvas_home(d->comm, ompi_comm_rank(d->comm));
	const uint32_t destinations = find_edges(d, &d->out, home);
	const uint32_t sources = find_edges(d, &d->in, home);
	const bool mine = mca_coll_pvas_schedule_gains((struct mca_coll_pvas_schedule) {
		destinations, d->nr,
	});
	long long all_same;
	bool same = listening && d->out.nr < MCA_COLL_BASE_TAG_NEIGHBOR_BASE -
					     MCA_COLL_BASE_TAG_NEIGHBOR_END;
	int i, rc;

	for (i = 0; i < d->out.nr; i++)
		d->out.edges[i].scheduled = mine && d->out.edges[i].on_devices;
	*least = find_least(d, destinations, sources);
	rc = least_of_all(m, least);
	if (rc != OMPI_SUCCESS || *least == LLONG_MAX)
		return rc;
	rc = tell_neighbors(m, d, &same);
	all_same = same;
	mca_coll_pvas_and_then(&rc, least_of_all(m, &all_same));
	if (!all_same)
		*least = LLONG_MAX;
	list_scheduled(d, &d->out, true);
	list_scheduled(d, &d->in, false);
	return rc;
}

/* A rank without memory takes part in the first agreement, so that no other one waits for it. */
static struct mca_coll_pvas_devices *attach(struct mca_coll_pvas_nodes *m)
{
	const bool listening = mca_coll_pvas_devices_listen();
	struct mca_coll_pvas_devices *d = make(m->comm);
	long long least = -1, ready = d != NULL;
	int rc = least_of_all(m, &ready);

	if (rc == OMPI_SUCCESS && ready) {
		mca_coll_pvas_devices_add(d);
		rc = agree(m, d, listening, &least);
	}
	if (rc == OMPI_SUCCESS && ready && least != LLONG_MAX) {
		d->least = least;
		return d;
	}
	if (d)
		mca_coll_pvas_devices_free(d);
	return NULL;
}

/*
 * Begin an exchange; NULL: pass it on. All messages are of one length, but ranks without neighbors
 * on one side need not say so there.
 */
struct mca_coll_pvas_devices *mca_coll_pvas_devices_begin(struct mca_coll_pvas_nodes *m,
							  uint64_t sent, uint64_t received)
{
	uint64_t bytes;

	if (component.devices && !m->asked_devices) {
		m->asked_devices = true;
		m->devices = attach(m);
	}
	bytes = m->devices && !m->devices->out.nr ? received : sent;
	if (!m->devices || !bytes || bytes < m->devices->least) {
		mca_coll_pvas_count(passed_on, 1);
		return NULL;
	}
	mca_coll_pvas_count(operations, 1);
	m->devices->op++;
	return m->devices;
}
