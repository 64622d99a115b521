// SPDX-License-Identifier: GPL-2.0-only
/* Where connections come in */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "memd.h"

const char *address_text(const struct sockaddr_storage *address, char *text, size_t len)
{
	const struct sockaddr_in *in = (const void *)address;
	const struct sockaddr_in6 *in6 = (const void *)address;
	bool six = address->ss_family == AF_INET6;

	if (!inet_ntop(address->ss_family, six ? (void *)&in6->sin6_addr : (void *)&in->sin_addr,
		       text, len))
		snprintf(text, len, "unknown address");
	return text;
}

unsigned int address_port(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

/* Called by UCX in its progress. A stranger is sent away before anything is kept of it. */
static void knock(ucp_conn_request_h request, void *arg)
{
	ucp_conn_request_attr_t attr = {
		.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR |
			      UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID,
		.client_id = 0,
	};
	char text[INET6_ADDRSTRLEN] = "";
	struct memd *memd = arg;
	struct job *job = NULL;

	if (ucp_conn_request_query(request, &attr) == UCS_OK) {
		address_text(&attr.client_address, text, sizeof(text));
		job = job_find(memd, attr.client_id);
	}
	if (!job) {
		notice(memd, "%s: refused, no job has its key", text);
		ucp_listener_reject(memd->listener, request);
	} else if (conn_accept(memd, job, request) < 0) {
		notice(memd, "%s: refused, too many stores (job %s)", text, job->name);
	}
}

static int resolve(const char *listen, struct addrinfo **list, char *why, size_t len)
{
	struct addrinfo hints = {
		.ai_family = AF_INET, .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | AI_PASSIVE,
	};
	char copy[256], *node = NULL, *port = copy;
	int err;

	snprintf(copy, sizeof(copy), "%s", listen);
	if (strrchr(copy, ':')) {
		node = copy;
		port = strrchr(copy, ':');
		*port++ = '\0';
		hints.ai_family = AF_UNSPEC;
		if (*node == '[' && port > node + 2 && port[-2] == ']') {
			node++;
			port[-2] = '\0';
		}
	}
	err = getaddrinfo(node, port, &hints, list);
	if (!err)
		return 0;
	snprintf(why, len, "can't listen at %s: %s", listen, gai_strerror(err));
	return -EINVAL;
}

static ucs_status_t listen_at(struct memd *memd, const struct addrinfo *address)
{
	ucp_listener_params_t params = {
		.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
			      UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
		.sockaddr = { address->ai_addr, address->ai_addrlen },
		.conn_handler = { knock, memd },
	};

	return ucp_listener_create(memd->entrance, &params, &memd->listener);
}

/* The line that a script waits for, with the port that was chosen */
static void announce(struct memd *memd)
{
	ucp_listener_attr_t attr = { .field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR };
	char text[INET6_ADDRSTRLEN];

	if (ucp_listener_query(memd->listener, &attr) != UCS_OK)
		return;
	memd->port = address_port(&attr.sockaddr);
	printf("pvas-memd: listening at %s port %u, %.1f MiB\n",
	       address_text(&attr.sockaddr, text, sizeof(text)), memd->port,
	       memd->options.ram / 1048576.0);
	fflush(stdout);
}

/* Where to listen, and the network for that */
int entrance_resolve(struct memd *memd, char *why, size_t len)
{
	int err = resolve(memd->options.listen, &memd->addresses, why, len);

	if (err || far_network_of(memd->addresses->ai_addr, memd->network))
		return err;
	*memd->network = '\0';
	if (!far_network_several())
		return 0;
	snprintf(why, len, "this node has several networks (name an address with --listen, "
		 "or networks by UCX_NET_DEVICES)");
	return -EINVAL;
}

int entrance_open(struct memd *memd, char *why, size_t len)
{
	ucs_status_t status;

	status = far_ucx_worker(memd->context, 0, &memd->entrance, &memd->entrance_efd);
	if (status == UCS_OK) {
		status = listen_at(memd, memd->addresses);
		if (status != UCS_OK)
			ucp_worker_destroy(memd->entrance);
	}
	freeaddrinfo(memd->addresses);
	if (status != UCS_OK) {
		snprintf(why, len, "can't listen at %s: %s", memd->options.listen,
			 status == UCS_ERR_BUSY ? "the port is in use" : ucs_status_string(status));
		return -EADDRINUSE;
	}
	announce(memd);
	return 0;
}
