// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the process of a task, by its pidfd, and the events that the
 * supervisor waits for.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rawsys.h"
#include "worker.h"

/* ---- whose file has that number? ---- */

#define MARK	32	/* a signal of libc's own: nobody else asks for it */

static int cannot_mark;

/*
 * The application may close descriptors of the space and open files that get their numbers. So
 * ours have a signal and an owner, which without O_ASYNC have no other effect.
 */
int user_file_mark(int fd)
{
	struct f_owner_ex owner = { F_OWNER_PID, (pid_t)pvas_raw0(__NR_getpid) };

	if (fd < 0)
		return 0;
	if (pvas_raw3(__NR_fcntl, fd, F_SETSIG, MARK) == -EPERM ||
	    pvas_raw3(__NR_fcntl, fd, F_SETOWN_EX, &owner) == -EPERM)
		cannot_mark = 1;	/* in a sandbox: then all count as ours */
	return !cannot_mark;
}

int user_file_marks_tell(void)
{
	return !cannot_mark;
}

/* The kernel forgets an owner that has ended. */
int user_file_is_of(int fd, pid_t pid)
{
	struct f_owner_ex owner = { 0 };

	return fd >= 0 && (cannot_mark || (pvas_raw3(__NR_fcntl, fd, F_GETSIG, 0) == MARK &&
					   !pvas_raw3(__NR_fcntl, fd, F_GETOWN_EX, &owner) &&
					   (owner.pid == pid || !owner.pid)));
}

int user_file_is_ours(int fd)
{
	return user_file_is_of(fd, (pid_t)pvas_raw0(__NR_getpid));
}

int user_file_is_regular(int fd)
{
	struct statx st;

	return !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) &&
	       S_ISREG(st.stx_mode);
}

/* ---- the supervisor's events ---- */

int user_try_wake(struct user_space *u)
{
	const uint64_t one = 1;
	long n;

	if (!user_file_is_ours(u->wake))
		return -EBADF;
	/* Not by libc: a new process may use the caller's thread pointer already. */
	do {
		n = pvas_raw3(__NR_write, u->wake, &one, sizeof(one));
	} while (n == -EINTR);
	return n < 0 ? (int)n : 0;
}

void user_wake(struct user_space *u)
{
	if (user_try_wake(u))
		user_workers_wake(u);
}

int user_watch(struct user_space *u, int fd, uint32_t id)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = id };

	if (!user_file_is_ours(u->epoll) || !user_file_is_ours(fd))
		return -EBADF;
	return epoll_ctl(u->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* ---- a task's process ---- */

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
	return poll(&pfd, 1, 0) > 0 && (pfd.revents & POLLIN) && user_file_is_ours(pidfd);
}

long user_kill(const struct user_part *p)
{
	long err = -EBADF;

	if (user_file_is_ours(p->pidfd))
		err = pvas_raw4(__NR_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
	if (err && err != -ESRCH && p->pid > 0)
		err = pvas_raw2(__NR_kill, p->pid, SIGKILL);
	return err;
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
		if (user_file_is_ours(p->pidfd))
			close(p->pidfd);
	}
	p->pidfd = -1;
	p->pid = 0;
}
