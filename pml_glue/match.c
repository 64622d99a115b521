// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Matching. A message goes to the receive that was posted first among those that fit; a receive
 * takes the message that came first among those that fit. Only the receiver matches, and it
 * reads the messages of one sender in the order in which they were sent, so none overtakes.
 *
 * The caller holds the lock.
 */
#include "pml_pvas.h"

#include <stdlib.h>

#include "ompi/runtime/mpiruntime.h"

#define component mca_pml_pvas_component

/* Open MPI's own messages have negative tags, and must not be taken for a user's. */
static inline bool tag_fits(int wanted, int tag)
{
	return wanted == tag || (wanted == OMPI_ANY_TAG && tag >= 0);
}

/* ---- posted receives ---- */

/* Where the pointer to the first receive is that fits; it points to NULL if there is none. */
static inline struct mca_pml_pvas_request **first_fit(struct mca_pml_pvas_queue *queue, int tag)
{
	struct mca_pml_pvas_request **at = &queue->first;

	while (*at && !tag_fits((*at)->tag, tag))
		at = &(*at)->next;
	return at;
}

static inline void unlink_request(struct mca_pml_pvas_queue *queue,
				  struct mca_pml_pvas_request **at)
{
	struct mca_pml_pvas_request *req = *at;

	*at = req->next;
	if (!req->next)
		queue->last = at;
	req->posted = false;
	component.nr_posted--;
}

/* The receive that a message gets, no longer posted; NULL: none fits */
struct mca_pml_pvas_request *mca_pml_pvas_match(struct mca_pml_pvas_comm *pc,
						struct mca_pml_pvas_source *source, int tag)
{
	struct mca_pml_pvas_request **specific = first_fit(&source->posted, tag);
	struct mca_pml_pvas_request **any, *req = *specific;

	if (pc->any.first) {
		any = first_fit(&pc->any, tag);
		if (*any && (!req || (*any)->number < req->number)) {
			req = *any;
			unlink_request(&pc->any, any);
			return req;
		}
	}
	if (req)
		unlink_request(&source->posted, specific);
	return req;
}

static struct mca_pml_pvas_queue *queue_of(const struct mca_pml_pvas_request *req)
{
	if (req->peer == OMPI_ANY_SOURCE)
		return &req->pc->any;
	return &mca_pml_pvas_source(req->pc, req->peer)->posted;
}

void mca_pml_pvas_post(struct mca_pml_pvas_request *req)
{
	struct mca_pml_pvas_queue *queue = queue_of(req);

	req->number = ++req->pc->posted;
	req->next = NULL;
	req->posted = true;
	component.nr_posted++;
	*queue->last = req;
	queue->last = &req->next;
}

/* Cancel a posted receive. False: a message has matched it */
bool mca_pml_pvas_unpost(struct mca_pml_pvas_request *req)
{
	struct mca_pml_pvas_queue *queue = queue_of(req);
	struct mca_pml_pvas_request **at;

	if (!req->posted)
		return false;
	for (at = &queue->first; *at != req; at = &(*at)->next)
		;
	unlink_request(queue, at);
	return true;
}

/* ---- unexpected messages ---- */

static struct mca_pml_pvas_message *find_of_any(struct mca_pml_pvas_comm *pc, int tag)
{
	struct mca_pml_pvas_message *message;
	struct mca_pml_pvas_link *link;

	for (link = pc->unexpected.next; link != &pc->unexpected; link = link->next) {
		message = mca_pml_pvas_entry(link, struct mca_pml_pvas_message, of_comm);
		if (tag_fits(tag, message->tag))
			return message;
	}
	return NULL;
}

/* The first message that fits; it stays in the lists. */
struct mca_pml_pvas_message *mca_pml_pvas_find(struct mca_pml_pvas_comm *pc, int src, int tag)
{
	struct mca_pml_pvas_source *source;
	struct mca_pml_pvas_message *message;
	struct mca_pml_pvas_link *link;

	if (pc->unexpected.next == &pc->unexpected)
		return NULL;
	if (src == OMPI_ANY_SOURCE)
		return find_of_any(pc, tag);
	source = mca_pml_pvas_source(pc, src);
	for (link = source->unexpected.next; link != &source->unexpected; link = link->next) {
		message = mca_pml_pvas_entry(link, struct mca_pml_pvas_message, of_source);
		if (tag_fits(tag, message->tag))
			return message;
	}
	return NULL;
}

void mca_pml_pvas_file(struct mca_pml_pvas_comm *pc, struct mca_pml_pvas_message *message)
{
	mca_pml_pvas_list_append(&mca_pml_pvas_source(pc, message->src)->unexpected,
				 &message->of_source);
	mca_pml_pvas_list_append(&pc->unexpected, &message->of_comm);
}

void mca_pml_pvas_take(struct mca_pml_pvas_message *message)
{
	mca_pml_pvas_list_remove(&message->of_source);
	mca_pml_pvas_list_remove(&message->of_comm);
}

/* ---- their memory ---- */

static size_t message_bytes(const struct mca_pml_pvas_message *message)
{
	return sizeof(*message) + (message->offer ? 0 : message->bytes);
}

/* The writer of @in looks at this when it next asks for room. */
static void tell_congested(struct mca_pml_pvas_in *in)
{
	uint32_t congested = in->held > component.unexpected_max;

	/* Only once much has gone again, so that senders do not change their mind often */
	if (in->ring && in->ring->congested && in->held > component.unexpected_max / 2)
		congested = 1;
	if (!in->ring || in->ring->congested == congested)
		return;
	mca_pml_pvas_fault_point("congestion changes");
	__atomic_store_n(&in->ring->congested, congested, __ATOMIC_RELAXED);
	mca_pml_pvas_fault_point("congestion stored");
}

/* @copied bytes of data will be in it. NULL: no memory, which ends the job */
struct mca_pml_pvas_message *mca_pml_pvas_new_message(struct mca_pml_pvas_in *in, size_t copied)
{
	struct mca_pml_pvas_message *message = malloc(sizeof(*message) + copied);
	struct mca_pml_pvas_counters *c = &component.counters;

	if (!message) {
		ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_NO_MEM);
		return NULL;
	}
	message->in = in;
	message->offer = NULL;
	message->bytes = copied;
	in->held += sizeof(*message) + copied;
	tell_congested(in);
	c->unexpected++;
	c->unexpected_bytes += sizeof(*message) + copied;
	if (c->unexpected_most < c->unexpected_bytes)
		c->unexpected_most = c->unexpected_bytes;
	return message;
}

void mca_pml_pvas_free_message(struct mca_pml_pvas_message *message)
{
	const size_t bytes = message_bytes(message);

	message->in->held -= bytes;
	tell_congested(message->in);
	component.counters.unexpected_bytes -= bytes;
	free(message);
}
