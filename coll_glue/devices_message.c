// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Neighbors tell each other where a segment may be put, and that it is there. Open MPI's
 * progress function hands it to us, maybe in another thread. It is noted down here; the rank
 * acts on it within its operation.
 */
#include "devices.h"

#include <string.h>

#define component mca_coll_pvas_component

/* A tag of those that belong to no component of Open MPI */
#define TAG (MCA_BTL_TAG_USR + 0x56)

static struct mca_coll_pvas_devices *find(uint32_t communicator)
{
	struct mca_coll_pvas_devices *d = component.devices_in_use;

	while (d && d->comm->c_contextid != communicator)
		d = d->next;
	return d;
}

/* For the operation in progress or the next one; a sender has at most one message's segments. */
static void note_grant(struct mca_coll_pvas_devices *d, const struct mca_coll_pvas_message *message)
{
	struct mca_coll_pvas_edge *edge;

	if (message->edge >= (uint32_t)d->out.nr || message->device >= d->nr)
		return;
	edge = &d->out.edges[message->edge];
	if (edge->on_devices && edge->nr_grants < MCA_COLL_PVAS_DEVICES_MOST)
		edge->grants[edge->nr_grants++] = *message;
}

static void note_done(struct mca_coll_pvas_devices *d, const struct mca_coll_pvas_message *message)
{
	struct mca_coll_pvas_edge *edge;

	if (message->edge >= (uint32_t)d->in.nr || message->device >= d->nr)
		return;
	edge = &d->in.edges[message->edge];
	edge->moved += message->bytes;
	edge->length = message->total;
	if (edge->scheduled)
		edge->total = message->total;
	else
		atomic_fetch_sub(&d->in.in_use[message->device], 1);
}

static void receive(mca_btl_base_module_t *btl, mca_btl_base_tag_t tag,
		    mca_btl_base_descriptor_t *descriptor, void *data)
{
	const mca_btl_base_segment_t *segment = descriptor->des_segments;
	struct mca_coll_pvas_message message;
	struct mca_coll_pvas_devices *d;

	(void)btl;
	(void)tag;
	(void)data;
	if (segment->seg_len != sizeof(message))
		return;
	memcpy(&message, segment->seg_addr.pval, sizeof(message));
	opal_mutex_lock(&component.devices_lock);
	d = find(message.communicator);
	if (d && message.kind == MCA_COLL_PVAS_GRANT)
		note_grant(d, &message);
	else if (d && message.kind == MCA_COLL_PVAS_DONE)
		note_done(d, &message);
	opal_mutex_unlock(&component.devices_lock);
}

/* False: Open MPI sends by other means than BTLs. */
bool mca_coll_pvas_devices_listen(void)
{
	static bool listening;

	if (!listening && mca_bml_base_inited() && mca_bml.bml_register)
		listening = mca_bml.bml_register(TAG, receive, NULL) == OMPI_SUCCESS;
	return listening;
}

void mca_coll_pvas_devices_add(struct mca_coll_pvas_devices *d)
{
	opal_mutex_lock(&component.devices_lock);
	d->next = component.devices_in_use;
	component.devices_in_use = d;
	opal_mutex_unlock(&component.devices_lock);
}

void mca_coll_pvas_devices_remove(struct mca_coll_pvas_devices *d)
{
	struct mca_coll_pvas_devices **at = &component.devices_in_use;

	opal_mutex_lock(&component.devices_lock);
	while (*at && *at != d)
		at = &(*at)->next;
	if (*at)
		*at = d->next;
	opal_mutex_unlock(&component.devices_lock);
}

/* A grant of a whole message stays, because all of its segments need it. */
bool mca_coll_pvas_take_grant(struct mca_coll_pvas_devices *d, struct mca_coll_pvas_edge *edge,
			      struct mca_coll_pvas_message *grant)
{
	bool found = false;
	unsigned int i;

	opal_mutex_lock(&component.devices_lock);
	for (i = 0; i < edge->nr_grants && !found; i++) {
		if (edge->grants[i].op != d->op)
			continue;
		*grant = edge->grants[i];
		found = true;
		if (!edge->scheduled)
			edge->grants[i] = edge->grants[--edge->nr_grants];
	}
	opal_mutex_unlock(&component.devices_lock);
	return found;
}

/* The operation is over; grants that are left are for the next one. */
void mca_coll_pvas_drop_grants(struct mca_coll_pvas_devices *d)
{
	struct mca_coll_pvas_edge *edge;
	unsigned int i;

	opal_mutex_lock(&component.devices_lock);
	for (edge = d->out.edges; edge < d->out.edges + d->out.nr; edge++)
		for (i = edge->nr_grants; i-- > 0;)
			if (edge->grants[i].op == d->op)
				edge->grants[i] = edge->grants[--edge->nr_grants];
	opal_mutex_unlock(&component.devices_lock);
}

/* Have all segments of all sources come? */
bool mca_coll_pvas_all_arrived(struct mca_coll_pvas_devices *d)
{
	const struct mca_coll_pvas_edge *edge;
	bool all = true;

	opal_mutex_lock(&component.devices_lock);
	for (edge = d->in.edges; edge < d->in.edges + d->in.nr && all; edge++)
		all = !edge->on_devices || edge->moved >= edge->total;
	opal_mutex_unlock(&component.devices_lock);
	return all;
}

static void sent(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
		 mca_btl_base_descriptor_t *descriptor, int status)
{
	(void)btl;
	(void)endpoint;
	(void)descriptor;
	(void)status;
}

/* Messages of one way arrive in order, behind what was put before. */
int mca_coll_pvas_tell(mca_bml_base_btl_t *way, const struct mca_coll_pvas_message *message)
{
	mca_btl_base_descriptor_t *descriptor;
	int rc;

	mca_bml_base_alloc(way, &descriptor, MCA_BTL_NO_ORDER, sizeof(*message),
			   MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
	if (!descriptor)
		return OMPI_ERR_OUT_OF_RESOURCE;
	memcpy(descriptor->des_segments->seg_addr.pval, message, sizeof(*message));
	descriptor->des_cbfunc = sent;
	rc = mca_bml_base_send(way, descriptor, TAG);
	return rc < 0 ? rc : OMPI_SUCCESS;
}
