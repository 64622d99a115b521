// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: a task that is killed while a worker fills its memory dies at once, and the
 * worker does not go on. See fill_task.c.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"
#include "kselftest_harness.h"

#define NOBODY	65534
#define GIB	"100"		/* 200 MiB of page tables */
#define BEGUN	1024		/* KiB of page tables: of half a GiB */
#define LATER	32768		/* of 16 GiB: seconds */

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER, .partition_size = 1UL << 38,
};

FIXTURE(fill)
{
	struct pvas_space *s;
};

/* With huge pages it would be done too soon. */
FIXTURE_SETUP(fill)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &none);
	ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(fill)
{
	pvas_space_destroy(self->s);
}

/* Of the address space, which is this one, in KiB. This takes no lock of it. */
static long page_tables(void)
{
	char line[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "VmPTE: %ld", &kib) != 1)
		;
	if (f)
		fclose(f);
	return kib;
}

/* Until there are @kib, or the task has ended. Returns whether it has. */
static int wait_until(long kib, pid_t pid, int *status)
{
	pid_t ended;

	do {
		usleep(1000);
		ended = waitpid(pid, status, WNOHANG);
	} while (!ended && page_tables() < kib);
	return ended == pid;
}

static void kill_while_filling(struct __test_metadata *_metadata, struct pvas_space *s,
			       const char *what)
{
	char *argv[] = { (char *)ours("fill_task"), (char *)what, (char *)GIB, NULL };
	const long before = page_tables();
	int status = 0;
	pid_t pid;

	ASSERT_GE(before, 0);
	ASSERT_GT(pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, NULL, &pid), 0);
	if (wait_until(before + BEGUN, pid, &status)) {
		ASSERT_EQ(WEXITSTATUS(status), 77);
		SKIP(return, "it may not lock that much");
	}
	kill(pid, SIGKILL);
	EXPECT_EQ(wait_until(page_tables() + LATER, pid, &status), 1);
	EXPECT_EQ(status, SIGKILL);
	EXPECT_EQ(pvas_task_list(s, NULL, 0), 0);
	EXPECT_LT(page_tables(), before + LATER);
}

TEST_F(fill, populate)
{
	kill_while_filling(_metadata, self->s, "populate");
}

TEST_F(fill, locked)
{
	kill_while_filling(_metadata, self->s, "locked");
}

/* Of locked memory, also none: the call fails, and has filled nothing. */
TEST(limit)
{
	char *argv[] = { (char *)ours("fill_task"), (char *)"locked", (char *)GIB, NULL };
	const struct rlimit limits[] = { { 1 << 20, 1 << 20 }, { 0, 0 } };
	struct pvas_space *s;
	pid_t pid;
	int i;

	/* CAP_IPC_LOCK overrides the limit. */
	if (!geteuid())
		ASSERT_EQ(setresuid(NOBODY, NOBODY, NOBODY) ?: prctl(PR_SET_DUMPABLE, 1), 0);
	if (access(argv[0], X_OK))
		SKIP(return, "not without root here");
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &limits[i]), 0);
		ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
		ASSERT_GT(pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, NULL, &pid), 0);
		EXPECT_EQ(WEXITSTATUS(end_of(pid)), 77 + i);
		EXPECT_LT(page_tables(), BEGUN);
		pvas_space_destroy(s);
	}
}

TEST_HARNESS_MAIN
