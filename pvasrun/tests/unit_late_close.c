// SPDX-License-Identifier: GPL-2.0-only
/* Files that others send to a socket of pvasrun: neither receiving nor closing waits for them. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../clock.h"
#include "../late_close.h"
#include "unit.h"

#define LINGER_SECONDS	30
#define AT_ONCE_MS	10000

/* Two ends of a connection. The last close of the first one waits: the second one isn't read. */
static void connect_lingering(int ends[2])
{
	const struct linger linger = { 1, LINGER_SECONDS };
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(at);
	int door = socket(AF_INET, SOCK_STREAM, 0);
	static const char bytes[65536];

	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	check(!bind(door, (void *)&at, len) && !listen(door, 1));
	check(!getsockname(door, (void *)&at, &len));
	check(!connect(ends[0], (void *)&at, len));
	ends[1] = accept(door, NULL, NULL);
	check(!setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	while (send(ends[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	close(door);
}

static void send_file(int to, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(fd))];
		struct cmsghdr align;
	} control = { .align = {
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fd)),
	} };
	struct iovec iov = { "f", 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	check(sendmsg(to, &msg, 0) == 1);
}

/* @ids: with SO_PASSCRED */
static void test_files(bool ids)
{
	int64_t begin = now_ms();
	struct late_close late;
	int ends[2], slow[2];
	const int on = ids;
	char bytes[16];
	bool own = false;

	check(!late_close_begin(&late));
	check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	check(!setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	check(!late_close_add(&late, ends[0]));
	connect_lingering(slow);
	check(receive_bytes(ends[0], bytes, sizeof(bytes), &own) < 0 && errno == EAGAIN);
	check(write(ends[1], "abc", 3) == 3);
	send_file(ends[1], slow[0]);
	close(slow[0]);
	check(write(ends[1], "def", 3) == 3);
	/* Of the bytes before it some may be lost, as it is seen when they are. */
	while (receive_bytes(ends[0], bytes, 1, &own) == 1)
		check(*bytes >= 'a' && *bytes <= 'c' && own == ids);
	check(errno == EPROTO);
	check(receive_bytes(ends[0], bytes, sizeof(bytes), NULL) < 0 && errno == EPROTO);
	shutdown(ends[0], SHUT_RDWR);
	close(ends[0]);
	check(read(ends[1], bytes, 1) == 0);
	late_close_end(&late);
	check(now_ms() - begin < AT_ONCE_MS);
	close(ends[1]);
	close(slow[1]);
}

static void test_end(void)
{
	struct late_close late;
	char bytes[16];
	bool own = true;
	int ends[2];

	check(!late_close_begin(&late));
	check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	check(!late_close_add(&late, ends[0]) && late_close_add(&late, -1) == -EBADF);
	check(write(ends[1], "abc", 3) == 3);
	close(ends[1]);
	check(receive_bytes(ends[0], bytes, sizeof(bytes), NULL) == 3 && !memcmp(bytes, "abc", 3));
	check(!receive_bytes(ends[0], bytes, sizeof(bytes), &own) && !own);
	check(receive_bytes(-1, bytes, sizeof(bytes), NULL) < 0 && errno == EBADF);
	close(ends[0]);
	late_close_end(&late);
	late_close_end(&late);
}

void test_late_close(void)
{
	test_files(false);
	test_files(true);
	test_end();
}
