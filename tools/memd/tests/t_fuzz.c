// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hostile store: sends a server what the protocol doesn't have, by UCX.
 *
 * usage: t_fuzz HOST:PORT KEYFILE|- SEED COUNT
 *
 * COUNT connections, each with messages chosen by SEED: mutated handshakes, or, after a right
 * one, requests with wrong sizes, indices, slots and connection numbers, products that wrap,
 * data that doesn't fit, and floods whose answers are not awaited. -: a stranger without a key,
 * who is to be refused each time. Status 0: all were served or refused as they must be.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "auth.h"
#include "key.h"
#include "host.h"
#include "ucx.h"

#define PAGES	256u
#define DATA	(64u << 20)

static uint8_t key[FAR_KEY_BYTES];
static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static struct sockaddr_in address;
static uint64_t state;
static bool lost, refused;
static struct far_challenge challenge;
static struct far_welcome welcome;
static unsigned int answers;
static char *data;
/* Sent headers stay until the connection has ended. */
static char headers[1024][128];
static unsigned int sent_headers;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t below(uint64_t n)
{
	return draw() % n;
}

/* Numbers at which checks go wrong */
static uint64_t edge(void)
{
	static const uint64_t edges[] = {
		0, 1, 2, PAGES - 1, PAGES, PAGES + 1, 1u << 20, 1u << 31, UINT32_MAX,
		1ull << 32, 1ull << 52, (1ull << 52) - 1, 1ull << 63, UINT64_MAX, UINT64_MAX - 1,
	};

	return below(4) ? edges[below(sizeof(edges) / sizeof(*edges))] : draw();
}

static void on_error(void *arg, ucp_ep_h which, ucs_status_t status)
{
	(void)arg, (void)which;
	lost = true;
	refused = status == UCS_ERR_REJECTED;
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_bytes, void *bytes,
			       size_t count, const ucp_am_recv_param_t *param)
{
	uint32_t op = 0;

	(void)arg, (void)bytes, (void)count, (void)param;
	if (header_bytes >= sizeof(op))
		memcpy(&op, header, sizeof(op));
	if (op == FAR_OP_CHALLENGE && header_bytes == sizeof(challenge))
		memcpy(&challenge, header, sizeof(challenge));
	if (op == FAR_OP_WELCOME && header_bytes == sizeof(welcome))
		memcpy(&welcome, header, sizeof(welcome));
	answers++;
	return UCS_OK;	/* pages are not fetched */
}

static void progress(double seconds)
{
	double until = far_now() + seconds;

	do {
		ucp_worker_progress(worker);
	} while (!lost && far_now() < until);
}

static void free_request(void *request, ucs_status_t status, void *arg)
{
	(void)status, (void)arg;
	ucp_request_free(request);
}

static void transmit(unsigned int id, const void *header, size_t header_bytes, size_t bytes,
		 unsigned int flags)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS,
		.flags = flags,
		.cb.send = free_request,
	};
	char *copy = headers[sent_headers++ % 1024];

	memcpy(copy, header, header_bytes);
	if (!lost)
		ucp_am_send_nbx(ep, id, copy, header_bytes, data, bytes, &param);
}

static int connect_it(void)
{
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
			      UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
		.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER | UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID,
		.sockaddr = { (struct sockaddr *)&address, sizeof(address) },
		.err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler = { on_error, NULL },
	};

	lost = refused = false;
	answers = 0;
	memset(&challenge, 0, sizeof(challenge));
	memset(&welcome, 0xff, sizeof(welcome));
	return ucp_ep_create(worker, &params, &ep) == UCS_OK ? 0 : -1;
}

static void disconnect(void)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE,
	};
	ucs_status_ptr_t status = ucp_ep_close_nbx(ep, &param);

	while (UCS_PTR_IS_PTR(status) && ucp_request_check_status(status) == UCS_INPROGRESS)
		ucp_worker_progress(worker);
	if (UCS_PTR_IS_PTR(status))
		ucp_request_free(status);
}

static void await(const volatile uint32_t *value, uint32_t other_than)
{
	double until = far_now() + 5;

	while (*value == other_than && !lost && far_now() < until)
		ucp_worker_progress(worker);
}

static void make_hello(struct far_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->op = FAR_OP_HELLO;
	hello->magic = FAR_WIRE_MAGIC;
	hello->version = FAR_WIRE_VERSION;
	hello->page_size = 4096;
	hello->pages = PAGES;
}

/* Return: is the connection open? */
static bool handshake(const struct far_hello *hello, bool right_proof)
{
	struct far_proof proof = { .op = FAR_OP_PROOF };

	transmit(FAR_AM, hello, sizeof(*hello), 0, UCP_AM_SEND_FLAG_REPLY);
	await(&challenge.op, 0);
	proof.conn = challenge.conn;
	far_prove_store(key, hello, &challenge, proof.mac);
	if (!right_proof)
		proof.mac[below(sizeof(proof.mac))] ^= 1 << below(8);
	transmit(FAR_AM, &proof, sizeof(proof), 0, UCP_AM_SEND_FLAG_REPLY);
	await(&welcome.op, 0xffffffff);
	return !lost && welcome.op == FAR_OP_WELCOME && !welcome.status;
}

