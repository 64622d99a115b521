// SPDX-License-Identifier: LGPL-2.1-or-later
/* An exchange over several devices: which segment goes next, on each of them. */
#include "devices.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"
#include "opal/runtime/opal_progress.h"

#define component mca_coll_pvas_component

#define BYTE (&ompi_mpi_byte.dt)

/* An operation, with requests of the messages that are left to the PML */
struct move {
	struct mca_coll_pvas_devices *d;
	const struct mca_coll_pvas_exchange *x;
	ompi_request_t **requests;
	int nr_requests;
	bool moved;
};

static void fail(struct move *v, int rc)
{
	mca_coll_pvas_and_then(&v->d->error, rc);
}

static const char *block_to_send(const struct move *v, const struct mca_coll_pvas_edge *edge)
{
	return v->x->from + v->x->stride * (edge - v->d->out.edges);
}

static char *block_to_receive(const struct move *v, const struct mca_coll_pvas_edge *edge)
{
	return v->x->to + v->x->received * (edge - v->d->in.edges);
}

/* ---- the PML's ---- */

static int start_requests(struct move *v)
{
	struct mca_coll_pvas_devices *d = v->d;
	struct mca_coll_pvas_edge *edge;
	int rc = OMPI_SUCCESS;

	for (edge = d->in.edges; edge < d->in.edges + d->in.nr && rc == OMPI_SUCCESS; edge++)
		if (!edge->on_devices && edge->rank != MPI_PROC_NULL)
			rc = MCA_PML_CALL(irecv(block_to_receive(v, edge), v->x->received, BYTE,
						edge->rank,
						MCA_COLL_BASE_TAG_NEIGHBOR_BASE - edge->number,
						d->comm, &v->requests[v->nr_requests++]));
	for (edge = d->out.edges; edge < d->out.edges + d->out.nr && rc == OMPI_SUCCESS; edge++)
		if (!edge->on_devices && edge->rank != MPI_PROC_NULL)
			rc = MCA_PML_CALL(isend(block_to_send(v, edge), v->x->sent, BYTE,
						edge->rank, MCA_COLL_BASE_TAG_NEIGHBOR_BASE -
						(int)(edge - d->out.edges),
						MCA_PML_BASE_SEND_STANDARD, d->comm,
						&v->requests[v->nr_requests++]));
	return rc;
}

/* ---- grants ---- */

/* Not behind a segment, where there is a choice */
static mca_bml_base_btl_t *idle_way(struct mca_coll_pvas_devices *d,
				    const struct mca_coll_pvas_edge *edge)
{
	unsigned int i;

	for (i = 0; i < d->nr; i++)
		if (!atomic_load(&d->out.in_use[i]))
			return edge->ways[i];
	return edge->ways[0];
}

static void grant(struct move *v, struct mca_coll_pvas_edge *edge, unsigned int device,
		  uint64_t offset, uint64_t bytes)
{
	struct mca_coll_pvas_devices *d = v->d;

	fail(v, mca_coll_pvas_tell(idle_way(d, edge), &(struct mca_coll_pvas_message) {
		.kind = MCA_COLL_PVAS_GRANT, .communicator = d->comm->c_contextid,
		.edge = edge->number, .back = edge - d->in.edges, .device = device, .op = d->op,
		.address = (uintptr_t)block_to_receive(v, edge) + offset, .offset = offset,
		.bytes = bytes, .total = v->x->received,
	}));
	v->moved = true;
}

static void reset(struct mca_coll_pvas_side *side, uint64_t bytes)
{
	int i;

	for (i = 0; i < side->nr; i++) {
		side->edges[i].moved = side->edges[i].length = 0;
		side->edges[i].total = bytes;
	}
	memset(side->used, 0, (size_t)side->nr * MCA_COLL_PVAS_DEVICES_MOST);
}

static void grant_whole_messages(struct move *v)
{
	struct mca_coll_pvas_side *in = &v->d->in;
	struct mca_coll_pvas_edge *edge;

	for (edge = in->edges; edge < in->edges + in->nr; edge++)
		if (edge->on_devices && edge->scheduled)
			grant(v, edge, 0, 0, v->x->received);
}

