// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Requests: they come from blocks and go back to a list. A request goes back when it is done,
 * no thread is about to say so, and the user has freed it, whichever is last.
 */
#include "pml_pvas.h"

#include <stdlib.h>

#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "opal/runtime/opal_progress.h"

#define component mca_pml_pvas_component

#define BLOCK 16

/* ---- the class ---- */

/* Is it done, too, and nobody about to say so? */
static inline bool set_freed(struct mca_pml_pvas_request *req)
{
	req->freed = true;
	return req->done && !req->telling;
}

static __attribute__((noinline, cold)) bool set_freed_locked(struct mca_pml_pvas_request *req)
{
	bool last;

	mca_pml_pvas_lock();
	last = set_freed(req);
	mca_pml_pvas_unlock();
	return last;
}

static int free_request(ompi_request_t **request)
{
	struct mca_pml_pvas_request *req = (struct mca_pml_pvas_request *)*request;

	*request = MPI_REQUEST_NULL;
	if (opal_using_threads() ? set_freed_locked(req) : set_freed(req))
		mca_pml_pvas_recycle(req);
	return OMPI_SUCCESS;
}

/* Sends are not cancelled, as in ob1: the standard allows that. */
static int cancel_request(ompi_request_t *request, int flag)
{
	struct mca_pml_pvas_request *req = (struct mca_pml_pvas_request *)request;
	bool cancelled;

	(void)flag;
	if (req->send)
		return OMPI_SUCCESS;
	mca_pml_pvas_lock();
	cancelled = mca_pml_pvas_unpost(req);
	mca_pml_pvas_unlock();
	if (!cancelled)
		return OMPI_SUCCESS;
	request->req_status.MPI_SOURCE = OMPI_ANY_SOURCE;
	request->req_status.MPI_TAG = OMPI_ANY_TAG;
	request->req_status._ucount = 0;
	request->req_status._cancelled = true;
	mca_pml_pvas_complete(req);
	return OMPI_SUCCESS;
}

static void construct(struct mca_pml_pvas_request *req)
{
	req->super.req_type = OMPI_REQUEST_PML;
	req->super.req_start = mca_pml_pvas_start;
	req->super.req_free = free_request;
	req->super.req_cancel = cancel_request;
}

OBJ_CLASS_INSTANCE(mca_pml_pvas_request_t, ompi_request_t, construct, NULL);

/* ---- allocation ---- */

/* The first of a block of requests holds the block together. */
struct block {
	struct block *next;
	struct mca_pml_pvas_request requests[BLOCK];
};

static struct block *blocks;

/* The caller holds the lock. */
static __attribute__((noinline, cold)) bool add_block(void)
{
	struct block *block = calloc(1, sizeof(*block));
	int i;

	if (!block)
		return false;
	block->next = blocks;
	blocks = block;
	for (i = 0; i < BLOCK; i++) {
		OBJ_CONSTRUCT(&block->requests[i], mca_pml_pvas_request_t);
		block->requests[i].next = component.unused;
		component.unused = &block->requests[i];
	}
	return true;
}

static __attribute__((noinline, cold)) struct mca_pml_pvas_request *take_locked(void)
{
	struct mca_pml_pvas_request *req = NULL;

	mca_pml_pvas_lock();
	if (component.unused || add_block()) {
		req = component.unused;
		component.unused = req->next;
	}
	mca_pml_pvas_unlock();
	return req;
}

static inline struct mca_pml_pvas_request *take_unused(void)
{
	struct mca_pml_pvas_request *req = component.unused;

	if (opal_using_threads() || !req)
		return take_locked();
	component.unused = req->next;
	return req;
}

/*
 * A reference to the communicator and the datatype is taken. Members that are not set here have
 * their first values in an unused request, too. NULL: no memory
 */
struct mca_pml_pvas_request *mca_pml_pvas_new_request(struct mca_pml_pvas_comm *pc,
						      const void *buf, size_t count,
						      struct ompi_datatype_t *type, int peer,
						      int tag, bool persistent)
{
	struct mca_pml_pvas_request *req = take_unused();

	if (!req)
		return NULL;
	OBJ_RETAIN(pc->comm);
	OMPI_DATATYPE_RETAIN(type);
	OMPI_REQUEST_INIT(&req->super, persistent);
	req->super.req_mpi_object.comm = pc->comm;
	req->pc = pc;
	req->buf = (void *)buf;
	req->count = count;
	req->type = type;
	req->bytes = count * type->super.size;
	req->peer = peer;
	req->tag = tag;
	req->done = persistent;
	return req;
}

static __attribute__((noinline, cold)) void free_buffer(struct mca_pml_pvas_request *req)
{
	mca_pml_base_bsend_request_free(req->buffer);
	req->buffer = NULL;
}

