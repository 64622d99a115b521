// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the process of a task, by its pidfd, and the events that the
 * supervisor waits for.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rawsys.h"
#include "worker.h"

int user_try_wake(struct user_space *u)
{
	const uint64_t one = 1;
	ssize_t n;

	do {
		n = write(u->wake, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

void user_wake(struct user_space *u)
{
	if (user_try_wake(u))
		user_workers_wake(u);
}

int user_watch(struct user_space *u, int fd, uint32_t id)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = id };

	return epoll_ctl(u->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* Descriptors above PIDFDS_NOTED are closed in new tasks one by one, as any other. */
void user_pidfd_note(struct user_space *u, int fd, int there)
{
	const uint64_t bit = 1ULL << (fd % 64);

	if (fd >= PIDFDS_NOTED)
		return;
	if (there)
		__atomic_or_fetch(&u->pidfds[fd / 64], bit, __ATOMIC_RELAXED);
	else
		__atomic_and_fetch(&u->pidfds[fd / 64], ~bit, __ATOMIC_RELAXED);
}

int user_pidfd_dead(int pidfd)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	/* Not POLLNVAL: the application may have closed it. */
	return poll(&pfd, 1, 0) > 0 && (pfd.revents & POLLIN);
}

int user_child_dead(pid_t pid)
{
	siginfo_t info = { 0 };
	long err = pvas_raw6(__NR_waitid, P_PID, pid, (long)&info, WEXITED | WNOHANG | WNOWAIT,
			     0, 0);

	return err == -ECHILD || (!err && info.si_pid);
}

void user_release_process(struct user_space *u, struct user_part *p)
{
	if (p->pidfd >= 0) {
		user_pidfd_note(u, p->pidfd, 0);
		close(p->pidfd);
	}
	p->pidfd = -1;
	p->pid = 0;
}