static bool *used_at(struct mca_coll_pvas_side *side, unsigned int step, unsigned int device)
{
	return &side->used[step * side->schedule.devices + device];
}

static bool is_busy(struct mca_coll_pvas_side *side, unsigned int device)
{
	return component.device_ahead &&
	       atomic_load(&side->in_use[device]) >= component.device_ahead;
}

/* As receiver: the next segment that this device carries */
static void grant_next(struct move *v, unsigned int device)
{
	struct mca_coll_pvas_side *in = &v->d->in;
	const unsigned int steps = mca_coll_pvas_steps(in->schedule);
	struct mca_coll_pvas_part part;
	unsigned int step;

	for (step = 0; step < steps; step++) {
		if (*used_at(in, step, device))
			continue;
		if (is_busy(in, device))
			return;
		*used_at(in, step, device) = true;
		part = mca_coll_pvas_part_at(in->schedule, v->x->received, step, device);
		if (!part.bytes)
			continue;
		atomic_fetch_add(&in->in_use[device], 1);
		grant(v, in->scheduled[part.neighbor], device, part.offset, part.bytes);
	}
}

/* ---- segments ---- */

/* Needed when a put is complete here, which a BTL may say within the put */
struct put {
	struct mca_coll_pvas_devices *d;
	unsigned int device;
};

static void put_is_complete(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
			    void *address, mca_btl_base_registration_handle_t *handle,
			    void *context, void *data, int status)
{
	struct put *put = data;

	(void)btl;
	(void)endpoint;
	(void)address;
	(void)handle;
	(void)context;
	if (status != OMPI_SUCCESS)
		put->d->error = status;
	atomic_fetch_sub(&put->d->out.in_use[put->device], 1);
	atomic_fetch_sub(&put->d->putting, 1);
	free(put);
}

static int start_put(struct move *v, const struct mca_coll_pvas_edge *edge, unsigned int device,
		     const char *from, uint64_t to, uint64_t bytes)
{
	struct mca_coll_pvas_devices *d = v->d;
	struct put *put = malloc(sizeof(*put));
	int rc;

	if (!put)
		return OMPI_ERR_OUT_OF_RESOURCE;
	*put = (struct put) { .d = d, .device = device };
	atomic_fetch_add(&d->out.in_use[device], 1);
	atomic_fetch_add(&d->putting, 1);
	rc = mca_bml_base_put(edge->ways[device], (void *)from, to, NULL, NULL, bytes, 0,
			      MCA_BTL_NO_ORDER, put_is_complete, put);
	if (rc >= OMPI_SUCCESS) {
		mca_coll_pvas_count(segments, 1);
		return OMPI_SUCCESS;
	}
	atomic_fetch_sub(&d->out.in_use[device], 1);
	atomic_fetch_sub(&d->putting, 1);
	free(put);
	return rc;
}

/* Put so much of a segment as both sides have, and say so. */
static void send_segment(struct move *v, struct mca_coll_pvas_edge *edge, unsigned int device,
			 const struct mca_coll_pvas_message *granted, uint64_t offset,
			 uint64_t bytes)
{
	const uint64_t skipped = offset - granted->offset;
	uint64_t room = granted->bytes > skipped ? granted->bytes - skipped : 0;
	const uint64_t left = v->x->sent > offset ? v->x->sent - offset : 0;
	uint64_t n = bytes;

	if (n > room)
		n = room;
	if (n > left)
		n = left;
	if (n)
		fail(v, start_put(v, edge, device, block_to_send(v, edge) + offset,
				  granted->address + skipped, n));
	fail(v, mca_coll_pvas_tell(edge->ways[device], &(struct mca_coll_pvas_message) {
		.kind = MCA_COLL_PVAS_DONE, .communicator = v->d->comm->c_contextid,
		.edge = granted->back, .device = device, .op = v->d->op, .offset = offset,
		.bytes = bytes, .total = v->x->sent,
	}));
	edge->moved += bytes;
	edge->total = granted->total;
	v->moved = true;
}

