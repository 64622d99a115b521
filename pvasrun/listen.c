// SPDX-License-Identifier: GPL-2.0
/* Where ranks of MPI programs call. */
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "caller.h"

/* All ranks may call before the first is answered. */
#define BACKLOG 4096

static struct sockaddr_in address(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static int failed(int fd)
{
	int err = -errno;

	close(fd);
	return err;
}

int listen_here(int *port)
{
	struct sockaddr_in at = address(0);
	socklen_t len = sizeof(at);
	int fd;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return failed(fd);
	*port = ntohs(at.sin_port);
	return fd;
}

/* Questions and answers are short, and somebody waits for each. */
static void no_delay(int fd)
{
	int yes = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

/* Every user of this machine can call. */
static int accept_ours(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	socklen_t room = len ? *len : 0;
	int caller;

	while ((caller = accept4(fd, from, len, flags)) >= 0) {
		if (caller_is_ours(caller))
			return caller;
		close(caller);
		if (len)
			*len = room;
	}
	return -1;
}

int accept_here(int fd)
{
	int caller = accept_ours(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (caller >= 0)
		no_delay(caller);
	return caller;
}

/*
 * In the place of libc's, for libpmix: the program's symbols come before those of
 * its libraries. It would listen to every user, and let its ranks wait meanwhile.
 */
__attribute__((used))
int accept_for_all(int fd, struct sockaddr *from, socklen_t *len) __asm__("accept");

int accept_for_all(int fd, struct sockaddr *from, socklen_t *len)
{
	return accept_ours(fd, from, len, SOCK_CLOEXEC);
}

int call_here(int port)
{
	struct sockaddr_in at = address(port);
	int fd;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return failed(fd);
	no_delay(fd);
	return fd;
}
