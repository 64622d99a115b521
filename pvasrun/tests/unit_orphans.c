// SPDX-License-Identifier: GPL-2.0-only
/* A search for what tasks have left running that takes long leaves time for other things. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../clock.h"
#include "../orphans.h"
#include "../signals.h"
#include "unit.h"

#define LOOK_MS		20	/* how long each takes at least, as with many processes */
#define LEFT_S		"1"	/* how long the orphan runs */

static unsigned int looks;
static bool counted;

/* Instead of libc's */
DIR *opendir(const char *path)
{
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (counted && !strcmp(path, "/proc")) {
		looks++;
		usleep(LOOK_MS * 1000);
	}
	return fd < 0 ? NULL : fdopendir(fd);
}

/* A child from before the job, and one whose ends, or stops, never end */
static pid_t start_wakers(void)
{
	const pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent) {
		kill(getppid(), SIGCHLD);
		usleep(1000);
	}
	_exit(0);
}

/* A process that a task has left running has its environment. */
static pid_t start_orphan(void)
{
	char launcher[32], *env[] = { launcher, NULL };
	pid_t pid;

	snprintf(launcher, sizeof(launcher), "PVAS_LAUNCHER=%d", getpid());
	pid = fork();
	if (!pid)
		execle("/bin/sleep", "sleep", LEFT_S, NULL, env);
	return pid;
}

static void wait_for_orphan(void)
{
	struct options opt = { .tasks = 1, .orphans = ORPHANS_WAIT };
	const pid_t waker = start_wakers();
	struct subreaper orphans;
	struct signals signals;
	struct loop loop;
	int64_t begin;
	struct job job;

	check(!loop_open(&loop) && !job_init(&job, &opt));
	check(!signals_open(&signals, &loop, &job));
	orphans_open(&orphans, &loop, &job, false);
	check(orphans.mixed && !orphans.blind);
	check(start_orphan() > 0);
	begin = now_ms();
	counted = true;
	check(!orphans_end(&orphans));
	counted = false;
	check(looks > 1 && 2 * LOOK_MS * (int64_t)looks <= now_ms() - begin);
	kill(waker, SIGKILL);
	signals_close(&signals);
	job_free(&job);
	loop_close(&loop);
}

void test_orphans(void)
{
	int wait_status;
	const pid_t pid = fork();

	if (!pid) {
		wait_for_orphan();
		_exit(check_failures() > 0);
	}
	check(waitpid(pid, &wait_status, 0) == pid && !wait_status);
}