/*
 * By our schedule: the first segment of this device that its receiver is ready for; another one
 * when this one has left.
 */
static void send_next(struct move *v, unsigned int device, bool *left)
{
	struct mca_coll_pvas_side *out = &v->d->out;
	const unsigned int steps = mca_coll_pvas_steps(out->schedule);
	struct mca_coll_pvas_message granted;
	struct mca_coll_pvas_part part;
	unsigned int step;

	for (step = 0; step < steps; step++) {
		if (*used_at(out, step, device))
			continue;
		*left = true;
		if (is_busy(out, device))
			return;
		part = mca_coll_pvas_part_at(out->schedule, v->x->sent, step, device);
		if (part.bytes && !mca_coll_pvas_take_grant(v->d, out->scheduled[part.neighbor],
							    &granted))
			continue;
		*used_at(out, step, device) = true;
		if (part.bytes)
			send_segment(v, out->scheduled[part.neighbor], device, &granted,
				     part.offset, part.bytes);
	}
}

/* By their schedules: on the device that the receiver chose, which it has granted to us alone. */
static void send_granted(struct move *v)
{
	struct mca_coll_pvas_side *out = &v->d->out;
	struct mca_coll_pvas_message granted;
	struct mca_coll_pvas_edge *edge;

	for (edge = out->edges; edge < out->edges + out->nr; edge++)
		while (edge->on_devices && !edge->scheduled && edge->nr_grants &&
		       mca_coll_pvas_take_grant(v->d, edge, &granted))
			send_segment(v, edge, granted.device, &granted, granted.offset,
				     granted.bytes);
}

/* ---- the operation ---- */

static void rest(struct move *v)
{
	mca_coll_pvas_count(waits, 1);
	opal_progress();
	if (component.yield && !v->moved)
		sched_yield();
	v->moved = false;
}

/* True: not all that we schedule as sender has been put. */
static bool move_on(struct move *v)
{
	bool left = false;
	unsigned int i;

	for (i = 0; i < v->d->nr; i++) {
		grant_next(v, i);
		send_next(v, i, &left);
	}
	send_granted(v);
	return left;
}

/* A message that its sender has longer than we have room for */
static int find_truncated(const struct move *v)
{
	const struct mca_coll_pvas_side *in = &v->d->in;
	int i;

	for (i = 0; i < in->nr; i++)
		if (in->edges[i].length > v->x->received)
			return MPI_ERR_TRUNCATE;
	return OMPI_SUCCESS;
}

/* Have those that choose segments themselves had all that they expect? */
static bool all_sent(struct move *v)
{
	const struct mca_coll_pvas_side *out = &v->d->out;
	int i;

	for (i = 0; i < out->nr; i++)
		if (out->edges[i].on_devices && !out->edges[i].scheduled &&
		    out->edges[i].moved < out->edges[i].total)
			return false;
	return !atomic_load(&v->d->putting);
}

int mca_coll_pvas_devices_exchange(struct mca_coll_pvas_devices *d,
				   const struct mca_coll_pvas_exchange *x)
{
	struct move v = { .d = d, .x = x };
	int rc;

	v.requests = malloc((d->in.nr + d->out.nr + 1) * sizeof(ompi_request_t *));
	if (!v.requests)
		return OMPI_ERR_OUT_OF_RESOURCE;
	d->error = OMPI_SUCCESS;
	reset(&d->out, x->sent);
	reset(&d->in, x->received);
	grant_whole_messages(&v);
	fail(&v, start_requests(&v));
	while (d->error == OMPI_SUCCESS &&
	       (move_on(&v) || !all_sent(&v) || !mca_coll_pvas_all_arrived(d)))
		rest(&v);
	rc = d->error;
	mca_coll_pvas_and_then(&rc, ompi_request_wait_all(v.nr_requests, v.requests,
							  MPI_STATUSES_IGNORE));
	mca_coll_pvas_drop_grants(d);
	mca_coll_pvas_and_then(&rc, find_truncated(&v));
	free(v.requests);
	return rc;
}
