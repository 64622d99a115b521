// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: tasks that exec stay tasks, except those that have begun something that only
 * the kernel's execve() ends. See exec_task.c.
 */
#include <stdlib.h>

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

TEST_HARNESS_MAIN