static __attribute__((noinline, cold)) void release_type(struct ompi_datatype_t *type)
{
	OBJ_RELEASE(type);
}

static __attribute__((noinline, cold)) void release_comm(struct ompi_communicator_t *comm)
{
	OBJ_RELEASE(comm);
}

static __attribute__((noinline, cold)) void put_back_locked(struct mca_pml_pvas_request *req)
{
	struct ompi_communicator_t *comm = req->super.req_mpi_object.comm;

	mca_pml_pvas_lock();
	req->next = component.unused;
	component.unused = req;
	mca_pml_pvas_unlock();
	release_comm(comm);
}

/* Nobody uses the request any more. The communicator may go with it. */
void mca_pml_pvas_recycle(struct mca_pml_pvas_request *req)
{
	struct ompi_communicator_t *comm = req->super.req_mpi_object.comm;
	opal_object_t *object = (opal_object_t *)comm;

	if (req->buffer)
		free_buffer(req);
	req->freed = false;
	OMPI_REQUEST_FINI(&req->super);
	if (!ompi_datatype_is_predefined(req->type))
		release_type(req->type);
	if (opal_using_threads()) {
		put_back_locked(req);
		return;
	}
	req->next = component.unused;
	component.unused = req;
	if (object->obj_reference_count == 1)
		release_comm(comm);
	else
		object->obj_reference_count--;
}

/* Only if all have come back: the program may still hold others. */
void mca_pml_pvas_free_requests(void)
{
	struct mca_pml_pvas_request *req;
	struct block *block;
	size_t nr = 0;
	int i;

	for (req = component.unused; req; req = req->next)
		nr++;
	for (block = blocks; block; block = block->next)
		nr -= BLOCK;
	if (nr)
		return;
	while ((block = blocks)) {
		blocks = block->next;
		for (i = 0; i < BLOCK; i++)
			OBJ_DESTRUCT(&block->requests[i]);
		free(block);
	}
	component.unused = NULL;
}

/* ---- completion ---- */

/* Nobody can free it or start it again meanwhile: no other thread, and no callback of the user */
static inline bool complete_alone(struct mca_pml_pvas_request *req)
{
	ompi_wait_sync_t *waiting;

	if (opal_using_threads() || req->super.req_complete_cb || req->telling)
		return false;
	req->done = true;
	if (req->freed) {
		mca_pml_pvas_recycle(req);
		return true;
	}
	waiting = (ompi_wait_sync_t *)req->super.req_complete;
	req->super.req_complete = REQUEST_COMPLETED;
	if ((void *)waiting != REQUEST_PENDING)
		wait_sync_update(waiting, 1, req->super.req_status.MPI_ERROR);
	return true;
}

/* The caller doesn't hold the lock: the user's callback may call us. */
void mca_pml_pvas_complete(struct mca_pml_pvas_request *req)
{
	bool freed, last;

	if (complete_alone(req))
		return;
	mca_pml_pvas_lock();
	req->done = true;
	req->telling++;
	freed = req->freed;
	mca_pml_pvas_unlock();
	if (!freed)
		ompi_request_complete(&req->super, true);
	/* Meanwhile the user may have freed it, or started it again. */
	mca_pml_pvas_lock();
	last = !--req->telling && req->done && req->freed;
	mca_pml_pvas_unlock();
	if (last)
		mca_pml_pvas_recycle(req);
}

/* Without threads, look into our rings more often than into all of Open MPI. */
void mca_pml_pvas_wait(struct mca_pml_pvas_request *req)
{
	unsigned int i;

	if (opal_using_threads()) {
		ompi_request_wait_completion(&req->super);
		return;
	}
	for (;;) {
		for (i = 0; i < component.spin; i++) {
			if (REQUEST_COMPLETE(&req->super))
				return;
			mca_pml_pvas_progress();
		}
		if (REQUEST_COMPLETE(&req->super))
			return;
		opal_progress();
	}
}

/* ---- persistent requests ---- */

static int start_one(struct mca_pml_pvas_request *req)
{
	req->done = false;
	if (req->send)
		return mca_pml_pvas_start_send(req);
	mca_pml_pvas_start_receive(req);
	return OMPI_SUCCESS;
}

/* Open MPI calls this for requests with our @req_start, and its layers for any. */
int mca_pml_pvas_start(size_t count, ompi_request_t **requests)
{
	size_t i;
	int rc;

	for (i = 0; i < count; i++) {
		if (!requests[i] || requests[i]->req_type != OMPI_REQUEST_PML)
			continue;
		if (requests[i]->req_start == mca_pml_pvas_start)
			rc = start_one((struct mca_pml_pvas_request *)requests[i]);
		else
			rc = requests[i]->req_start(1, &requests[i]);
		if (rc != OMPI_SUCCESS)
			return rc;
	}
	return OMPI_SUCCESS;
}
