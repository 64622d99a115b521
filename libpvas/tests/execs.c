// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: tasks that exec stay tasks, except those that have begun something that only
 * the kernel's execve() ends. See exec_task.c.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "helpers.h"
#include "pvas.h"
#include "kselftest_harness.h"

#define SKIPPED		77

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

FIXTURE(execs)
{
	struct pvas_space *s;
};

FIXTURE_VARIANT(execs)
{
	const char *after;
};

#define AFTER(what)	FIXTURE_VARIANT_ADD(execs, what) { .after = #what, }

AFTER(nothing);
AFTER(leave);
AFTER(ordinary_children);
AFTER(thread_of_child);
AFTER(child_of_child);
AFTER(child_by_vfork);
AFTER(event_with_signal);
AFTER(event_that_begins);
AFTER(event_that_counts);
AFTER(key_of_thread);
AFTER(key_of_process);
AFTER(page_zero);
AFTER(failed_programs);
AFTER(children_beside);

FIXTURE_SETUP(execs)
{
	unsetenv("PVAS_EXEC");
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(execs)
{
	pvas_space_destroy(self->s);
}

TEST_F(execs, after)
{
	char *argv[] = { (char *)ours("exec_task"), (char *)variant->after, NULL };
	int status;
	pid_t pid;

	ASSERT_GT(pvas_task_spawn(self->s, PVAS_ANY, argv[0], argv, environ, NULL, &pid), 0);
	status = end_of(pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		SKIP(return, "not permitted here");
	EXPECT_EQ(status, 0);
}

/* ---- what fork children get of tasks ---- */

static int start(struct pvas_space *s, unsigned int index, const char *what, pid_t *pid)
{
	char *argv[] = { (char *)ours("exec_task"), (char *)what, NULL };

	return pvas_task_spawn(s, index, argv[0], argv, environ, NULL, pid);
}

FIXTURE(peers)
{
	struct pvas_space *s;
	unsigned int index;
	pid_t pid;
};

FIXTURE_SETUP(peers)
{
	int index;

	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
	index = start(self->s, PVAS_ANY, "maps", &self->pid);
	ASSERT_GT(index, 0);
	self->index = (unsigned int)index;
}

FIXTURE_TEARDOWN(peers)
{
	EXPECT_EQ(end_of(self->pid), 0);
	pvas_space_destroy(self->s);
}

TEST_F(peers, of_a_task)
{
	pid_t pid;

	ASSERT_GT(start(self->s, self->index + 1, "children_beside_maps", &pid), 0);
	EXPECT_EQ(end_of(pid), 0);
}

static int has_mapping(const struct pvas_task_info *t)
{
	unsigned long from = (unsigned long)t->base, to = from + t->length, start, end;
	static char maps[1 << 17];
	int fd = open("/proc/self/maps", O_RDONLY), has = 0;
	ssize_t n, len = 0;
	char *line, *rest;

	while ((n = read(fd, maps + len, sizeof(maps) - 1 - len)) > 0)
		len += n;
	for (line = strtok_r(maps, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		has |= sscanf(line, "%lx-%lx", &start, &end) == 2 && start < to && end > from;
	return has;
}

TEST_F(peers, of_the_launcher)
{
	struct pvas_task_info task;
	int i, bad = 0;
	pid_t pid;

	ASSERT_EQ(pvas_task_list(self->s, &task, 1), 1);
	for (i = 0; i < 500 && !bad; i++) {
		pid = fork();
		if (!pid)
			_exit(has_mapping(&task));
		bad = end_of(pid);
	}
	EXPECT_EQ(bad, 0);
}

/* Something of its own, at an address of its choice, where a partition is without a task */
TEST_F(peers, of_the_launchers_own)
{
	struct pvas_task_info task;
	char *at, *p;
	pid_t pid;

	ASSERT_EQ(pvas_task_list(self->s, &task, 1), 1);
	at = (char *)task.base + 3 * task.length;
	p = mmap(at, 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	ASSERT_EQ(p, at);
	*p = 'x';
	pid = fork();
	if (!pid)
		_exit(*p != 'x');
	EXPECT_EQ(end_of(pid), 0);
	munmap(p, 4096);
}

TEST_HARNESS_MAIN
