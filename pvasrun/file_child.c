// SPDX-License-Identifier: GPL-2.0-only
/* Files whose server may not answer: see file_child.h. */
#include "file_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask.h"
#include "linux_names.h"

#define KILLED_MS	100	/* until the child must have ended */
#define ROOM		(256 << 10)	/* for packets that are not read yet */

/* No server is asked about it. The number of a block device is that of its driver. */
static bool look(int fd, struct statx *stx)
{
	return !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, stx) &&
	       S_ISREG(stx->stx_mode) && !stx->stx_dev_major;
}

bool file_child_wanted(int fd)
{
	struct statx stx;

	return look(fd, &stx);
}

bool file_child_same(int a, int b)
{
	struct statx one, other;

	return look(a, &one) && look(b, &other) && one.stx_ino == other.stx_ino &&
	       one.stx_dev_minor == other.stx_dev_minor;
}

/* In the child. Only these two, as 0 and, if there is one, 1 */
static void __attribute__((noreturn)) run_with(void (*run)(int end, int fd), int end, int fd)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (fd >= 0)
		fd = fcntl(fd, F_DUPFD, STDERR_FILENO + 1);
	end = fcntl(end, F_DUPFD, STDERR_FILENO + 1);
	if (end < 0 || dup2(end, STDIN_FILENO) < 0 || (fd >= 0 && dup2(fd, STDOUT_FILENO) < 0))
		_exit(1);
	syscall(SYS_close_range, fd < 0 ? STDOUT_FILENO : STDERR_FILENO, ~0U, 0);
	run(STDIN_FILENO, fd < 0 ? -1 : STDOUT_FILENO);
	_exit(0);
}

int file_child_begin(struct file_child *child, int fd, void (*run)(int end, int fd))
{
	const int room = ROOM;
	int ends[2], err;

	*child = (struct file_child)FILE_CHILD_NONE;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	/* A packet must fit, whatever the system's default is. */
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	child->pid = fork_without_signal();
	err = child->pid < 0 ? -errno : 0;
	if (!child->pid)
		run_with(run, ends[1], fd);
	close(ends[1]);
	if (err)
		close(ends[0]);
	else
		child->end = ends[0];
	return err;
}

void file_child_close(struct file_child *child)
{
	struct pollfd ended = { .events = POLLIN };

	if (child->end < 0)
		return;
	kill(child->pid, SIGKILL);
	close(child->end);
	/* Before Linux 6.3 a FUSE server can hold it up after that, when its file is closed. */
	ended.fd = (int)syscall(SYS_pidfd_open, child->pid, 0);
	if (ended.fd >= 0)
		poll(&ended, 1, KILLED_MS);
	waitpid(child->pid, NULL, __WALL | WNOHANG);
	if (ended.fd >= 0)
		close(ended.fd);
	*child = (struct file_child)FILE_CHILD_NONE;
}
