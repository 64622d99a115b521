// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPICH's ranks of a job of which only the first node exists (pvasrun --pretend): a
 * library that is preloaded, and stands between MPICH's device ch4:ucx and UCX.
 *
 * No endpoints are created for ranks of other nodes, except with PVAS_PRETEND_FULL. A message
 * of a user's to one fails. In collective operations such a rank answers a message with the
 * same message. That is right for algorithms in which all ranks have the same part and each
 * step's message goes to the rank that the step's other message comes from ("recursive
 * doubling"), which pvasrun sets for the operations that create communicators: what the peer
 * sends is what we send to it, but with its own ranks' values in place of ours.
 *
 * A receive does not say whether its source exists, so it waits for the next message of the
 * same operation, which goes to the same rank; or until MPICH waits for messages, for then
 * there is none.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

#define EXPORT __attribute__((visibility("default")))

/* ---- tags: 16 bits of context, the lowest for collective operations; rank; tag ---- */

#define COLLECTIVE	(1ULL << 48)
/* In the rank's field, and in the tag's, however many bits MPICH was built with */
#define OF_RANK		(1ULL << 47)
#define OF_OPERATION	(0xffffULL << 48 | 0xffff)

/* ---- endpoints ---- */

#define LOCAL_MAX 4096

static ucp_ep_h local[LOCAL_MAX];
static unsigned int nr_local, nr_endpoints;

/* MPICH never looks into one, so a rank's number will do; it is odd, as no address is. */
static ucp_ep_h pretended_endpoint(unsigned int rank)
{
	return (ucp_ep_h)((uintptr_t)rank << 1 | 1);
}

static bool is_pretended(ucp_ep_h ep)
{
	return (uintptr_t)ep & 1;
}

static bool is_local(ucp_ep_h ep)
{
	unsigned int i;

	for (i = 0; i < nr_local; i++)
		if (local[i] == ep)
			return true;
	return false;
}

static unsigned int number(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : 0;
}

/* The function of this name in libucp, behind this library's */
#define REAL(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

/* MPICH creates them in the order of ranks. */
EXPORT ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
	static ucs_status_t (*real)(ucp_worker_h, const ucp_ep_params_t *, ucp_ep_h *);
	static unsigned int ranks;
	static bool full;
	ucs_status_t status = UCS_OK;

	if (!real) {
		real = REAL(ucp_ep_create);
		ranks = number("PVAS_PRETEND_RANKS");
		full = number("PVAS_PRETEND_FULL");
	}
	if (full || nr_endpoints < ranks)
		status = real(worker, params, ep);
	else
		*ep = pretended_endpoint(nr_endpoints);
	if (status == UCS_OK && nr_endpoints++ < ranks && nr_local < LOCAL_MAX)
		local[nr_local++] = *ep;
	return status;
}

EXPORT ucs_status_ptr_t ucp_disconnect_nb(ucp_ep_h ep)
{
	return is_pretended(ep) ? NULL : REAL(ucp_disconnect_nb)(ep);
}

static ucs_status_ptr_t refuse(const char *what, ucp_ep_h ep)
{
	if (is_pretended(ep))
		fprintf(stderr, "pvasrun --pretend: %s rank %zu, which does not exist\n", what,
			(size_t)((uintptr_t)ep >> 1));
	else
		fprintf(stderr, "pvasrun --pretend: %s a rank that does not exist\n", what);
	return UCS_STATUS_PTR(UCS_ERR_UNREACHABLE);
}

/* ---- receives ---- */

struct receive {
	void *of_mpich;		/* what it keeps in a request; must be first */
	struct receive *next;
	ucp_worker_h worker;
	ucp_tag_t tag;
	ucp_tag_t mask;
	void *buf;
	size_t count;
	ucp_request_param_t param;
	void *real;		/* UCX's request, if the source may exist */
	bool used;
};

/* An array, to tell them from UCX's requests by their address */
#define RECEIVES_MAX 256
static struct receive receives[RECEIVES_MAX], *undecided;

static bool is_ours(const void *request)
{
	return (uintptr_t)request - (uintptr_t)receives < sizeof(receives);
}

static struct receive *new_receive(void)
{
	unsigned int i;

	for (i = 0; i < RECEIVES_MAX; i++)
		if (!receives[i].used)
			return &receives[i];
	return NULL;
}

static void append(struct receive *r)
{
	struct receive **at = &undecided;

	while (*at)
		at = &(*at)->next;
	*at = r;
}

/* The first one of the same operation as @tag, or of all */
static struct receive *take(ucp_tag_t tag, ucp_tag_t mask)
{
	struct receive **at = &undecided, *r;

	while ((r = *at) && (r->tag ^ tag) & mask)
		at = &r->next;
	if (r)
		*at = r->next;
	return r;
}

