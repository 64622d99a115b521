// SPDX-License-Identifier: LGPL-2.1-or-later
/* Connects a store with its server: see wire.h */
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../key.h"
#include "auth.h"
#include "host.h"
#include "ucx_network.h"

#define CONNECT_TRIES		4
#define CONNECT_PAUSE_US	100000

static void message_sent(void *request, ucs_status_t status, void *arg)
{
	(void)status, (void)arg;	/* an error of the connection is told to lost() */
	ucp_request_free(request);
}

static void send_message(struct host *host, const void *message, size_t bytes)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER,
		.cb.send = message_sent,
	};
	ucs_status_ptr_t status;

	status = ucp_am_send_nbx(host->ep, FAR_AM, message, bytes, NULL, 0, &param);
	if (UCS_PTR_IS_ERR(status))
		host_break(host, -EIO, ucs_status_string(UCS_PTR_STATUS(status)));
}

/* Called by UCX in progress, with the lock held */
static void lost(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct host *host = arg;

	(void)ep;
	if (status == UCS_ERR_REJECTED)
		host_break(host, -EACCES, "it doesn't know this job's key, or has too many stores");
	else
		host_lost(host, status);
}

static ucs_status_t bad_handshake(struct host *host)
{
	host_break(host, -EPROTO, "it is no memory server");
	return UCS_OK;
}

static ucs_status_t take_challenge(struct host *host, const void *header, size_t bytes)
{
	struct far_challenge *challenge = &host->challenge;
	char why[120];

	if (bytes < offsetof(struct far_challenge, conn))
		return bad_handshake(host);
	memcpy(challenge, header, bytes < sizeof(*challenge) ? bytes : sizeof(*challenge));
	if (challenge->op != FAR_OP_CHALLENGE || challenge->magic != FAR_WIRE_MAGIC)
		return bad_handshake(host);
	if (challenge->version != FAR_WIRE_VERSION) {
		snprintf(why, sizeof(why), "it has version %u of the protocol, this program %u "
			 "(install the same PVAS on both)", (unsigned int)challenge->version,
			 (unsigned int)FAR_WIRE_VERSION);
		host_break(host, -EPROTONOSUPPORT, why);
		return UCS_OK;
	}
	if (bytes != sizeof(*challenge) || challenge->status)
		return bad_handshake(host);
	host->expected = FAR_OP_WELCOME;	/* host_connect() sends the proof: it has the key */
	return UCS_OK;
}

static ucs_status_t take_welcome(struct host *host, const void *header, size_t bytes)
{
	if (bytes != sizeof(host->welcome))
		return bad_handshake(host);
	memcpy(&host->welcome, header, bytes);
	if (host->welcome.op != FAR_OP_WELCOME)
		return bad_handshake(host);
	host->expected = FAR_OP_REPLY;
	return UCS_OK;
}

ucs_status_t host_handshake_reply(struct host *host, const void *header, size_t bytes)
{
	if (host->expected == FAR_OP_CHALLENGE)
		return take_challenge(host, header, bytes);
	return take_welcome(host, header, bytes);
}

static int make_ep(struct host *host, const struct addrinfo *address)
{
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
			      UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
		.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER | UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID,
		.sockaddr = { address->ai_addr, address->ai_addrlen },
		.err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler = { lost, host },
	};
	ucs_status_t status = ucp_ep_create(host->worker, &params, &host->ep);

	if (status == UCS_OK)
		return 0;
	host->ep = NULL;
	host_break(host, -ECONNREFUSED, ucs_status_string(status));
	return -ECONNREFUSED;
}

/* Until the server's message has come. Nobody else has the store yet. */
static int await(struct host *host, enum far_op after, double limit)
{
	while (!host->err && host->expected != after) {
		if (far_now() > limit)
			host_break(host, -ETIMEDOUT, "no answer while connecting");
		host_drive(host, limit);
	}
	return host->err;
}

static int judge_welcome(struct host *host, const uint8_t *key)
{
	const struct far_welcome *welcome = &host->welcome;
	uint8_t mac[FAR_MAC_BYTES];
	char why[120];

	if (welcome->status == EACCES) {
		host_break(host, -EACCES, "it doesn't accept this job's key");
		return host->err;
	}
	far_prove_server(key, &host->hello, &host->challenge, welcome, mac);
	if (!far_mac_equal(mac, welcome->mac)) {
		host_break(host, -EACCES, "it doesn't know this job's key");
		return host->err;
	}
	if (welcome->status == ENOSPC) {
		snprintf(why, sizeof(why), "it has %llu MiB free, %llu MiB are needed",
			 (unsigned long long)welcome->free >> 20, (unsigned long long)
			 (host->hello.pages * host->hello.page_size + (1 << 20) - 1) >> 20);
		host_break(host, -ENOSPC, why);
	} else if (welcome->status) {
		host_break(host, -EPROTO, "it refuses this size");
	}
	return host->err;
}

