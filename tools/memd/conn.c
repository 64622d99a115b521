// SPDX-License-Identifier: GPL-2.0-only
/* Connections: from the entrance to their end */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "key.h"
#include "memd.h"

/*
 * UCX may tell of an error after an endpoint could not be made: so it gets no pointer, but
 * a number that is never used again.
 */
static struct memd *server;

static void *handle(const struct conn *conn)
{
	return (void *)(conn->number * MAX_CONNS + conn->index);
}

/* Called by UCX in progress */
static void lost(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct conn *conn = server->conns[(uintptr_t)arg % MAX_CONNS];

	(void)ep;
	if (conn && handle(conn) == arg)
		conn_fail(conn, ucs_status_string(status));
}

static struct conn *make(struct memd *memd, struct job *job)
{
	struct conn *conn;
	unsigned int i;

	for (i = 0; i < MAX_CONNS && memd->conns[i]; i++)
		;
	conn = i < MAX_CONNS ? calloc(1, sizeof(*conn)) : NULL;
	if (!conn)
		return NULL;
	server = memd;
	conn->memd = memd;
	conn->index = i;
	conn->number = ++memd->numbers;
	conn->job = job;
	conn->deadline = far_now() + HANDSHAKE_S;
	for (i = 0; i < FAR_SLOTS; i++)
		conn->slots[i].conn = conn;
	for (i = 0; i < MAX_ANSWERS; i++) {
		conn->answers[i].conn = conn;
		conn->answers[i].next = conn->free_answers;
		conn->free_answers = &conn->answers[i];
	}
	return conn;
}

static unsigned int count_conns(const struct memd *memd, const struct job *job)
{
	unsigned int i, n = 0;

	for (i = 0; i < MAX_CONNS; i++)
		n += memd->conns[i] && memd->conns[i]->job == job;
	return n;
}

/* Takes the request in any case. */
int conn_accept(struct memd *memd, struct job *job, ucp_conn_request_h request)
{
	struct conn *conn = count_conns(memd, job) < MAX_JOB_STORES ? make(memd, job) : NULL;
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLER |
			      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
		.conn_request = request,
		.err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler = { lost, NULL },
	};

	ucs_status_t status;

	if (!conn) {
		ucp_listener_reject(memd->listener, request);
		return -EMFILE;
	}
	params.err_handler.arg = handle(conn);
	status = ucp_ep_create(memd->worker, &params, &conn->ep);
	if (status != UCS_OK) {
		notice(memd, "job %s: no connection: %s", job->name, ucs_status_string(status));
		free(conn);
		return 0;
	}
	memd->conns[conn->index] = conn;
	memd->conn_count++;
	return 0;
}

void conn_fail(struct conn *conn, const char *why)
{
	if (!conn->failure)
		conn->failure = why;
}

/* NULL: the other side takes no answers. It has more under way than a store ever has. */
struct answer *conn_answer(struct conn *conn)
{
	struct answer *answer = conn->free_answers;

	if (answer)
		conn->free_answers = answer->next;
	else
		conn_fail(conn, "too many requests");
	return answer;
}

static void answer_done(struct answer *answer, ucs_status_t status)
{
	struct conn *conn = answer->conn;

	conn->users--;
	answer->next = conn->free_answers;
	conn->free_answers = answer;
	if (status != UCS_OK)
		conn_fail(conn, ucs_status_string(status));
	else if (conn->state == CONN_OPEN)
		conn->deadline = far_now() + PATIENCE_S;
}

static void sent(void *request, ucs_status_t status, void *arg)
{
	ucp_request_free(request);
	answer_done(arg, status);
}

/* @answer's message has @bytes bytes. */
void conn_send(struct conn *conn, struct answer *answer, size_t bytes, const void *data,
	       size_t data_bytes)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
				UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.flags = data_bytes > FAR_EAGER_BYTES ? UCP_AM_SEND_FLAG_RNDV :
							UCP_AM_SEND_FLAG_EAGER,
		.cb.send = sent,
		.user_data = answer,
		.memory_type = UCS_MEMORY_TYPE_HOST,
	};
	ucs_status_ptr_t status;

	if (!conn->users && conn->state == CONN_OPEN)
		conn->deadline = far_now() + PATIENCE_S;
	conn->users++;
	status = ucp_am_send_nbx(conn->ep, FAR_AM, &answer->reply, bytes, data, data_bytes,
				 &param);
	if (!UCS_PTR_IS_PTR(status))
		answer_done(answer, UCS_PTR_STATUS(status));
}

static struct conn *find(struct memd *memd, ucp_ep_h ep, const void *header, size_t bytes)
{
	uint32_t index = MAX_CONNS;
	unsigned int i;

	if (bytes == sizeof(struct far_request) || bytes == sizeof(struct far_proof))
		memcpy(&index, (const char *)header + sizeof(uint32_t), sizeof(index));
	if (index < MAX_CONNS && memd->conns[index] && memd->conns[index]->ep == ep)
		return memd->conns[index];
	for (i = 0; i < MAX_CONNS; i++)
		if (memd->conns[i] && memd->conns[i]->ep == ep)
			return memd->conns[i];
	return NULL;
}

/* Called by UCX in progress, for each message */
ucs_status_t conn_receive(void *arg, const void *header, size_t header_bytes, void *data,
			  size_t bytes, const ucp_am_recv_param_t *param)
{
	struct conn *conn = NULL;

	if (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)
		conn = find(arg, param->reply_ep, header, header_bytes);
	if (!conn || conn->failure)
		return UCS_OK;
	if (conn->state == CONN_OPEN)
		return serve(conn, header, header_bytes, data, bytes, param);
	if (bytes)
		conn_fail(conn, "a message with data before the handshake");
	else if (conn->state == CONN_NEW)
		hello_receive(conn, header, header_bytes);
	else if (conn->state == CONN_CHALLENGED)
		proof_receive(conn, header, header_bytes);
	return UCS_OK;
}

static void end(struct conn *conn)
{
	struct memd *memd = conn->memd;

	say(memd, "job %s: a store ends: %s", conn->job->name, conn->failure);
	pages_release(conn);
	memd->conns[conn->index] = NULL;
	memd->conn_count--;
	far_wipe(conn, sizeof(*conn));
	free(conn);
}

static void begin_close(struct conn *conn)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE,
	};

	conn->closing = ucp_ep_close_nbx(conn->ep, &param);
	conn->ep = NULL;
}

/* UCX must be at an end with the connection and with all that uses its memory. */
static bool closed(struct conn *conn)
{
	if (UCS_PTR_IS_PTR(conn->closing)) {
		if (ucp_request_check_status(conn->closing) == UCS_INPROGRESS)
			return false;
		ucp_request_free(conn->closing);
		conn->closing = NULL;
	}
	return !conn->users;
}

void conns_reap(struct memd *memd)
{
	double now = far_now();
	struct conn *conn;
	unsigned int i;

	for (i = 0; memd->conn_count && i < MAX_CONNS; i++) {
		conn = memd->conns[i];
		if (!conn)
			continue;
		if ((conn->state != CONN_OPEN || conn->users) && now > conn->deadline)
			conn_fail(conn, "no answer");
		if (conn->failure && conn->ep)
			begin_close(conn);
		if (!conn->ep && closed(conn))
			end(conn);
	}
}
