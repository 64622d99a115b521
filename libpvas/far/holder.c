// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * If a job's pager is killed, the kernel unregisters the far memory as soon as the last
 * descriptor of the userfaultfd is closed, and tasks that wait for a page find zeros there. They
 * are killed, too, but a moment later: they could have stored a wrong result in a file. So a
 * process of its own, the holder, has the descriptor as well, and ends when the last thread
 * of the pager's process has ended: by then each task has its SIGKILL.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"

static pid_t holder;

/*
 * Not fork(): the process has threads, and libpvas would prepare a copy of the tasks. Without a
 * signal at its end: only those who ask for such children see it.
 */
static pid_t copy_process(void)
{
	return (pid_t)syscall(__NR_clone, 0, NULL, NULL, NULL, NULL);
}

/* All but two descriptors: others wait for the end of pipes. */
static void close_others(int a, int b)
{
	unsigned int low = (unsigned int)(a < b ? a : b), high = (unsigned int)(a < b ? b : a);

	if (low)
		syscall(__NR_close_range, 0, low - 1, 0);
	if (high - low > 1)
		syscall(__NR_close_range, low + 1, high - 1, 0);
	syscall(__NR_close_range, high + 1, ~0U, 0);
}

/* In the holder: system calls only, as other threads may have held locks. */
static void keep(int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	prctl(PR_SET_NAME, "pvas-far-holder");
	close_others(far.uffd.fd, pidfd);
	while (poll(&end, 1, -1) < 0 && errno == EINTR)
		;
	_exit(0);
}

int far_holder_start(void)
{
	sigset_t all, old;
	int pidfd = (int)syscall(__NR_pidfd_open, getpid(), 0), err = 0;

	if (pidfd < 0)
		return far_fail(-errno, "pidfd_open: %s", strerror(errno));
	/* Signals of the terminal are for the tasks. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	holder = copy_process();
	if (!holder)
		keep(pidfd);
	if (holder < 0)
		err = far_fail(-errno, "can't make a process for the pager: %s", strerror(errno));
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(pidfd);
	return err;
}

/* The tasks have ended. */
void far_holder_stop(void)
{
	if (holder <= 0)
		return;
	kill(holder, SIGKILL);
	while (waitpid(holder, NULL, __WALL) < 0 && errno == EINTR)
		;
	holder = 0;
}
