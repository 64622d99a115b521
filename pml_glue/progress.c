// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Progress: read the rings, complete sends whose data were fetched, and send what found no
 * room before. All changes to a ring and to the lists are made before a request completes, as
 * its callback may call us again.
 */
#include "ring.h"

#define component mca_pml_pvas_component

/* Records that are read from a ring before the next one has its turn */
#define BATCH 64

/* Calls that find nothing between two looks at the clock; a call that yields can take long */
#define CLOCK_INTERVAL 16

/* ---- unexpected messages ---- */

/* @copied bytes of data will be in it. */
static struct mca_pml_pvas_message *unexpected(struct mca_pml_pvas_in *in, size_t copied, int src,
					       int tag, struct mca_pml_pvas_peer *from)
{
	struct mca_pml_pvas_message *message = mca_pml_pvas_new_message(in, copied);

	message->src = src;
	message->tag = tag;
	message->from = from;
	return message;
}

/*
 * Data that nobody has asked for yet: copy short ones, so that their sender can go on; but
 * not too many. True: the sender has its offer back
 */
static bool copy_early(struct mca_pml_pvas_message *message)
{
	const struct mca_pml_pvas_offer *offer = message->offer;

	mca_pml_pvas_fault_point("short reference unexpected");
	component.touching = true;
	mca_pml_pvas_pack(message->data, message->bytes, offer->buf, offer->count, offer->type);
	mca_pml_pvas_expect_same(message->from);
	component.touching = false;
	mca_pml_pvas_fault_point("data copied early");
	mca_pml_pvas_give_back(message->from, message->offer);
	message->offer = NULL;
	return true;
}

static bool worth_copying(const struct mca_pml_pvas_in *in, size_t bytes)
{
	return bytes <= component.unexpected_limit && in->held <= component.unexpected_max;
}

/* An offer that nobody has posted a receive for */
static struct mca_pml_pvas_message *keep_offer(struct mca_pml_pvas_in *in, size_t bytes, int src,
					       int tag, struct mca_pml_pvas_peer *from,
					       struct mca_pml_pvas_offer *offer, bool synchronous)
{
	const bool copy = !synchronous && worth_copying(in, bytes);
	struct mca_pml_pvas_message *message;

	message = unexpected(in, copy ? bytes : 0, src, tag, from);
	message->offer = offer;
	message->bytes = bytes;
	if (copy)
		copy_early(message);
	return message;
}

static struct mca_pml_pvas_message *keep_data(struct mca_pml_pvas_in *in, const void *data,
					      size_t bytes, int src, int tag)
{
	struct mca_pml_pvas_message *message = unexpected(in, bytes, src, tag, NULL);

	memcpy(message->data, data, bytes);
	return message;
}

/* ---- a record of a ring ---- */

/* Its communicator will be added, or is ours no more: there is nobody to ask for a source. */
static void keep_early(struct mca_pml_pvas_in *in, const struct mca_pml_pvas_header *header)
{
	const struct mca_pml_pvas_reference *reference = (const void *)header->data;
	const size_t length = header->state >> MCA_PML_PVAS_KIND_BITS;
	const enum mca_pml_pvas_kind kind = mca_pml_pvas_kind_of(header->state);
	struct mca_pml_pvas_message *message;

	if (kind == MCA_PML_PVAS_DATA) {
		message = keep_data(in, header->data, length, header->src, header->tag);
	} else {
		message = unexpected(in, 0, header->src, header->tag, NULL);
		message->offer = reference->offer;
		message->bytes = kind == MCA_PML_PVAS_DIRECT ? length : reference->bytes;
	}
	message->context = header->context;
	mca_pml_pvas_list_append(&component.early, &message->of_comm);
}

static void keep(struct mca_pml_pvas_in *in, struct mca_pml_pvas_comm *pc,
		 const struct mca_pml_pvas_source *source,
		 const struct mca_pml_pvas_header *header, enum mca_pml_pvas_kind kind)
{
	const struct mca_pml_pvas_reference *reference = (const void *)header->data;
	const size_t length = header->state >> MCA_PML_PVAS_KIND_BITS;
	struct mca_pml_pvas_message *message;

	if (kind == MCA_PML_PVAS_DATA)
		message = keep_data(in, header->data, length, header->src, header->tag);
	else
		message = keep_offer(in, kind == MCA_PML_PVAS_DIRECT ? length : reference->bytes,
				     header->src, header->tag, source->peer, reference->offer,
				     kind == MCA_PML_PVAS_SYNCHRONOUS);
	mca_pml_pvas_file(pc, message);
}

/* The receive that it completes, but for data that are still to be fetched; NULL: none */
static inline struct mca_pml_pvas_request *deliver(struct mca_pml_pvas_in *in,
						   const struct mca_pml_pvas_header *header,
						   enum mca_pml_pvas_kind kind)
{
	const struct mca_pml_pvas_reference *reference = (const void *)header->data;
	const struct mca_pml_pvas_direct *direct = (const void *)header->data;
	struct mca_pml_pvas_comm *pc = component.comms[header->context];
	size_t bytes = header->state >> MCA_PML_PVAS_KIND_BITS;
	struct mca_pml_pvas_source *source;
	struct mca_pml_pvas_request *req;

	if (!pc || header->src >= pc->size) {
		keep_early(in, header);
		return NULL;
	}
	source = mca_pml_pvas_source(pc, header->src);
	req = mca_pml_pvas_match(pc, source, header->tag);
	if (!req) {
		keep(in, pc, source, header, kind);
		return NULL;
	}
	if (kind == MCA_PML_PVAS_DATA) {
		mca_pml_pvas_matched(req, header->src, header->tag, bytes);
		mca_pml_pvas_unpack_request(req, header->data, bytes);
		return req;
	}
	req->fetch = reference->offer;
	req->direct = NULL;
	if (kind == MCA_PML_PVAS_DIRECT)
		req->direct = direct->from;
	else
		bytes = reference->bytes;
	mca_pml_pvas_matched(req, header->src, header->tag, bytes);
	req->from = source->peer;
	return req;
}

