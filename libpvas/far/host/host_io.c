// SPDX-License-Identifier: LGPL-2.1-or-later
/* Puts, gets and discards: their pieces, and the server's answers */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "host.h"

static void finish(struct host *host, struct host_op *op)
{
	uint64_t bytes = op->count * host->store.page_size;

	if (!op->err && op->kind == FAR_OP_PUT)
		host->counters.put_bytes += bytes;
	if (!op->err && op->kind == FAR_OP_GET)
		host->counters.get_bytes += bytes;
	op->done = true;
}

/* One of the things that the slot waits for has happened. */
static void slot_done(struct host_slot *slot, int err)
{
	struct host *host = slot->host;
	struct host_op *op = slot->op;

	if (!op)	/* abandoned */
		return;
	if (err && !op->err)
		op->err = err;
	if (--slot->users > 0)
		return;
	slot->op = NULL;
	host->free_slots[host->free_count++] = slot - host->slots;
	op->left -= slot->pages;
	if (!op->left)
		finish(host, op);
}

/* After an error the connection's other messages end with one too; the first tells why. */
static void message_done(struct host_slot *slot, ucs_status_t status)
{
	if (status != UCS_OK && status != UCS_ERR_CANCELED)
		host_lost(slot->host, status);
	slot_done(slot, status == UCS_OK ? 0 : -EIO);
}

static void sent(void *request, ucs_status_t status, void *arg)
{
	ucp_request_free(request);
	message_done(arg, status);
}

static void received(void *request, ucs_status_t status, size_t bytes, void *arg)
{
	(void)bytes;
	ucp_request_free(request);
	message_done(arg, status);
}

static void send_slot(struct host *host, struct host_slot *slot)
{
	bool put = slot->request.op == FAR_OP_PUT;
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
				UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.flags = UCP_AM_SEND_FLAG_REPLY,
		.cb.send = sent,
		.user_data = slot,
		.memory_type = UCS_MEMORY_TYPE_HOST,
	};
	size_t bytes = put ? slot->bytes : 0;
	ucs_status_ptr_t status;

	param.flags |= bytes > FAR_EAGER_BYTES ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
	slot->users = 2;
	slot->answered = false;
	far_ucx_quiet++;
	status = ucp_am_send_nbx(host->ep, FAR_AM, &slot->request, sizeof(slot->request),
				 slot->buf, bytes, &param);
	far_ucx_quiet--;
	if (UCS_PTR_IS_ERR(status))
		slot->users--;	/* there will be no answer */
	if (!UCS_PTR_IS_PTR(status))
		message_done(slot, UCS_PTR_STATUS(status));
}

static uint64_t piece_pages(const struct host *host, const struct host_op *op)
{
	uint64_t most = (op->kind == FAR_OP_DISCARD ? FAR_DISCARD_BYTES : FAR_PIECE_BYTES) /
			host->store.page_size;
	uint64_t left = op->count - op->sent;

	if (!most)
		most = 1;
	return left < most ? left : most;
}

/* Starts pieces while there are slots. */
void host_pump(struct host *host)
{
	struct host_slot *slot;
	struct host_op *op;

	while (!host->err && (op = host->queue) && host->free_count) {
		slot = &host->slots[host->free_slots[--host->free_count]];
		slot->op = op;
		slot->pages = piece_pages(host, op);
		slot->bytes = slot->pages * host->store.page_size;
		slot->buf = op->buf ? op->buf + op->sent * host->store.page_size : NULL;
		slot->request.op = op->kind;
		slot->request.conn = host->challenge.conn;
		slot->request.slot = slot - host->slots;
		slot->request.count = slot->pages;
		slot->request.first = op->first + op->sent;
		op->sent += slot->pages;
		if (op->sent == op->count) {
			host->queue = op->next;
			if (!host->queue)
				host->queue_end = &host->queue;
		}
		send_slot(host, slot);
	}
}

void host_start(struct host *host, struct host_op *op)
{
	if (host->free_count == FAR_SLOTS)
		host->heard = far_now();
	op->next = NULL;
	op->sent = 0;
	op->left = op->count;
	*host->queue_end = op;
	host->queue_end = &op->next;
	host_pump(host);
	host_wake(host);
	if (host->err)
		host_abandon(host);
}

static void close_ep(struct host *host)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE,
	};
	ucs_status_ptr_t status;
	double limit = far_now() + 1;

	if (!host->ep)
		return;
	far_ucx_quiet++;
	status = ucp_ep_close_nbx(host->ep, &param);
	host->ep = NULL;
	while (UCS_PTR_IS_PTR(status) && ucp_request_check_status(status) == UCS_INPROGRESS &&
	       far_now() < limit)
		ucp_worker_progress(host->worker);
	if (UCS_PTR_IS_PTR(status))
		ucp_request_free(status);
	far_ucx_quiet--;
}

/*
 * After an error: closes the connection, which ends UCX's use of the buffers, and then ends
 * all operations. Not for functions that UCX calls.
 */
void host_abandon(struct host *host)
{
	struct host_op *op;
	size_t i;

	close_ep(host);
	for (i = 0; i < FAR_SLOTS; i++) {
		if (!host->slots[i].op)
			continue;
		host->slots[i].users = 1;
		slot_done(&host->slots[i], host->err);
	}
	while ((op = host->queue)) {
		host->queue = op->next;
		op->err = host->err;
		finish(host, op);
	}
	host->queue_end = &host->queue;
}

static ucs_status_t refuse_reply(struct host *host)
{
	host_break(host, -EPROTO, "it sent a message that the protocol doesn't have");
	return UCS_OK;
}

/* The pages that were asked for */
static ucs_status_t receive_pages(struct host_slot *slot, void *data, size_t bytes,
				  const ucp_am_recv_param_t *param)
{
	ucs_status_ptr_t status;

	if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
		memcpy(slot->buf, data, bytes);
		slot_done(slot, 0);
		return UCS_OK;
	}
	status = far_ucx_fetch(slot->host->worker, data, slot->buf, bytes, received, slot);
	if (!UCS_PTR_IS_PTR(status))
		message_done(slot, UCS_PTR_STATUS(status));
	return UCS_INPROGRESS;
}

ucs_status_t host_receive(void *arg, const void *header, size_t header_bytes, void *data,
			  size_t bytes, const ucp_am_recv_param_t *param)
{
	struct host *host = arg;
	struct far_reply reply;
	struct host_slot *slot;

	if (host->err)
		return UCS_OK;
	if (host->expected != FAR_OP_REPLY)
		return host_handshake_reply(host, header, header_bytes);
	if (header_bytes != sizeof(reply))
		return refuse_reply(host);
	memcpy(&reply, header, sizeof(reply));
	if (reply.op != FAR_OP_REPLY || reply.slot >= FAR_SLOTS || reply.status > 4095)
		return refuse_reply(host);
	slot = &host->slots[reply.slot];
	if (!slot->op || slot->answered ||
	    bytes != (!reply.status && slot->request.op == FAR_OP_GET ? slot->bytes : 0))
		return refuse_reply(host);
	slot->answered = true;
	host->heard = far_now();
	host->counters.held_bytes = reply.held;
	if (bytes)
		return receive_pages(slot, data, bytes, param);
	slot_done(slot, -(int)reply.status);
	return UCS_OK;
}
