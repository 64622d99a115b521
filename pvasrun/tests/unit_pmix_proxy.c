// SPDX-License-Identifier: GPL-2.0-only
/* A rank that ends while the server is behind: the server still gets all that it said. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../handoff.h"
#include "../pmix_proxy.h"
#include "unit.h"

#define PIECE 8192

static int server_listener = -1;

/* Like libpmix: the socket that it listens on becomes the pipe of handoff.c. */
static int start_server(void *arg)
{
	(void)arg;
	if (server_listener < 0) {
		server_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		check(!handoff_open());
		check(!listen(server_listener, 5));
	}
	return handoff_works() ? 0 : -1;
}

static size_t add(char *to, size_t len, const void *bytes, size_t n)
{
	memcpy(to + len, bytes, n);
	return len + n;
}

static size_t make_handshake(char *to, const struct handshake *expected, unsigned int number,
			     const char *version, const char *data)
{
	const uint32_t len_of_ids = htonl(8), rank = htonl(number);
	uint64_t len = 16;

	memset(to, 0xff, 8);
	len = add(to, len, "native", 7);
	len = add(to, len, &len_of_ids, 4);
	len = add(to, len, &expected->uid, 4);
	len = add(to, len, &expected->gid, 4);
	len = add(to, len, "", 1);
	len = add(to, len, expected->nspace, strlen(expected->nspace) + 1);
	len = add(to, len, &rank, 4);
	len = add(to, len, version, strlen(version) + 1);
	len = add(to, len, data, strlen(data) + 1);
	len = add(to, len, "\1", 1);
	len = add(to, len, "hash", 5);
	*(uint64_t *)(to + 8) = len - 16;
	return len;
}

static void turns(struct loop *loop)
{
	while (loop_turn(loop, 20) > 0)
		;
}

/* Returns the bytes that the rank has said: more than the server's socket has room for. */
static size_t say_much(struct pmix_proxy *proxy, int rank)
{
	static char piece[PIECE];
	size_t said = 0;

	memset(piece, 'x', sizeof(piece));
	while (said < 64UL << 20 && !proxy->conns->server.unsent) {
		check(write(rank, piece, sizeof(piece)) == sizeof(piece));
		said += sizeof(piece);
		turns(proxy->loop);
	}
	/* This stays in the rank's socket. */
	memcpy(piece + sizeof(piece) - 4, "last", 4);
	check(write(rank, piece, sizeof(piece)) == sizeof(piece));
	return said + sizeof(piece);
}

/* Everything that the server is sent until its connection ends; @last: the last four bytes */
static size_t hear_all(struct loop *loop, int server, char last[4])
{
	static char piece[PIECE];
	struct pollfd end = { .fd = server, .events = POLLIN };
	size_t heard = 0;
	ssize_t n;

	memset(last, 0, 4);
	while (poll(&end, 1, 200) > 0 && (n = read(server, piece, sizeof(piece))) > 0) {
		heard += n;
		if (n >= 4)
			memcpy(last, piece + n - 4, 4);
		turns(loop);
	}
	return heard;
}

/* @unread: the rank has not read all that the server said, so its end is a reset */
static void one_rank(struct pmix_proxy *proxy, bool unread)
{
	int rank = connect_to(proxy->port), server;
	char first[256], last[4];
	size_t len = make_handshake(first, &proxy->expected, 0, "4.2.2", "v41"), said;

	check(write(rank, first, len) == (ssize_t)len);
	turns(proxy->loop);
	server = accept(server_listener, NULL, NULL);
	check(server >= 0 && proxy->conns->server.event.fd >= 0);
	if (server < 0)
		return;
	said = len + say_much(proxy, rank);
	check(!unread || write(server, "?", 1) == 1);
	turns(proxy->loop);
	close(rank);
	turns(proxy->loop);
	check(hear_all(proxy->loop, server, last) == said);
	check(!memcmp(last, "last", 4));
	close(server);
	turns(proxy->loop);
	check(proxy->conns->client.event.fd < 0 && proxy->conns->server.event.fd < 0);
}

/* A rank that is gone before the server answers: libpmix 5.0 must be able to, and sees the end. */
static void no_rank(struct pmix_proxy *proxy)
{
	int rank = connect_to(proxy->port), server;
	char first[256], last[4];
	size_t len = make_handshake(first, &proxy->expected, 0, "4.2.2", "v41");

	check(write(rank, first, len) == (ssize_t)len);
	turns(proxy->loop);
	server = accept(server_listener, NULL, NULL);
	close(rank);
	turns(proxy->loop);
	check(send(server, "good", 4, MSG_NOSIGNAL) == 4);
	turns(proxy->loop);
	check(send(server, "one", 4, MSG_NOSIGNAL) == 4);
	check(hear_all(proxy->loop, server, last) == len);
	check(proxy->conns->server.event.fd >= 0);
	close(server);
	turns(proxy->loop);
	check(proxy->conns->server.event.fd < 0);
}

/* Nor may it fail to answer when the job ends. */
static void no_proxy(struct pmix_proxy *proxy)
{
	int rank = connect_to(proxy->port), server;
	char first[256];
	size_t len = make_handshake(first, &proxy->expected, 0, "4.2.2", "v41");

	check(write(rank, first, len) == (ssize_t)len);
	turns(proxy->loop);
	server = accept(server_listener, NULL, NULL);
	pmix_proxy_close(proxy);
	check(send(server, "good", 4, MSG_NOSIGNAL) == 4);
	close(server);
	close(rank);
}

/* Has it been reported, after a rank has said this? */
static void one_version(struct pmix_proxy *proxy, const char *version, const char *data,
			bool mixed, bool unknown)
{
	int rank = connect_to(proxy->port);
	char first[256];
	size_t len = make_handshake(first, &proxy->expected, 1, version, data);

	check(write(rank, first, len) == (ssize_t)len);
	turns(proxy->loop);
	check_case(proxy->versions.mixed == mixed && proxy->versions.unknown == unknown, version);
	close(rank);
	turns(proxy->loop);
}

/* Ranks with other versions of libpmix, after one with 4.2.2 */
static void versions(struct pmix_proxy *proxy)
{
	one_version(proxy, "4.2.9", "v41", false, false);
	one_version(proxy, "9.1.0", "v9", false, true);
	one_version(proxy, "4.20.1", "v41", true, true);
	proxy->versions.mixed = false;
	one_version(proxy, "5.0.7", "v41", true, true);
}

void test_pmix_proxy(void)
{
	const struct handshake expected = {
		.nspace = "pvasrun-1-00ff", .tasks = 2, .uid = geteuid(), .gid = getegid(),
	};
	struct pmix_proxy proxy;
	struct loop loop;

	check(!loop_open(&loop));
	check(!pmix_proxy_open(&proxy, &loop, &expected, start_server, NULL));
	check(!pmix_proxy_serve(&proxy));
	one_rank(&proxy, false);
	one_rank(&proxy, true);
	no_rank(&proxy);
	versions(&proxy);
	no_proxy(&proxy);
	loop_close(&loop);
}
