// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: seccomp filters that tasks, their children and what they have started
 * install. See sandbox_task.c.
 */
#include "helpers.h"
#include "pvas.h"
#include "kselftest_harness.h"

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

FIXTURE(sandbox)
{
	struct pvas_space *s;
};

FIXTURE_VARIANT(sandbox)
{
	const char *who;
};

FIXTURE_VARIANT_ADD(sandbox, task) {
	.who = "task",
};

FIXTURE_VARIANT_ADD(sandbox, child) {
	.who = "child",
};

FIXTURE_VARIANT_ADD(sandbox, vfork_child) {
	.who = "vfork",
};

FIXTURE_VARIANT_ADD(sandbox, program) {
	.who = "program",
};

FIXTURE_VARIANT_ADD(sandbox, i386_calls) {
	.who = "i386",
};

FIXTURE_SETUP(sandbox)
{
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(sandbox)
{
	pvas_space_destroy(self->s);
}

TEST_F(sandbox, filters)
{
	char *argv[] = { (char *)ours("sandbox_task"), (char *)variant->who, NULL };
	pid_t pid;

	ASSERT_GT(pvas_task_spawn(self->s, PVAS_ANY, argv[0], argv, environ, NULL, &pid), 0);
	EXPECT_EQ(end_of(pid), 0);
}

TEST_HARNESS_MAIN
