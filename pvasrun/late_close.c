// SPDX-License-Identifier: GPL-2.0-only
/* Sockets that others can put files into: see late_close.h. */
#include "late_close.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask.h"
#include "linux_names.h"
#include "pass.h"

#define END_MS	100	/* in which the process has ended, unless something holds it up */

union control {
	char space[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* ---- the process ---- */

/* The descriptors that come stay open. Calls of the kernel only, as for answers in ask.h. */
static void __attribute__((noreturn)) keep_all(int from)
{
	union control control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
	ssize_t n;

	prctl(PR_SET_NAME, "pvas-close");
	dup2(from, STDIN_FILENO);
	syscall(SYS_close_range, STDIN_FILENO + 1, ~0U, 0);
	do {
		msg.msg_controllen = sizeof(control);
		n = recvmsg(STDIN_FILENO, &msg, MSG_CMSG_CLOEXEC);
	} while (n > 0 || (n < 0 && errno == EINTR));
	_exit(0);
}

int late_close_begin(struct late_close *late)
{
	int ends[2], err;

	late->to = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	late->child = fork_without_signal();
	err = late->child < 0 ? -errno : 0;
	if (!late->child)
		keep_all(ends[1]);
	close(ends[1]);
	if (err)
		close(ends[0]);
	else
		late->to = ends[0];
	return err;
}

int late_close_add(const struct late_close *late, int fd)
{
	return pass_send(late->to, "", 1, &fd, 1);
}

void late_close_end(struct late_close *late)
{
	struct pollfd ended = { .events = POLLIN };

	if (late->to < 0)
		return;
	ended.fd = (int)syscall(SYS_pidfd_open, late->child, 0);
	close(late->to);
	late->to = -1;
	if (ended.fd < 0 || poll(&ended, 1, END_MS) != 1)
		kill(late->child, SIGKILL);
	if (ended.fd < 0 || poll(&ended, 1, END_MS) == 1)
		waitpid(late->child, NULL, __WALL | (ended.fd < 0 ? WNOHANG : 0));
	if (ended.fd >= 0)
		close(ended.fd);
}

/* ---- receiving ---- */

union sender {
	char space[CMSG_SPACE(sizeof(struct ucred))];
	struct cmsghdr align;
};

static bool is_own(struct msghdr *msg)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(msg);
	struct ucred sender = { .uid = (uid_t)-1 };

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_CREDENTIALS)
		memcpy(&sender, CMSG_DATA(head), sizeof(sender));
	return sender.uid == getuid() || sender.uid == geteuid();
}

static bool passes_ids(int fd)
{
	socklen_t len = sizeof(int);
	int on = 0;

	return !getsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, &len) && on;
}

/*
 * Looking ahead ends with the first message that has files. So as many bytes as were seen without
 * any can be taken, and what has come since stays. There is room for the sender's ids alone: files
 * make the control data too long. Even to close one's own copy of a file can wait for its server.
 */
ssize_t receive_bytes(int fd, void *buf, size_t room, bool *own)
{
	union sender control;
	struct iovec iov = { buf, room };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = passes_ids(fd) ? sizeof(control) : 0,
	};
	ssize_t n = recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return n;
	if (msg.msg_flags & MSG_CTRUNC) {
		errno = EPROTO;
		return -1;
	}
	if (own)
		*own = n > 0 && is_own(&msg);
	return n > 0 ? recv(fd, buf, (size_t)n, MSG_DONTWAIT) : n;
}
