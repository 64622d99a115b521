// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The sender. A short message goes into the receiver's ring, and the send is complete. Of a
 * longer one, of a synchronous one, and of any while the receiver has too many that nobody
 * received, only a reference goes there, and the receiver gives the offer back once it has
 * the data. Messages that find no room wait in our own memory, in order.
 */
#include "ring.h"

#include "ompi/mca/pml/base/pml_base_bsend.h"

#define component mca_pml_pvas_component

/* ---- into the ring; the caller holds the lock ---- */

static inline void fill(struct mca_pml_pvas_header *header, const struct mca_pml_pvas_comm *pc,
			int tag)
{
	header->context = pc->comm->c_contextid;
	header->src = pc->comm->c_my_rank;
	header->tag = tag;
}

/* The whole message. False: no room, or too long, or the receiver has too many */
static inline __attribute__((always_inline)) bool
put_data(struct mca_pml_pvas_comm *pc, struct mca_pml_pvas_out *out, const void *buf, size_t count,
	 const struct ompi_datatype_t *type, size_t bytes, int tag)
{
	const uint32_t size = mca_pml_pvas_record_size(bytes);
	struct mca_pml_pvas_header *header;

	if (bytes > out->inline_limit)
		return false;
	component.touching = true;
	if (out->congested)
		out->congested = __atomic_load_n(&out->ring->congested, __ATOMIC_RELAXED);
	header = out->congested ? NULL : mca_pml_pvas_reserve(out, size);
	/* To look for room may have told us. */
	if (header && !out->congested) {
		mca_pml_pvas_fault_point("room for data");
		fill(header, pc, tag);
		if (mca_pml_pvas_contiguous(type, count))
			mca_pml_pvas_copy_short(header->data,
						(const char *)buf + type->super.true_lb, bytes);
		else if (bytes)
			mca_pml_pvas_pack(header->data, bytes, buf, count, type);
		mca_pml_pvas_store_record(out, header, size,
					  bytes << MCA_PML_PVAS_KIND_BITS | MCA_PML_PVAS_DATA);
		component.touching = false;
		mca_pml_pvas_count(eager, 1);
		return true;
	}
	component.touching = false;
	return false;
}

/* Data and state of a record that refers to the message */
static inline uint32_t fill_reference(void *data, struct mca_pml_pvas_request *req)
{
	struct mca_pml_pvas_reference *reference = data;
	struct mca_pml_pvas_direct *direct = data;

	if (req->mode != MCA_PML_BASE_SEND_SYNCHRONOUS && req->bytes <= MCA_PML_PVAS_MAX_LENGTH &&
	    mca_pml_pvas_contiguous(req->type, req->count)) {
		direct->offer = &req->offer;
		direct->from = (const char *)req->buf + req->type->super.true_lb;
		return req->bytes << MCA_PML_PVAS_KIND_BITS | MCA_PML_PVAS_DIRECT;
	}
	reference->offer = &req->offer;
	reference->bytes = req->bytes;
	return req->mode == MCA_PML_BASE_SEND_SYNCHRONOUS ? MCA_PML_PVAS_SYNCHRONOUS :
							    MCA_PML_PVAS_REFERENCE;
}

static bool put_reference(struct mca_pml_pvas_out *out, struct mca_pml_pvas_request *req)
{
	struct mca_pml_pvas_header *header;

	component.touching = true;
	header = mca_pml_pvas_reserve(out, MCA_PML_PVAS_SMALL);
	if (header) {
		mca_pml_pvas_fault_point("room for a reference");
		fill(header, req->pc, req->tag);
		mca_pml_pvas_store_record(out, header, MCA_PML_PVAS_SMALL,
					  fill_reference(header->data, req));
		mca_pml_pvas_count(references, 1);
	}
	component.touching = false;
	return header;
}

static void make_offer(struct mca_pml_pvas_request *req)
{
	req->offer.buf = req->buf;
	req->offer.count = req->count;
	req->offer.type = req->type;
	req->offer.bytes = req->bytes;
}

