// SPDX-License-Identifier: GPL-2.0-only
/* Puts, gets and discards of a store that has proved its key */
#include <errno.h>
#include <string.h>
#include "memd.h"

static void reply(struct slot *slot, int status, const void *data, size_t bytes)
{
	struct conn *conn = slot->conn;
	struct answer *answer = conn_answer(conn);

	slot->busy = false;
	if (!answer || conn->failure)
		return;
	answer->reply = (struct far_reply){
		.op = FAR_OP_REPLY, .slot = slot->request.slot, .status = status,
		.held = conn->pages.held,
	};
	conn_send(conn, answer, sizeof(answer->reply), data, bytes);
}

static void put_done(struct slot *slot)
{
	struct conn *conn = slot->conn;

	pages_mark(conn, slot->request.first, slot->request.count, true);
	conn->job->put_bytes += slot->request.count * conn->pages.page_size;
	reply(slot, 0, NULL, 0);
}

static void received(void *request, ucs_status_t status, size_t bytes, void *arg)
{
	struct slot *slot = arg;

	(void)bytes;
	ucp_request_free(request);
	slot->conn->users--;
	slot->conn->deadline = far_now() + PATIENCE_S;
	if (status != UCS_OK)
		conn_fail(slot->conn, ucs_status_string(status));
	if (!slot->conn->failure)
		put_done(slot);
}

static ucs_status_t put(struct slot *slot, char *place, void *data, size_t bytes,
			const ucp_am_recv_param_t *param)
{
	struct conn *conn = slot->conn;
	ucs_status_ptr_t status;

	if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
		memcpy(place, data, bytes);
		put_done(slot);
		return UCS_OK;
	}
	if (!conn->users)
		conn->deadline = far_now() + PATIENCE_S;
	conn->users++;
	status = far_ucx_fetch(conn->memd->worker, data, place, bytes, received, slot);
	if (UCS_PTR_IS_PTR(status))
		return UCS_INPROGRESS;
	conn->users--;
	if (UCS_PTR_STATUS(status) == UCS_OK)
		put_done(slot);
	else
		conn_fail(conn, ucs_status_string(UCS_PTR_STATUS(status)));
	return UCS_INPROGRESS;
}

/* A store never sends anything that fails here: one that does is ended. */
static const char *find_fault(const struct conn *conn, const struct far_request *request,
			      size_t bytes)
{
	const struct pages *pages = &conn->pages;
	uint64_t most = request->op == FAR_OP_DISCARD ? FAR_DISCARD_BYTES : FAR_PIECE_BYTES;

	if (request->op != FAR_OP_PUT && request->op != FAR_OP_GET && request->op != FAR_OP_DISCARD)
		return "an unknown request";
	if (request->conn != conn->index)
		return "another connection's number";
	if (request->slot >= FAR_SLOTS || conn->slots[request->slot].busy)
		return "a wrong slot";
	if (!request->count || request->first >= pages->count ||
	    request->count > pages->count - request->first)
		return "pages that it doesn't have";
	if (request->count > 1 && request->count * pages->page_size > most)
		return "too many pages";
	if (bytes != (request->op == FAR_OP_PUT ? request->count * pages->page_size : 0))
		return "data of a wrong size";
	return NULL;
}

ucs_status_t serve(struct conn *conn, const void *header, size_t header_bytes, void *data,
		   size_t bytes, const ucp_am_recv_param_t *param)
{
	struct far_request request;
	const char *fault = "a malformed request";
	struct slot *slot;
	size_t size;
	char *place;

	if (header_bytes == sizeof(request)) {
		memcpy(&request, header, sizeof(request));
		fault = find_fault(conn, &request, bytes);
	}
	if (fault) {
		notice(conn->memd, "job %s: a store is ended: it sent %s", conn->job->name, fault);
		conn_fail(conn, fault);
		return UCS_OK;
	}
	slot = &conn->slots[request.slot];
	slot->busy = true;
	slot->request = request;
	place = conn->pages.base + request.first * conn->pages.page_size;
	size = request.count * conn->pages.page_size;
	if (request.op == FAR_OP_PUT)
		return put(slot, place, data, bytes, param);
	if (request.op == FAR_OP_DISCARD) {
		pages_discard(conn, request.first, request.count);
		reply(slot, 0, NULL, 0);
	} else {
		conn->job->get_bytes += size;
		reply(slot, 0, place, size);
	}
	return UCS_OK;
}