static unsigned int any_flags(void)
{
	static const unsigned int flags[] = {
		UCP_AM_SEND_FLAG_REPLY, UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_RNDV,
		UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER, UCP_AM_SEND_FLAG_RNDV, 0,
	};

	return flags[below(5)];
}

static void fuzz_handshake(void)
{
	struct far_hello hello;
	size_t bytes = sizeof(hello);

	make_hello(&hello);
	switch (below(5)) {
	case 0:
		hello.page_size = edge();
		break;
	case 1:
		hello.pages = edge();
		break;
	case 2:
		hello.version = edge();
		break;
	case 3:
		bytes = below(bytes + 40);
		break;
	case 4:
		((uint8_t *)&hello)[below(sizeof(hello))] ^= draw();
		break;
	}
	if (bytes == sizeof(hello)) {
		if (handshake(&hello, below(2)) && (hello.page_size & (hello.page_size - 1)))
			exit(2);
		return;
	}
	transmit(FAR_AM, headers[1023], bytes, below(1u << 20), any_flags());
	progress(0.02);
}

static void make_request(struct far_request *request)
{
	request->op = FAR_OP_PUT + below(3);
	request->conn = challenge.conn;
	request->slot = below(FAR_SLOTS);
	request->count = 1 + below(4);
	request->first = below(PAGES - 4);
}

static void fuzz_requests(void)
{
	struct far_request request;
	unsigned int i, flood = below(4) ? 1 + below(8) : 900;
	size_t bytes, header;

	for (i = 0; i < flood && !lost; i++) {
		make_request(&request);
		bytes = request.op == FAR_OP_PUT ? request.count * 4096 : 0;
		header = sizeof(request);
		switch (below(12)) {
		case 0: request.first = edge(); break;
		case 1: request.count = edge(); break;
		case 2: request.slot = edge(); break;
		case 3: request.conn = edge(); break;
		case 4: request.op = edge(); break;
		case 5: bytes = below(below(8) ? 1u << 20 : DATA); break;
		case 6: header = below(sizeof(headers[0])); break;
		case 7: request.first = UINT64_MAX - below(8); request.count = below(16); break;
		}
		transmit(below(50) ? FAR_AM : below(100), &request,
		     header < sizeof(request) ? header : sizeof(request), bytes, any_flags());
	}
	progress(0.01 + (below(8) ? 0 : 0.05));
}

/* Return: was the server as it must be? */
static bool round_trip(bool stranger)
{
	struct far_hello hello;

	if (connect_it() < 0)
		return false;
	make_hello(&hello);
	if (stranger) {
		handshake(&hello, true);
		progress(0.2);
		disconnect();
		return refused && !answers;
	}
	if (!below(3)) {
		fuzz_handshake();
	} else if (!below(6)) {
		if (handshake(&hello, false))
			return false;	/* a wrong proof was accepted */
	} else if (handshake(&hello, true)) {
		fuzz_requests();
	} else if (welcome.status != 28) {
		fprintf(stderr, "t_fuzz: no handshake, lost %d\n", lost);
		disconnect();
		return false;
	}
	disconnect();
	return true;
}

static int set_up(char **argv)
{
	char why[160], node[64];
	unsigned int port;
	int efd;

	if (sscanf(argv[1], "%63[^:]:%u", node, &port) != 2)
		return -1;
	address.sin_family = AF_INET;
	address.sin_port = htons(port);
	inet_pton(AF_INET, node, &address.sin_addr);
	state = strtoull(argv[3], NULL, 10) * 0x9e3779b97f4a7c15ull + 1;
	if (!strcmp(argv[2], "-"))
		memset(key, 7, sizeof(key));
	else if (far_key_read(argv[2], key, why, sizeof(why)))
		return -1;
	far_ucx_quiet_all();
	data = calloc(1, DATA);
	if (!data || far_ucx_open(&context, NULL) != UCS_OK ||
	    far_ucx_worker(context, far_token(key), &worker, &efd) != UCS_OK)
		return -1;
	return far_ucx_handler(worker, on_message, NULL) == UCS_OK ? 0 : -1;
}

int main(int argc, char **argv)
{
	unsigned int i, wrong = 0;

	if (argc != 5 || set_up(argv) < 0)
		return 3;
	for (i = 0; i < strtoul(argv[4], NULL, 10) && wrong < 10; i++)
		wrong += !round_trip(!strcmp(argv[2], "-"));
	printf("%u connections, %u wrong\n", i, wrong);
	return wrong > 0;
}