static int handshake(struct host *host, const uint8_t *key)
{
	double limit = far_now() + HOST_CONNECT_S;
	int err;

	host->expected = FAR_OP_CHALLENGE;
	send_message(host, &host->hello, sizeof(host->hello));
	err = await(host, FAR_OP_WELCOME, limit);
	if (err)
		return err;
	host->proof.op = FAR_OP_PROOF;
	host->proof.conn = host->challenge.conn;
	far_prove_store(key, &host->hello, &host->challenge, host->proof.mac);
	send_message(host, &host->proof, sizeof(host->proof));
	err = await(host, FAR_OP_REPLY, limit);
	return err ? err : judge_welcome(host, key);
}

/* "node7:7700", "10.0.0.7:7700" or "[fd00::7]:7700" */
static int resolve(struct host *host, struct addrinfo **list)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	char copy[sizeof(host->name)], *node = copy, *port;
	int err;

	strcpy(copy, host->name);
	port = strrchr(copy, ':');
	if (!port || port == copy || !port[1]) {
		host_break(host, -EINVAL, "not HOST:PORT");
		return host->err;
	}
	*port++ = '\0';
	if (*node == '[' && port[-2] == ']') {
		node++;
		port[-2] = '\0';
	}
	err = getaddrinfo(node, port, &hints, list);
	if (err)
		host_break(host, -EHOSTUNREACH, gai_strerror(err));
	return host->err;
}

static int try_address(struct host *host, const struct addrinfo *address, const uint8_t *key)
{
	int err;

	host->err = 0;
	host->expected = FAR_OP_CHALLENGE;
	err = make_ep(host, address);
	if (!err)
		err = handshake(host, key);
	if (err)
		host_abandon(host);
	return err;
}

/*
 * A server's name may have several addresses: an error other than "not there" is final. UCX
 * may lose a connection of a busy server while it is set up, so that is tried again.
 */
static int try_addresses(struct host *host, const struct addrinfo *list, const uint8_t *key)
{
	const struct addrinfo *address;
	int err = -ECONNREFUSED, tries;

	for (tries = 0; tries < CONNECT_TRIES && err == -ECONNREFUSED; tries++) {
		if (tries)
			usleep(CONNECT_PAUSE_US);
		for (address = list; address && err == -ECONNREFUSED; address = address->ai_next)
			err = try_address(host, address, key);
	}
	return err;
}

static int make_worker(struct host *host, const struct addrinfo *server, const uint8_t *key)
{
	char network[FAR_NETWORK];
	bool one = far_network_to(server->ai_addr, server->ai_addrlen, network);
	ucs_status_t status = far_ucx_open(&host->context, one ? network : NULL);

	if (status == UCS_OK) {
		status = far_ucx_worker(host->context, far_token(key), &host->worker, &host->efd);
		if (status == UCS_OK)
			return 0;
		ucp_cleanup(host->context);
	}
	host->context = NULL;
	host_break(host, -ENODEV, ucs_status_string(status));
	return host->err;
}

static int connect_to(struct host *host, const struct addrinfo *list, const uint8_t *key)
{
	int err = make_worker(host, list, key);

	if (!err && far_ucx_handler(host->worker, host_receive, host) != UCS_OK)
		err = -ENODEV;
	return err ? err : try_addresses(host, list, key);
}

/* UCX makes a thread: it is not to take the program's signals. */
int host_connect(struct host *host, const uint8_t *key)
{
	struct addrinfo *list;
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	far_ucx_quiet++;
	err = far_random(host->hello.nonce, sizeof(host->hello.nonce));
	if (err)
		host_break(host, err, "no random numbers");
	else
		err = resolve(host, &list);
	if (!err) {
		err = connect_to(host, list, key);
		freeaddrinfo(list);
	}
	far_ucx_quiet--;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

void host_disconnect(struct host *host)
{
	far_ucx_quiet++;
	host_abandon(host);
	if (host->context) {
		ucp_worker_destroy(host->worker);
		ucp_cleanup(host->context);
	}
	far_ucx_quiet--;
}
