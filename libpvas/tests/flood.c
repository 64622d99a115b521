// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: descendants of a task that flood the launcher with requests don't
 * slow the tasks' own. See flood_task.c. And a task that starts makes few.
 */
#include <stdio.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"
#include "user/worker.h"
#include "kselftest_harness.h"

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

FIXTURE(flood)
{
	struct pvas_space *s;
};

FIXTURE_SETUP(flood)
{
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(flood)
{
	pvas_space_destroy(self->s);
}

static int run(struct pvas_space *s, const char *call, const char *children,
	       const char *control, const char *factor)
{
	char *argv[] = { NULL, (char *)call, (char *)children, (char *)control,
			 (char *)factor, NULL };
	pid_t pid;
	int ret;

	argv[0] = (char *)ours("flood_task");
	ret = pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, NULL, &pid);
	return ret < 0 ? ret : end_of(pid);
}

/* Other load on the machine makes a ratio of times larger, but hardly ever three times. */
static int run_quietly(struct pvas_space *s, const char *call, const char *children,
		       const char *control, const char *factor)
{
	int ret = -1, tries;

	for (tries = 0; tries < 3 && ret; tries++)
		ret = run(s, call, children, control, factor);
	return ret;
}

static const char *const calls[] = { "readlink", "brk", "sigaction", "setfsuid" };

#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

/* One child is to cost little more than one that is as busy without requests. */
TEST_F(flood, by_one)
{
	for (size_t i = 0; i < NR_CALLS; i++) {
		EXPECT_EQ(run_quietly(self->s, calls[i], "1", "busy", "2"), 0)
			TH_LOG("%s", calls[i]);
	}
}

/* Many are to share what one may cost. */
TEST_F(flood, by_many)
{
	for (size_t i = 0; i < NR_CALLS; i++) {
		EXPECT_EQ(run_quietly(self->s, calls[i], "24", "idle", "4"), 0)
			TH_LOG("%s", calls[i]);
	}
}

/* A program with mappings without end. Its calls are the kernel's affair. */
TEST_F(flood, by_mappings)
{
	char page[24], *argv[] = { NULL, page, NULL };
	const struct user_space *u = self->s->priv;
	pid_t pid;

	argv[0] = (char *)ours("far_task");
	snprintf(page, sizeof(page), "%#lx", (unsigned long)u->parts[1].page);
	ASSERT_EQ(pvas_task_spawn(self->s, 1, argv[0], argv, environ, NULL, &pid), 1);
	EXPECT_EQ(end_of(pid), 0);
}

/*
 * The loader, which maps the program, makes none, and the dynamic linker nine for a program that
 * is linked with libc alone.
 */
TEST_F(flood, none_by_loader)
{
	struct user_space *u = self->s->priv;
	char *argv[] = { (char *)"true", NULL }, *envp[] = { NULL };
	pid_t pid;

	ASSERT_GT(pvas_task_spawn(self->s, PVAS_ANY, "/bin/true", argv, envp, NULL, &pid), 0);
	EXPECT_EQ(end_of(pid), 0);
	EXPECT_GT(u->nr_served, 0);
	EXPECT_LE(u->nr_served, 12) TH_LOG("%u", u->nr_served);
}

TEST_HARNESS_MAIN
