// SPDX-License-Identifier: GPL-2.0-only
/*
 * stranger PORT SECONDS HOW: another user at a port of 127.0.0.1, as fast as it can:
 *
 *	churn	calls, says 2000 bytes, and hangs up in the same moment
 *	reset	the same, but without a farewell
 *	hold	calls, says nothing, and stays as long as it may
 *	half	calls, says a part of a message, and stays
 *
 * Prints how often it called, and how many bytes it was answered.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HELD 200

static long calls, answered;

static void hear(int fd)
{
	char text[4096];
	ssize_t n;

	while ((n = recv(fd, text, sizeof(text), MSG_DONTWAIT)) > 0)
		answered += n;
}

static void bye(int fd, int hard)
{
	const struct linger now = { .l_onoff = 1 };

	hear(fd);
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

int main(int argc, char **argv)
{
	int held[HELD], at = 0, port, fd;
	time_t until;

	if (argc != 4)
		return 2;
	port = atoi(argv[1]);
	until = time(NULL) + atoi(argv[2]);
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
				bye(held[at], 0);
			held[at] = fd;
			at = (at + 1) % HELD;
		} else {
			bye(fd, !strcmp(argv[3], "reset"));
		}
	}
	printf("%ld calls, %ld bytes answered\n", calls, answered);
	return 0;
}
