// SPDX-License-Identifier: LGPL-2.1-or-later
/* The receiver: posting receives, and giving them what has matched. */
#include "ring.h"

#include "../btl_glue/open_mpi.h"

#define component mca_pml_pvas_component

/* ---- a message has matched ---- */

/* As in ob1, a message that is too long has its full length in the status. */
void mca_pml_pvas_matched(struct mca_pml_pvas_request *req, int src, int tag, size_t bytes)
{
	ompi_status_public_t *status = &req->super.req_status;

	status->MPI_SOURCE = src;
	status->MPI_TAG = tag;
	status->_ucount = bytes;
	if (bytes > req->bytes)
		status->MPI_ERROR = MPI_ERR_TRUNCATE;
}

void mca_pml_pvas_unpack_request(struct mca_pml_pvas_request *req, const void *data, size_t bytes)
{
	if (bytes > req->bytes)
		bytes = req->bytes;
	mca_pml_pvas_unpack_inline(req->buf, req->count, req->type, data, bytes);
}

/* The caller doesn't hold the lock, and nobody else has the message. */
void mca_pml_pvas_receive_message(struct mca_pml_pvas_request *req,
				  struct mca_pml_pvas_message *message)
{
	mca_pml_pvas_matched(req, message->src, message->tag, message->bytes);
	req->fetch = message->offer;
	req->direct = NULL;
	req->from = message->from;
	if (!message->offer)
		mca_pml_pvas_unpack_request(req, message->data, message->bytes);
	mca_pml_pvas_lock();
	mca_pml_pvas_free_message(message);
	mca_pml_pvas_unlock();
	mca_pml_pvas_finish(req);
}

/* The receive has its message; the data may still be with the sender. No lock is held. */
void mca_pml_pvas_finish(struct mca_pml_pvas_request *req)
{
	if (req->fetch)
		mca_pml_pvas_fetch(req);
	mca_pml_pvas_complete(req);
}

/* ---- the calls ---- */

static struct mca_pml_pvas_request *new_receive(struct mca_pml_pvas_comm *pc, void *buf,
						size_t count, struct ompi_datatype_t *type,
						int src, int tag, bool persistent)
{
	struct mca_pml_pvas_request *req;

	req = mca_pml_pvas_new_request(pc, buf, count, type, src, tag, persistent);
	if (!req)
		return NULL;
	req->send = false;
	return req;
}

void mca_pml_pvas_start_receive(struct mca_pml_pvas_request *req)
{
	struct mca_pml_pvas_message *message;

	/* The rest comes with the message. */
	req->super.req_status.MPI_ERROR = OMPI_SUCCESS;
	req->super.req_status._cancelled = 0;
	req->super.req_complete = REQUEST_PENDING;
	req->super.req_state = OMPI_REQUEST_ACTIVE;
	mca_pml_pvas_lock();
	message = mca_pml_pvas_find(req->pc, req->peer, req->tag);
	if (message)
		mca_pml_pvas_take(message);
	else
		mca_pml_pvas_post(req);
	mca_pml_pvas_unlock();
	if (message)
		mca_pml_pvas_receive_message(req, message);
}

int mca_pml_pvas_irecv_init(void *buf, size_t count, struct ompi_datatype_t *type, int src,
			    int tag, struct ompi_communicator_t *comm,
			    struct ompi_request_t **request)
{
	struct mca_pml_pvas_comm *pc = mca_pml_pvas_owned(comm);
	struct mca_pml_pvas_request *req;

	if (!pc)
		return component.ob1.pml_irecv_init(buf, count, type, src, tag, comm, request);
	req = new_receive(pc, buf, count, type, src, tag, true);
	if (!req)
		return OMPI_ERR_OUT_OF_RESOURCE;
	req->super.req_status = ompi_status_empty;
	*request = &req->super;
	return OMPI_SUCCESS;
}

int mca_pml_pvas_irecv(void *buf, size_t count, struct ompi_datatype_t *type, int src, int tag,
		       struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
	struct mca_pml_pvas_comm *pc = mca_pml_pvas_owned(comm);
	struct mca_pml_pvas_request *req;

	if (!pc)
		return component.ob1.pml_irecv(buf, count, type, src, tag, comm, request);
	req = new_receive(pc, buf, count, type, src, tag, false);
	if (!req)
		return OMPI_ERR_OUT_OF_RESOURCE;
	*request = &req->super;
	mca_pml_pvas_start_receive(req);
	return OMPI_SUCCESS;
}

int mca_pml_pvas_wait_and_free(struct mca_pml_pvas_request *req, ompi_status_public_t *status)
{
	ompi_request_t *request = &req->super;
	int rc;

	mca_pml_pvas_wait(req);
	if (status != MPI_STATUS_IGNORE)
		mca_btl_pvas_copy_status(status, &request->req_status);
	rc = request->req_status.MPI_ERROR;
	ompi_request_free(&request);
	return rc;
}

int mca_pml_pvas_recv(void *buf, size_t count, struct ompi_datatype_t *type, int src, int tag,
		      struct ompi_communicator_t *comm, ompi_status_public_t *status)
{
	struct mca_pml_pvas_comm *pc = mca_pml_pvas_owned(comm);
	struct mca_pml_pvas_request *req;
	int rc;

	if (!pc)
		return component.ob1.pml_recv(buf, count, type, src, tag, comm, status);
	if (mca_pml_pvas_receive_direct(pc, buf, count, type, src, tag, status, &rc))
		return rc;
	req = new_receive(pc, buf, count, type, src, tag, false);
	if (!req)
		return OMPI_ERR_OUT_OF_RESOURCE;
	mca_pml_pvas_start_receive(req);
	return mca_pml_pvas_wait_and_free(req, status);
}
