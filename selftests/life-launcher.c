// SPDX-License-Identifier: GPL-2.0-only
/* Launchers: killed, or tasks themselves; and the module, which stays as long as a space. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

/* The tasks' pids, and their "r"s, which could be taken for a byte of one: a pipe for each */
struct reports {
	int pids[2];
	int ready[2];
};

static void launcher(unsigned int flags, int n, const struct reports *to)
{
	struct pvas_space *space;
	pid_t pid;
	int i;

	if (pt_create(&space, 0, flags))
		_exit(1);
	for (i = 0; i < n; i++) {
		if (pt_start_task_fds(space, PVAS_ANY, "ready_and_pause", to->ready[1], 0,
				      &pid) < 0)
			_exit(2);
		if (write(to->pids[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(3);
	}
	pause();
}

/* Starts a launcher, and waits until its @n tasks run. Their pids go to @task. */
static pid_t start_launcher(struct __test_metadata *_metadata, unsigned int flags, int n,
			    pid_t *task)
{
	struct reports from;
	pid_t pid;
	char c;
	int i;

	ASSERT_EQ(0, pipe(from.pids));
	ASSERT_EQ(0, pipe(from.ready));
	pid = fork();
	if (!pid)
		launcher(flags, n, &from);
	for (i = 0; i < n; i++) {
		ASSERT_EQ(sizeof(*task), read(from.pids[0], &task[i], sizeof(*task)));
		ASSERT_EQ(1, read(from.ready[0], &c, 1));
	}
	return pid;
}

/* the launcher killed: its tasks go, the space goes */
PVAS_TEST(launcher_killed)
{
	pid_t pid, task[8];
	int i, tries;

	pid = start_launcher(_metadata, 0, 8, task);
	EXPECT_EQ(pt_backend() == PVAS_BACKEND_KERNEL, pt_spaces());
	pt_kill(pid);
	for (i = 0; i < 8; i++) {
		for (tries = 0; tries < 500 && !kill(task[i], 0); tries++)
			usleep(10000);
		EXPECT_EQ(-1, kill(task[i], 0));
	}
	EXPECT_TRUE(pt_spaces_gone());
}

/* made with KEEP: the tasks outlive their launcher */
MODULE_TEST(launcher_killed_tasks_kept, "tasks end with the launcher")
{
	pid_t pid, task;

	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	pid = start_launcher(_metadata, PVAS_KEEP_ON_CLOSE, 1, &task);
	pt_kill(pid);
	usleep(100000);
	EXPECT_EQ(0, kill(task, 0));
	EXPECT_EQ(1, pt_spaces());
	kill(task, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, pt_wait(task));
	EXPECT_TRUE(pt_spaces_gone());
}

/* a task is a launcher too: a space of its own, with tasks */
TASK(nest)
{
	struct pvas_space *space;
	pid_t pid[4];
	int i;

	CHECK_EQ(0, pt_create(&space, 0, 0));
	if (pt_failed) {
		fprintf(stderr, "# %s\n", pvas_error_get());
		return;
	}
	for (i = 0; i < 4; i++)
		CHECK((pid[i] = pt_start_task(space, PVAS_ANY, "dirty")) > 0);
	for (i = 0; i < 4; i++)
		CHECK_EQ(0, pt_wait(pid[i]));
	CHECK_EQ(0, pvas_task_list(space, NULL, 0));
	CHECK_EQ(0, pvas_space_destroy(space));
}

MODULE_TEST(nested_spaces, "a task can't make a space")
{
	EXPECT_EQ(0, pt_run_task("nest"));
	EXPECT_TRUE(pt_spaces_gone());
}

/* the module can't be removed while there is a space */
MODULE_TEST(rmmod, "there is no module")
{
	struct pvas_space *space;

	PT_NEED_ROOT();
	space = PT_SPACE();
	EXPECT_EQ(-1, syscall(SYS_delete_module, "pvas", O_NONBLOCK));
	EXPECT_EQ(EWOULDBLOCK, errno);
	EXPECT_EQ(0, pt_run_task("succeed"));
	pvas_space_destroy(space);
}

PT_MAIN()