enum placed { NO_ROOM, SENT, OFFERED };

static enum placed place(struct mca_pml_pvas_out *out, struct mca_pml_pvas_request *req)
{
	const bool copy = req->mode != MCA_PML_BASE_SEND_SYNCHRONOUS && !req->left;

	if (copy && put_data(req->pc, out, req->buf, req->count, req->type, req->bytes, req->tag))
		return SENT;
	/* A short message is offered only if the receiver asks for that. */
	if (copy && req->bytes <= out->inline_limit && !out->congested)
		return NO_ROOM;
	return put_reference(out, req) ? OFFERED : NO_ROOM;
}

/* ---- sends that found no room ---- */

static void append_pending(struct mca_pml_pvas_out *out, struct mca_pml_pvas_request *req)
{
	req->next = NULL;
	*out->last_pending = req;
	out->last_pending = &req->next;
	mca_pml_pvas_count(waits, 1);
	if (out->listed)
		return;
	out->listed = true;
	out->next = component.pending;
	component.pending = out;
}

/* The sends that went out are done. */
static void flush(struct mca_pml_pvas_out *out)
{
	struct mca_pml_pvas_request *req;
	enum placed placed;

	while ((req = out->pending)) {
		struct mca_pml_pvas_request *next = req->next;

		placed = place(out, req);
		if (placed == NO_ROOM)
			break;
		out->pending = next;
		if (!next)
			out->last_pending = &out->pending;
		if (placed == OFFERED)
			continue;
		req->next = component.done;
		component.done = req;
	}
}

/* The caller holds the lock. */
void mca_pml_pvas_send_pending(void)
{
	struct mca_pml_pvas_out *out, *all = component.pending;

	component.pending = NULL;
	while ((out = all)) {
		all = out->next;
		out->listed = false;
		flush(out);
		if (out->pending) {
			out->listed = true;
			out->next = component.pending;
			component.pending = out;
		}
	}
}

/* ---- starting a send ---- */

/* Without a request. False: not possible now */
static inline __attribute__((always_inline)) bool
send_now(struct mca_pml_pvas_comm *pc, const void *buf, size_t count,
	 const struct ompi_datatype_t *type, int dst, int tag)
{
	struct mca_pml_pvas_source *source;
	struct mca_pml_pvas_out *out;
	bool done;

	mca_pml_pvas_lock();
	source = mca_pml_pvas_source(pc, dst);
	out = source->peer->out;
	done = out && !out->pending &&
	       put_data(pc, out, buf, count, type, count * type->super.size, tag);
	mca_pml_pvas_unlock();
	return done;
}

/*
 * Several non-blocking sends in a row, without a message from anywhere between them: nobody
 * waits for the first one's latency, and to copy once is faster.
 */
static bool in_burst(struct mca_pml_pvas_comm *pc, int dst)
{
	struct mca_pml_pvas_out *out;
	bool again;

	mca_pml_pvas_lock();
	out = mca_pml_pvas_source(pc, dst)->peer->out;
	again = out && out->arrived == component.arrived;
	if (out)
		out->arrived = component.arrived;
	mca_pml_pvas_unlock();
	return again;
}

static void send_to_peer(struct mca_pml_pvas_out *out, struct mca_pml_pvas_request *req)
{
	enum placed placed = NO_ROOM;

	mca_pml_pvas_lock();
	if (!out->pending)
		placed = place(out, req);
	if (placed == NO_ROOM)
		append_pending(out, req);
	mca_pml_pvas_unlock();
	if (placed == SENT)
		mca_pml_pvas_complete(req);
}

/* To ourselves there is no ring: the receive is looked for at once. */
static void send_to_self(struct mca_pml_pvas_request *req)
{
	struct mca_pml_pvas_request *receive;

	mca_pml_pvas_lock();
	mca_pml_pvas_count(local, 1);
	receive = mca_pml_pvas_deliver_local(req);
	mca_pml_pvas_unlock();
	if (receive)
		mca_pml_pvas_finish(receive);
}