/* The send whose data the peer has fetched */
static inline struct mca_pml_pvas_request *returned(const struct mca_pml_pvas_header *header)
{
	const struct mca_pml_pvas_returned *record = (const void *)header->data;

	return mca_pml_pvas_entry(record->offer, struct mca_pml_pvas_request, offer);
}

static inline uint32_t size_of_record(const struct mca_pml_pvas_in *in, uint32_t state)
{
	switch (mca_pml_pvas_kind_of(state)) {
	case MCA_PML_PVAS_DATA:
		return mca_pml_pvas_record_size(state >> MCA_PML_PVAS_KIND_BITS);
	case MCA_PML_PVAS_WRAP:
		return in->size - in->pos;
	default:
		return MCA_PML_PVAS_SMALL;
	}
}

/*
 * The caller holds the lock, which is released while requests complete. Once they did, and no
 * receive is posted, more messages would be unexpected: the program posts some first.
 */
static int read_ring(struct mca_pml_pvas_in *in)
{
	struct mca_pml_pvas_header *header;
	struct mca_pml_pvas_request *req;
	enum mca_pml_pvas_kind kind;
	bool completed = false;
	uint32_t state, size;
	int nr;

	for (nr = 0; nr < BATCH && (component.nr_posted || !completed); nr++) {
		header = mca_pml_pvas_next_record(in);
		state = __atomic_load_n(&header->state, __ATOMIC_ACQUIRE);
		if (!state)
			break;
		kind = mca_pml_pvas_kind_of(state);
		size = size_of_record(in, state);
		req = NULL;
		if (kind == MCA_PML_PVAS_RETURNED) {
			req = returned(header);
		} else if (kind != MCA_PML_PVAS_WRAP) {
			req = deliver(in, header, kind);
			component.arrived++;
		}
		mca_pml_pvas_pass_record(in, size);
		if (!req)
			continue;
		completed = true;
		mca_pml_pvas_unlock();
		mca_pml_pvas_finish(req);
		mca_pml_pvas_lock();
	}
	return nr;
}

/* ---- messages to ourselves ---- */

/* The receive that the send completes; NULL: none is posted. The caller holds the lock. */
struct mca_pml_pvas_request *mca_pml_pvas_deliver_local(struct mca_pml_pvas_request *send)
{
	const bool synchronous = send->mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
	const int src = send->pc->comm->c_my_rank;
	struct mca_pml_pvas_source *source;
	struct mca_pml_pvas_request *req;

	source = mca_pml_pvas_source(send->pc, send->peer);
	req = mca_pml_pvas_match(send->pc, source, send->tag);
	if (!req) {
		mca_pml_pvas_file(send->pc, keep_offer(&component.own_in, send->bytes, src,
						       send->tag, source->peer, &send->offer,
						       synchronous));
		return NULL;
	}
	mca_pml_pvas_matched(req, src, send->tag, send->bytes);
	req->fetch = &send->offer;
	req->direct = NULL;
	req->from = source->peer;
	return req;
}

/* ---- sends that are done ---- */

/* Those whose data were fetched. The caller holds the lock. */
static void take_returned(void)
{
	struct mca_pml_pvas_offer *offer, *next;
	struct mca_pml_pvas_request *req;

	mca_pml_pvas_fault_point("stack seen");
	offer = __atomic_exchange_n(&component.port->returned, NULL, __ATOMIC_ACQUIRE);
	mca_pml_pvas_fault_point("stack taken");
	for (; offer; offer = next) {
		next = offer->next;
		req = mca_pml_pvas_entry(offer, struct mca_pml_pvas_request, offer);
		req->next = component.done;
		component.done = req;
	}
}

/* The caller holds the lock, which is released while sends complete. */
static int complete_done(void)
{
	struct mca_pml_pvas_request *req;
	int nr = 0;

	while ((req = component.done)) {
		component.done = req->next;
		mca_pml_pvas_unlock();
		mca_pml_pvas_complete(req);
		mca_pml_pvas_lock();
		nr++;
	}
	return nr;
}

/* ---- all of it ---- */

static int idle(void)
{
	if ((component.oversubscribed || ++component.idle % CLOCK_INTERVAL == 0) &&
	    mca_btl_pvas_check_is_due(&component.next_check))
		mca_pml_pvas_check_peers();
	return 0;
}

int mca_pml_pvas_progress(void)
{
	struct mca_pml_pvas_port *port = component.port;
	unsigned int i;
	int nr = 0;

	if (OPAL_THREAD_TRYLOCK(&component.lock))
		return 0;
	/* First: a receiver waits for nothing else. */
	if (__atomic_load_n(&port->shared_copy.left, __ATOMIC_RELAXED) > 0)
		mca_pml_pvas_help();
	if (__atomic_load_n(&port->nr_announced, __ATOMIC_RELAXED) != component.seen)
		mca_pml_pvas_find_writers();
	for (i = 0; i < component.nr_ins; i++)
		nr += read_ring(component.ins[i]);
	if (__atomic_load_n(&port->returned, __ATOMIC_RELAXED))
		take_returned();
	if (component.pending)
		mca_pml_pvas_send_pending();
	if (component.done)
		nr += complete_done();
	if (!nr)
		idle();
	mca_pml_pvas_unlock();
	return nr;
}
