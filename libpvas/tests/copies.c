// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: a fork child has no memory of its parent's peers, also if they map or fork at
 * the same moment. See copies_task.c.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"
#include "kselftest_harness.h"

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

FIXTURE(copies)
{
	struct pvas_space *s;
	pid_t until;
	unsigned int first;	/* partition, of one task; the next is the other's */
	uint64_t size;
};

/* Until it has ended the tasks go on. */
static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

FIXTURE_SETUP(copies)
{
	self->until = start_sleeper();
	ASSERT_GT(self->until, 0);
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
	ASSERT_EQ(pvas_space_get_bounds(self->s, &self->first, NULL, &self->size), 0);
}

FIXTURE_TEARDOWN(copies)
{
	if (self->until > 0)
		kill(self->until, SIGKILL);
	pvas_space_destroy(self->s);
}

static pid_t start(struct pvas_space *s, unsigned int index, const char *what, long a,
		   const char *b)
{
	char number[24], *argv[] = { (char *)ours("copies_task"), (char *)what, number, (char *)b,
				     NULL };
	pid_t pid;

	snprintf(number, sizeof(number), "%ld", a);
	return pvas_task_spawn(s, index, argv[0], argv, environ, NULL, &pid) < 0 ? -1 : pid;
}

static void end(pid_t *until)
{
	kill(*until, SIGKILL);
	end_of(*until);
	*until = 0;
}

TEST_F(copies, peer_maps)
{
	pid_t maps = start(self->s, self->first, "maps", self->until, NULL);
	pid_t forks = start(self->s, self->first + 1, "forks", self->first, "200");

	ASSERT_GT(maps, 0);
	ASSERT_GT(forks, 0);
	EXPECT_EQ(end_of(forks), 0);
	end(&self->until);
	EXPECT_EQ(end_of(maps), 0);
}

/* It becomes another program in the same partition. */
TEST_F(copies, peer_execs)
{
	pid_t execs = start(self->s, self->first, "execs", self->until, NULL);
	pid_t forks = start(self->s, self->first + 1, "forks", self->first, "300");

	ASSERT_GT(execs, 0);
	ASSERT_GT(forks, 0);
	EXPECT_EQ(end_of(forks), 0);
	end(&self->until);
	EXPECT_EQ(end_of(execs), 0);
}

TEST_F(copies, peers_start)
{
	pid_t forks = start(self->s, self->first + 1, "forks", self->first, "300"), pid;
	int status, bad = 0;

	end(&self->until);
	ASSERT_GT(forks, 0);
	while (!waitpid(forks, &status, WNOHANG)) {
		pid = start(self->s, self->first, "execs", 1L << 30, NULL);
		ASSERT_GT(pid, 0);
		bad += !!end_of(pid);
	}
	EXPECT_EQ(status, 0);
	EXPECT_EQ(bad, 0);
}

TEST_F(copies, peer_forks)
{
	pid_t a = start(self->s, self->first, "forks", self->first + 1, "200");
	pid_t b = start(self->s, self->first + 1, "forks", self->first, "200");

	ASSERT_GT(a, 0);
	ASSERT_GT(b, 0);
	EXPECT_EQ(end_of(a), 0);
	EXPECT_EQ(end_of(b), 0);
}

/* One that has had many threads in fork() at once is no exception later. */
TEST_F(copies, many_threads_fork)
{
	pid_t a = start(self->s, self->first, "threads", self->first + 1, "100");
	pid_t b = start(self->s, self->first + 1, "threads", self->first, "100");

	ASSERT_GT(a, 0);
	ASSERT_GT(b, 0);
	EXPECT_EQ(end_of(a), 0);
	EXPECT_EQ(end_of(b), 0);
}

/* How many mappings are there in that partition? */
static int count_mappings(unsigned int index, uint64_t size)
{
	unsigned long lo, hi;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += sscanf(line, "%lx-%lx", &lo, &hi) == 2 && lo / size == index;
	return f ? n : 1;
}

TEST_F(copies, launcher_forks)
{
	pid_t maps = start(self->s, self->first, "maps", self->until, NULL), pid;
	int i, bad = 0;

	ASSERT_GT(maps, 0);
	for (i = 0; i < 100; i++) {
		pid = fork();
		if (!pid)
			_exit(count_mappings(self->first, self->size) ? 2 : 0);
		ASSERT_GT(pid, 0);
		bad += !!end_of(pid);
	}
	EXPECT_EQ(bad, 0);
	end(&self->until);
	EXPECT_EQ(end_of(maps), 0);
}

TEST_HARNESS_MAIN