/* The request is active. */
static void launch(struct mca_pml_pvas_request *req)
{
	struct mca_pml_pvas_out *out;

	make_offer(req);
	mca_pml_pvas_lock();
	out = mca_pml_pvas_source(req->pc, req->peer)->peer->out;
	mca_pml_pvas_unlock();
	if (out)
		send_to_peer(out, req);
	else
		send_to_self(req);
}

static struct mca_pml_pvas_request *new_send(struct mca_pml_pvas_comm *pc, const void *buf,
					     size_t count, struct ompi_datatype_t *type, int dst,
					     int tag, mca_pml_base_send_mode_t mode,
					     bool persistent)
{
	struct mca_pml_pvas_request *req;

	req = mca_pml_pvas_new_request(pc, buf, count, type, dst, tag, persistent);
	if (!req)
		return NULL;
	req->send = true;
	req->left = false;
	req->mode = mode;
	req->super.req_status = ompi_status_empty;
	if (!persistent)
		req->super.req_state = OMPI_REQUEST_ACTIVE;
	return req;
}

/* @left: in place, although it is short. NULL: no memory */
static struct mca_pml_pvas_request *launch_new(struct mca_pml_pvas_comm *pc, const void *buf,
					       size_t count, struct ompi_datatype_t *type,
					       int dst, int tag, mca_pml_base_send_mode_t mode,
					       bool left)
{
	struct mca_pml_pvas_request *req;

	req = new_send(pc, buf, count, type, dst, tag, mode, false);
	if (!req)
		return NULL;
	req->left = left;
	launch(req);
	return req;
}

/* ---- MPI_Bsend ---- */

/* Messages on the way may still free some. */
static void *allocate_buffer(size_t bytes)
{
	void *buffer;
	int i;

	for (i = 0; i < 1000; i++) {
		buffer = mca_pml_base_bsend_request_alloc_buf(bytes);
		if (buffer)
			return buffer;
	}
	return NULL;
}

/* The message is packed into the user's buffer, from where a request of our own sends it. */
static int send_buffered(struct mca_pml_pvas_comm *pc, const void *buf, size_t count,
			 struct ompi_datatype_t *type, int dst, int tag)
{
	const size_t bytes = count * type->super.size;
	struct mca_pml_pvas_request *req;
	void *buffer = NULL;

	if (send_now(pc, buf, count, type, dst, tag))
		return OMPI_SUCCESS;
	if (bytes) {
		buffer = allocate_buffer(bytes);
		if (!buffer)
			return OMPI_ERR_BUFFER;
		mca_pml_pvas_pack(buffer, bytes, buf, count, type);
	}
	req = new_send(pc, buffer, bytes, &ompi_mpi_byte.dt, dst, tag,
		       MCA_PML_BASE_SEND_STANDARD, false);
	if (!req) {
		if (buffer)
			mca_pml_base_bsend_request_free(buffer);
		return OMPI_ERR_OUT_OF_RESOURCE;
	}
	req->buffer = buffer;
	req->freed = true;
	launch(req);
	return OMPI_SUCCESS;
}

/* ---- the calls ---- */

/* Bytes of tiny blocks far apart that are worth a reference */
#define SCATTERED_LIMIT 1024

static inline bool is_better_left(const struct ompi_datatype_t *type, size_t count)
{
	return count * type->super.size > SCATTERED_LIMIT && component.share_limit &&
	       !mca_pml_pvas_contiguous(type, count) && mca_pml_pvas_is_scattered(type, count);
}

static inline bool is_simple(mca_pml_base_send_mode_t mode)
{
	return mode != MCA_PML_BASE_SEND_BUFFERED && mode != MCA_PML_BASE_SEND_SYNCHRONOUS;
}

