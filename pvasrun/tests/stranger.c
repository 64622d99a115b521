// SPDX-License-Identifier: GPL-2.0-only
/*
 * stranger PORT SECONDS HOW [NAME]: attack a port of 127.0.0.1, as another user:
 *
 *	churn	connect, send 2000 bytes, and close at once
 *	reset	the same, and close with RST
 *	hold	connect, send nothing, and keep the connection
 *	half	connect, send a part of a message, and keep the connection
 *
 * or as the same user, without the job's name or with it:
 *
 *	many	1000 connections that send nothing
 *	one	connections that send one byte
 *	drip	a handshake, one byte per 2 ms
 *	name	a handshake with the name of another job
 *	wrong	handshakes with one wrong field each
 *
 * Prints the number of connections, and of bytes received.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HELD 200
#define CONNECTIONS 1000

static long calls, answered;

static void receive(int fd)
{
	char text[4096];
	ssize_t n;

	while ((n = recv(fd, text, sizeof(text), MSG_DONTWAIT)) > 0)
		answered += n;
}

static void disconnect(int fd, int hard)
{
	const struct linger now = { .l_onoff = 1 };

	receive(fd);
	if (hard)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

static int call(int port)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct timeval patience = { .tv_usec = 200000 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		close(fd);
		return -1;
	}
	calls += fd >= 0;
	return fd;
}

static void say(int fd, const char *how)
{
	static const char text[2000] = "cmd=initack pmiid=1\ncmd=abort exitcode=66\n";
	int cork = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_CORK, &cork, sizeof(cork));
	if (strcmp(how, "hold"))
		send(fd, text, strcmp(how, "half") ? sizeof(text) : 10, MSG_NOSIGNAL);
	if (!strcmp(how, "half")) {
		cork = 0;
		setsockopt(fd, IPPROTO_TCP, TCP_CORK, &cork, sizeof(cork));
	}
}

/* ---- of the same user ---- */

static size_t put(char *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	return len;
}

enum {
	ALL_RIGHT, HUGE_CREDENTIAL, WRONG_TYPE, WRONG_RANK, NO_VERSION, WRONG_DATA, WRONG_STORE,
	TOO_SHORT, TOO_LONG, HUGE_LENGTH, WRONGS
};

/* As libpmix 4.2 sends it, with one wrong field */
static size_t handshake(char *text, const char *name, int wrong)
{
	const uint32_t ids[] = { getuid(), getgid() };
	uint32_t cred = htonl(wrong == HUGE_CREDENTIAL ? 0x07ffffff : sizeof(ids));
	uint32_t rank = htonl(wrong == WRONG_RANK ? 1000 : 0);
	uint64_t len = 16;

	memset(text, 0xff, 8);
	len += put(text + len, "native", 7);
	len += put(text + len, &cred, sizeof(cred));
	len += put(text + len, ids, sizeof(ids));
	len += put(text + len, wrong == WRONG_TYPE ? "\4" : "", 1);
	len += put(text + len, name, strlen(name) + 1);
	len += put(text + len, &rank, sizeof(rank));
	len += put(text + len, wrong == NO_VERSION ? "" : "4.2.2", wrong == NO_VERSION ? 1 : 6);
	len += put(text + len, wrong == WRONG_DATA ? "v99" : "v41", 4);
	len += put(text + len, "\1", 1);
	len += put(text + len, wrong == WRONG_STORE ? "hasi" : "hash", 5);
	text[len++] = '\0';
	len -= 16;
	if (wrong == TOO_SHORT)
		len -= 10;
	if (wrong == TOO_LONG)
		len += 5000;
	if (wrong == HUGE_LENGTH)
		len = UINT64_MAX - 8;
	put(text + 8, &len, sizeof(len));
	return len < 1000 ? len + 16 : 1000;
}

static void hold_many(int port, const char *text, size_t len, time_t until)
{
	static int fds[CONNECTIONS];
	int i;

	for (i = 0; i < CONNECTIONS && time(NULL) < until; i++) {
		fds[i] = call(port);
		if (fds[i] >= 0)
			send(fds[i], text, len, MSG_NOSIGNAL);
	}
	while (time(NULL) < until) {
		usleep(10000);
		for (i = 0; i < CONNECTIONS; i++)
			if (fds[i] > 0)
				receive(fds[i]);
	}
}

static void drip(int port, const char *text, size_t len, time_t until)
{
	int fds[HELD], i;
	size_t at = 0;

	for (i = 0; i < HELD; i++)
		fds[i] = call(port);
	for (; time(NULL) < until; at++) {
		for (i = 0; i < HELD; i++) {
			if (fds[i] < 0)
				fds[i] = call(port);
			if (send(fds[i], text + at % len, 1, MSG_NOSIGNAL) < 0) {
				close(fds[i]);
				fds[i] = -1;
			} else {
				receive(fds[i]);
			}
		}
		usleep(2000);
	}
}

static void all_wrongs(int port, const char *name, time_t until)
{
	char text[1000];
	int wrong, fd;

	while (time(NULL) < until) {
		for (wrong = HUGE_CREDENTIAL; wrong < WRONGS; wrong++) {
			memset(text, 0, sizeof(text));
			fd = call(port);
			if (fd < 0)
				continue;
			send(fd, text, handshake(text, name, wrong), MSG_NOSIGNAL);
			usleep(1000);
			disconnect(fd, 0);
		}
	}
}

/* Returns 0 if it is not one of these. */
static int same_user(int port, time_t until, const char *how, const char *name)
{
	char text[1000] = "";
	size_t len = handshake(text, "pvasrun-1-00112233445566778899aabbccddeeff", ALL_RIGHT);

	if (!strcmp(how, "many"))
		hold_many(port, "", 0, until);
	else if (!strcmp(how, "one"))
		hold_many(port, "x", 1, until);
	else if (!strcmp(how, "drip"))
		drip(port, text, len, until);
	else if (!strcmp(how, "name"))
		hold_many(port, text, len, until);
	else if (!strcmp(how, "wrong"))
		all_wrongs(port, name, until);
	else
		return 0;
	printf("%ld calls, %ld bytes answered\n", calls, answered);
	return 1;
}

int main(int argc, char **argv)
{
	struct rlimit files = { CONNECTIONS + 100, CONNECTIONS + 100 };
	int held[HELD], at = 0, port, fd;
	time_t until;

	if (argc != 4 && argc != 5)
		return 2;
	setrlimit(RLIMIT_NOFILE, &files);
	signal(SIGPIPE, SIG_IGN);
	port = atoi(argv[1]);
	until = time(NULL) + atoi(argv[2]);
	if (same_user(port, until, argv[3], argc == 5 ? argv[4] : "none"))
		return 0;
	memset(held, -1, sizeof(held));
	while (time(NULL) < until) {
		fd = call(port);
		if (fd < 0) {
			usleep(1000);
			continue;
		}
		say(fd, argv[3]);
		if (!strcmp(argv[3], "hold") || !strcmp(argv[3], "half")) {
			if (held[at] >= 0)
				disconnect(held[at], 0);
			held[at] = fd;
			at = (at + 1) % HELD;
		} else {
			disconnect(fd, !strcmp(argv[3], "reset"));
		}
	}
	printf("%ld calls, %ld bytes answered\n", calls, answered);
	return 0;
}