/* UCX has received a message for @data. @info is part of @request. */
static void forward(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *data)
{
	struct receive *r = data;

	r->real = NULL;
	r->param.cb.recv(r, status, info, r->param.user_data);
	REAL(ucp_request_release)(request);
}

static void post(struct receive *r)
{
	ucp_request_param_t param = r->param;
	ucp_tag_recv_info_t info = { .sender_tag = r->tag };
	void *real;

	param.cb.recv = forward;
	param.user_data = r;
	real = REAL(ucp_tag_recv_nbx)(r->worker, r->buf, r->count, r->tag, r->mask, &param);
	if (UCS_PTR_IS_ERR(real))
		r->param.cb.recv(r, UCS_PTR_STATUS(real), &info, r->param.user_data);
	else if (r->used)
		r->real = real;
}

static bool is_plain(const ucp_request_param_t *param)
{
	return param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK &&
	       !(param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE);
}

EXPORT ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buf, size_t count,
					 ucp_tag_t tag, ucp_tag_t mask,
					 const ucp_request_param_t *param)
{
	struct receive *r = NULL;

	if (tag & COLLECTIVE && mask & OF_RANK && is_plain(param))
		r = new_receive();
	if (!r)
		return REAL(ucp_tag_recv_nbx)(worker, buf, count, tag, mask, param);
	*r = (struct receive){
		.worker = worker, .tag = tag, .mask = mask, .buf = buf, .count = count,
		.param = *param, .used = true,
	};
	append(r);
	return r;
}

EXPORT unsigned int ucp_worker_progress(ucp_worker_h worker)
{
	static unsigned int (*real)(ucp_worker_h worker);
	struct receive *r;

	if (!real)
		real = REAL(ucp_worker_progress);
	while ((r = take(0, 0)))
		post(r);
	return real(worker);
}

EXPORT void ucp_request_release(void *request)
{
	if (is_ours(request))
		((struct receive *)request)->used = false;
	else
		REAL(ucp_request_release)(request);
}

EXPORT void ucp_request_cancel(ucp_worker_h worker, void *request)
{
	struct receive *r = request;

	if (!is_ours(request))
		REAL(ucp_request_cancel)(worker, request);
	else if (r->real)
		REAL(ucp_request_cancel)(worker, r->real);
}

/* ---- messages ---- */

/* One that nobody waits for here, as of a broadcast, is lost. */
static ucs_status_ptr_t answer(const void *buf, size_t size, ucp_tag_t tag)
{
	struct receive *r = take(tag, OF_OPERATION);
	ucp_tag_recv_info_t info;

	if (!r)
		return NULL;
	info.sender_tag = r->tag;
	info.length = size < r->count ? size : r->count;
	memcpy(r->buf, buf, info.length);
	r->param.cb.recv(r, UCS_OK, &info, r->param.user_data);
	return NULL;
}

static ucs_status_ptr_t pretend_to_send(ucp_ep_h ep, const void *buf, size_t count, ucp_tag_t tag,
					const ucp_request_param_t *param)
{
	if (!(tag & COLLECTIVE))
		return refuse("a message to", ep);
	if (param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE)
		return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
	return answer(buf, count, tag);
}

static void decide(ucp_tag_t tag)
{
	struct receive *r = tag & COLLECTIVE ? take(tag, OF_OPERATION) : NULL;

	if (r)
		post(r);
}

EXPORT ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buf, size_t count, ucp_tag_t tag,
					 const ucp_request_param_t *param)
{
	if (!is_local(ep))
		return pretend_to_send(ep, buf, count, tag, param);
	decide(tag);
	return REAL(ucp_tag_send_nbx)(ep, buf, count, tag, param);
}

EXPORT ucs_status_ptr_t ucp_tag_send_sync_nbx(ucp_ep_h ep, const void *buf, size_t count,
					      ucp_tag_t tag, const ucp_request_param_t *param)
{
	if (!is_local(ep))
		return pretend_to_send(ep, buf, count, tag, param);
	decide(tag);
	return REAL(ucp_tag_send_sync_nbx)(ep, buf, count, tag, param);
}

/* ---- what one-sided operations need ---- */

EXPORT ucs_status_ptr_t ucp_am_send_nb(ucp_ep_h ep, uint16_t id, const void *buf, size_t count,
				       ucp_datatype_t datatype, ucp_send_callback_t done,
				       unsigned int flags)
{
	if (is_pretended(ep))
		return refuse("an active message to", ep);
	return REAL(ucp_am_send_nb)(ep, id, buf, count, datatype, done, flags);
}

EXPORT ucs_status_t ucp_ep_rkey_unpack(ucp_ep_h ep, const void *packed, ucp_rkey_h *key)
{
	if (is_pretended(ep))
		return UCS_PTR_STATUS(refuse("a window with", ep));
	return REAL(ucp_ep_rkey_unpack)(ep, packed, key);
}