int mca_pml_pvas_isend_init(const void *buf, size_t count, struct ompi_datatype_t *type, int dst,
			    int tag, mca_pml_base_send_mode_t mode,
			    struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
	struct mca_pml_pvas_comm *pc = mca_pml_pvas_owned(comm);
	struct mca_pml_pvas_request *req;

	if (!pc)
		return component.ob1.pml_isend_init(buf, count, type, dst, tag, mode, comm,
						    request);
	req = new_send(pc, buf, count, type, dst, tag, mode, true);
	if (!req)
		return OMPI_ERR_OUT_OF_RESOURCE;
	*request = &req->super;
	return OMPI_SUCCESS;
}

int mca_pml_pvas_start_send(struct mca_pml_pvas_request *req)
{
	int rc = OMPI_SUCCESS;

	req->super.req_status._cancelled = 0;
	req->super.req_complete = REQUEST_PENDING;
	req->super.req_state = OMPI_REQUEST_ACTIVE;
	if (req->mode != MCA_PML_BASE_SEND_BUFFERED) {
		launch(req);
		return OMPI_SUCCESS;
	}
	rc = send_buffered(req->pc, req->buf, req->count, req->type, req->peer, req->tag);
	req->super.req_status.MPI_ERROR = rc;
	mca_pml_pvas_complete(req);
	return rc;
}

/* A completed send has no status, so it needs no request of its own. */
static __attribute__((noinline)) int
isend_slowly(const void *buf, size_t count, struct ompi_datatype_t *type, int dst, int tag,
	     mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
	     struct ompi_request_t **request)
{
	struct mca_pml_pvas_comm *pc = mca_pml_pvas_owned(comm);
	struct mca_pml_pvas_request *req;
	bool left;

	if (!pc)
		return component.ob1.pml_isend(buf, count, type, dst, tag, mode, comm, request);
	*request = &ompi_request_empty;
	if (mode == MCA_PML_BASE_SEND_BUFFERED)
		return send_buffered(pc, buf, count, type, dst, tag);
	left = mode == MCA_PML_BASE_SEND_SYNCHRONOUS || is_better_left(type, count) ||
	       (count * type->super.size > component.burst_limit && in_burst(pc, dst));
	if (!left && send_now(pc, buf, count, type, dst, tag))
		return OMPI_SUCCESS;
	req = launch_new(pc, buf, count, type, dst, tag, mode, left);
	if (!req)
		return OMPI_ERR_OUT_OF_RESOURCE;
	*request = &req->super;
	return OMPI_SUCCESS;
}

int mca_pml_pvas_isend(const void *buf, size_t count, struct ompi_datatype_t *type, int dst,
		       int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
		       struct ompi_request_t **request)
{
	struct mca_pml_pvas_comm *pc = mca_pml_pvas_owned(comm);

	if (pc && is_simple(mode) && count * type->super.size <= component.burst_limit &&
	    send_now(pc, buf, count, type, dst, tag)) {
		*request = &ompi_request_empty;
		return OMPI_SUCCESS;
	}
	return isend_slowly(buf, count, type, dst, tag, mode, comm, request);
}

int mca_pml_pvas_send(const void *buf, size_t count, struct ompi_datatype_t *type, int dst,
		      int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm)
{
	struct mca_pml_pvas_comm *pc = mca_pml_pvas_owned(comm);
	struct mca_pml_pvas_request *req;
	bool left;

	if (!pc)
		return component.ob1.pml_send(buf, count, type, dst, tag, mode, comm);
	if (mode == MCA_PML_BASE_SEND_BUFFERED)
		return send_buffered(pc, buf, count, type, dst, tag);
	left = mode == MCA_PML_BASE_SEND_SYNCHRONOUS || is_better_left(type, count);
	if (!left && send_now(pc, buf, count, type, dst, tag))
		return OMPI_SUCCESS;
	req = launch_new(pc, buf, count, type, dst, tag, mode, left);
	if (!req)
		return OMPI_ERR_OUT_OF_RESOURCE;
	return mca_pml_pvas_wait_and_free(req, MPI_STATUS_IGNORE);
}
