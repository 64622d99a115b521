// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * If a job's pager is killed, the kernel unregisters the far memory as soon as the last
 * descriptor of the userfaultfd is closed, and tasks that wait for a page find zeros there. They
 * are killed, too, but a moment later: they could have stored a wrong result in a file. So a
 * process of its own, the holder, has the descriptor as well, and ends when the last thread
 * of the pager's process has ended: by then each task has its SIGKILL.
 *
 * With the module the pager is in a task, which may execute another program instead of ending: then
 * the pipe is closed, and the process goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"

enum { END_MS = 5000 };	/* from the close of its descriptors to the end of a process */

static pid_t holder;
static int alive = -1;	/* the pipe's other end */
bool far_pager_in_task;

/*
 * Not fork(): the process has threads, and libpvas would prepare a copy of the tasks. Without a
 * signal at its end: only those who ask for such children see it.
 */
static pid_t copy_process(void)
{
	return (pid_t)syscall(__NR_clone, 0, NULL, NULL, NULL, NULL);
}

/*
 * Make these 0, 1 and 2, and close all others: others wait for the end of pipes. Where a limit
 * forbids that, all stay.
 */
static void keep_only(int fd[static 3])
{
	int copy[3], i;

	for (i = 0; i < 3; i++) {
		copy[i] = fcntl(fd[i], F_DUPFD, 3);
		if (copy[i] < 0)
			return;
	}
	for (i = 0; i < 3; i++)
		fd[i] = dup2(copy[i], i);
	syscall(__NR_close_range, 3, ~0U, 0);
}

/* In the holder: system calls only, as other threads may have held locks. */
static void __attribute__((noreturn)) keep(int pidfd, int pipe)
{
	int fd[] = { pidfd, pipe, far.uffd.fd };
	struct pollfd end[2];

	prctl(PR_SET_NAME, "pvas-far-holder");
	/* A SIGKILL for the task's group is not for this process: peers may read on. */
	setpgid(0, 0);
	keep_only(fd);
	end[0] = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	end[1] = (struct pollfd){ .fd = fd[1] };
	while (poll(end, far_pager_in_task ? 2 : 1, -1) < 0 && errno == EINTR)
		;
	/* If only the pipe was closed, perhaps the process is about to end. */
	while (poll(end, 1, END_MS) < 0 && errno == EINTR)
		;
	_exit(0);
}

int far_holder_start(void)
{
	sigset_t all, old;
	int pidfd = (int)syscall(__NR_pidfd_open, getpid(), 0), err = 0, ends[2];

	if (pidfd < 0)
		return far_fail(-errno, "pidfd_open: %s", strerror(errno));
	if (pipe2(ends, O_CLOEXEC)) {
		close(pidfd);
		return far_fail(-errno, "can't make a pipe: %s", strerror(errno));
	}
	/* Signals of the terminal are for the tasks. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	holder = copy_process();
	if (!holder)
		keep(pidfd, ends[0]);
	if (holder < 0)
		err = far_fail(-errno, "can't make a process for the pager: %s", strerror(errno));
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(pidfd);
	close(ends[0]);
	alive = ends[1];
	return err;
}

/* The tasks have ended. */
void far_holder_stop(void)
{
	if (alive >= 0)
		close(alive);
	alive = -1;
	if (holder <= 0)
		return;
	kill(holder, SIGKILL);
	while (waitpid(holder, NULL, __WALL) < 0 && errno == EINTR)
		;
	holder = 0;
}
