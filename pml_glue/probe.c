// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Probes look only at unexpected messages. A message found by mprobe leaves the lists; the
 * reference to its communicator keeps that until it is received.
 */
#include "pml_pvas.h"

#include "opal/runtime/opal_progress.h"

#define component mca_pml_pvas_component

static void set_status(ompi_status_public_t *status, const struct mca_pml_pvas_message *message)
{
	if (status == MPI_STATUS_IGNORE)
		return;
	status->MPI_SOURCE = message->src;
	status->MPI_TAG = message->tag;
	status->_ucount = message->bytes;
	status->_cancelled = 0;
}

/* The message, and its status; @take: no longer in the lists */
static struct mca_pml_pvas_message *look(struct mca_pml_pvas_comm *pc, int src, int tag, bool take,
					 ompi_status_public_t *status)
{
	struct mca_pml_pvas_message *message;

	mca_pml_pvas_lock();
	message = mca_pml_pvas_find(pc, src, tag);
	if (message)
		set_status(status, message);
	if (message && take)
		mca_pml_pvas_take(message);
	mca_pml_pvas_unlock();
	return message;
}

/* Look twice: what has come may still be in a ring. */
static struct mca_pml_pvas_message *look_once(struct mca_pml_pvas_comm *pc, int src, int tag,
					      bool take, ompi_status_public_t *status)
{
	struct mca_pml_pvas_message *message = look(pc, src, tag, take, status);

	if (message)
		return message;
	opal_progress();
	return look(pc, src, tag, take, status);
}

static struct mca_pml_pvas_message *wait_for(struct mca_pml_pvas_comm *pc, int src, int tag,
					     bool take, ompi_status_public_t *status)
{
	struct mca_pml_pvas_message *message;

	do
		message = look_once(pc, src, tag, take, status);
	while (!message);
	return message;
}

static int make_handle(struct mca_pml_pvas_comm *pc, struct mca_pml_pvas_message *found,
		       struct ompi_message_t *handle)
{
	handle->comm = pc->comm;
	handle->req_ptr = found;
	handle->peer = found->src;
	handle->count = found->bytes;
	OBJ_RETAIN(pc->comm);
	return OMPI_SUCCESS;
}

/* ---- the calls ---- */

int mca_pml_pvas_iprobe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
			ompi_status_public_t *status)
{
	struct mca_pml_pvas_comm *pc = mca_pml_pvas_owned(comm);

	if (!pc)
		return component.ob1.pml_iprobe(src, tag, comm, matched, status);
	*matched = look_once(pc, src, tag, false, status) != NULL;
	return OMPI_SUCCESS;
}

int mca_pml_pvas_probe(int src, int tag, struct ompi_communicator_t *comm,
		       ompi_status_public_t *status)
{
	struct mca_pml_pvas_comm *pc = mca_pml_pvas_owned(comm);

	if (!pc)
		return component.ob1.pml_probe(src, tag, comm, status);
	wait_for(pc, src, tag, false, status);
	return OMPI_SUCCESS;
}

int mca_pml_pvas_improbe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
			 struct ompi_message_t **message, ompi_status_public_t *status)
{
	struct mca_pml_pvas_comm *pc = mca_pml_pvas_owned(comm);
	struct mca_pml_pvas_message *found;
	struct ompi_message_t *handle;

	if (!pc)
		return component.ob1.pml_improbe(src, tag, comm, matched, message, status);
	*matched = 0;
	*message = MPI_MESSAGE_NULL;
	handle = ompi_message_alloc();
	if (!handle)
		return OMPI_ERR_OUT_OF_RESOURCE;
	found = look_once(pc, src, tag, true, status);
	if (!found) {
		ompi_message_return(handle);
		return OMPI_SUCCESS;
	}
	*matched = 1;
	*message = handle;
	return make_handle(pc, found, handle);
}

int mca_pml_pvas_mprobe(int src, int tag, struct ompi_communicator_t *comm,
			struct ompi_message_t **message, ompi_status_public_t *status)
{
	struct mca_pml_pvas_comm *pc = mca_pml_pvas_owned(comm);

	if (!pc)
		return component.ob1.pml_mprobe(src, tag, comm, message, status);
	*message = ompi_message_alloc();
	if (!*message)
		return OMPI_ERR_OUT_OF_RESOURCE;
	return make_handle(pc, wait_for(pc, src, tag, true, status), *message);
}

/* The receive of a message that mprobe found; the handle is gone. NULL: no memory */
static struct mca_pml_pvas_request *receive_found(void *buf, size_t count,
						  struct ompi_datatype_t *type,
						  struct ompi_message_t **handle)
{
	struct ompi_communicator_t *comm = (*handle)->comm;
	struct mca_pml_pvas_message *found = (*handle)->req_ptr;
	struct mca_pml_pvas_request *req;

	req = mca_pml_pvas_new_request(mca_pml_pvas_owned(comm), buf, count, type, found->src,
				       found->tag, false);
	if (!req)
		return NULL;
	ompi_message_return(*handle);
	*handle = MPI_MESSAGE_NULL;
	req->send = false;
	req->super.req_status = ompi_status_empty;
	req->super.req_state = OMPI_REQUEST_ACTIVE;
	mca_pml_pvas_receive_message(req, found);
	OBJ_RELEASE(comm);
	return req;
}

int mca_pml_pvas_imrecv(void *buf, size_t count, struct ompi_datatype_t *type,
			struct ompi_message_t **message, struct ompi_request_t **request)
{
	struct mca_pml_pvas_request *req;

	if (!mca_pml_pvas_owned((*message)->comm))
		return component.ob1.pml_imrecv(buf, count, type, message, request);
	req = receive_found(buf, count, type, message);
	if (!req)
		return OMPI_ERR_OUT_OF_RESOURCE;
	*request = &req->super;
	return OMPI_SUCCESS;
}

int mca_pml_pvas_mrecv(void *buf, size_t count, struct ompi_datatype_t *type,
		       struct ompi_message_t **message, ompi_status_public_t *status)
{
	struct mca_pml_pvas_request *req;

	if (!mca_pml_pvas_owned((*message)->comm))
		return component.ob1.pml_mrecv(buf, count, type, message, status);
	req = receive_found(buf, count, type, message);
	if (!req)
		return OMPI_ERR_OUT_OF_RESOURCE;
	return mca_pml_pvas_wait_and_free(req, status);
}
