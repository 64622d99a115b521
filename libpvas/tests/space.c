// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libpvas end to end, on either backend. The tests of the kernel backend are skipped
 * without /dev/pvas; to run them: selftests/vm/run -- build/libpvas/tests/space
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"
#include "kselftest_harness.h"

FIXTURE(space)
{
	struct pvas_space *s;
	struct pvas_create_attr attr;
};

FIXTURE_VARIANT(space)
{
	uint64_t size;
	int backend;
};

FIXTURE_VARIANT_ADD(space, normal) { .backend = PVAS_BACKEND_KERNEL };
FIXTURE_VARIANT_ADD(space, smallest) { .backend = PVAS_BACKEND_KERNEL, .size = 1ULL << 32 };
FIXTURE_VARIANT_ADD(space, largest) { .backend = PVAS_BACKEND_KERNEL, .size = 1ULL << 43 };
FIXTURE_VARIANT_ADD(space, user_normal) { .backend = PVAS_BACKEND_USER };
FIXTURE_VARIANT_ADD(space, user_smallest) { .backend = PVAS_BACKEND_USER, .size = 1ULL << 32 };
FIXTURE_VARIANT_ADD(space, user_largest) { .backend = PVAS_BACKEND_USER, .size = 1ULL << 43 };

FIXTURE_SETUP(space)
{
	if (variant->backend == PVAS_BACKEND_KERNEL && access("/dev/pvas", F_OK))
		SKIP(return, "no /dev/pvas");
	self->s = NULL;
	self->attr = (struct pvas_create_attr){
		.size = sizeof(self->attr), .partition_size = variant->size,
		.backend = variant->backend,
	};
	ASSERT_EQ(pvas_space_create(&self->s, &self->attr), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(space)
{
	if (self->s)
		pvas_space_destroy(self->s);
}

static int spawn(struct pvas_space *s, unsigned int index, const char *program,
		 const char *arg, pid_t *pid)
{
	char *argv[] = { (char *)program, (char *)arg, NULL };

	return pvas_task_spawn(s, index, program, argv, environ, NULL, pid);
}

static int run(struct pvas_space *s, const char *program)
{
	pid_t pid;
	int ret = spawn(s, PVAS_ANY, program, NULL, &pid);

	return ret < 0 ? ret : end_of(pid);
}

TEST_F(space, geometry)
{
	unsigned int first, last;
	uint64_t size;

	EXPECT_EQ(pvas_space_get_backend(self->s), variant->backend);
	EXPECT_NE(pvas_space_get_id(self->s), 0);
	EXPECT_EQ(pvas_space_get_bounds(self->s, &first, &last, &size), 0);
	EXPECT_EQ(size, variant->size ? variant->size : 1ULL << 36);
	EXPECT_EQ(first, 1);
	EXPECT_GE(last, 9);
}

/* Longer than the harness's 30 s: a debug kernel is slow. */
TEST_F_TIMEOUT(space, programs, 300)
{
	EXPECT_EQ(run(self->s, ours("task")), 0);
	EXPECT_EQ(run(self->s, ours("task-static")), 0);
	EXPECT_EQ(run(self->s, ours("shape-plain")), 0);
	EXPECT_EQ(run(self->s, ours("shape-static")), 0);
	EXPECT_EQ(run(self->s, ours("shape-align2m")), 0);
	EXPECT_EQ(run(self->s, ours("shape-align64k")), 0);
	EXPECT_EQ(run(self->s, ours("shape-bigbss")), 0);
	EXPECT_EQ(run(self->s, ours("shape-highbase")), 0);
	EXPECT_EQ(run(self->s, ours("shape-execstack")), 0);
	EXPECT_EQ(run(self->s, "/bin/true"), 0);
	EXPECT_EQ(run(self->s, "/bin/false"), 1 << 8);
}

TEST_F(space, errors)
{
	pid_t pid;

	EXPECT_EQ(run(self->s, "/no"), -ENOENT);
	EXPECT_EQ(run(self->s, "/etc"), -EACCES);
	EXPECT_EQ(run(self->s, "/bin/mount"), -EPERM);	/* set-uid */
	EXPECT_EQ(run(self->s, ours("launch-nopie")), -ENOEXEC);
	EXPECT_EQ(spawn(self->s, 5, "/bin/sleep", "100", &pid), 5);
	EXPECT_EQ(spawn(self->s, 5, "/bin/sleep", "100", NULL), -EBUSY);
	kill(pid, SIGKILL);
	EXPECT_EQ(end_of(pid), SIGKILL);
	EXPECT_EQ(spawn(self->s, 5, "/bin/sleep", "0", &pid), 5);
	EXPECT_EQ(end_of(pid), 0);
	EXPECT_EQ(waitpid(-1, NULL, 0), -1);
}

TEST_F(space, list_of_tasks)
{
	struct pvas_task_info t[4];
	pid_t pid[3];
	int i;

	EXPECT_EQ(pvas_task_list(self->s, NULL, 0), 0);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(spawn(self->s, 3 + i, "/bin/sleep", "100", &pid[i]), 3 + i);
	EXPECT_EQ(pvas_task_list(self->s, NULL, 0), 3);
	memset(t, 0, sizeof(t));
	EXPECT_EQ(pvas_task_list(self->s, t, 2), 3);
	EXPECT_EQ(t[2].index, 0);
	/* pvas_task_spawn() returns as soon as the start can't fail: wait until it runs. */
	do {
		EXPECT_EQ(pvas_task_list(self->s, t, 4), 3);
	} while (t[0].state == PVAS_TASK_STARTING || t[1].state == PVAS_TASK_STARTING ||
		 t[2].state == PVAS_TASK_STARTING);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ((int)t[i].index, 3 + i);
		EXPECT_EQ(t[i].pid, pid[i]);
		EXPECT_EQ(t[i].state, PVAS_TASK_RUNNING);
		EXPECT_EQ((size_t)t[i].base, t[i].length * t[i].index);
	}
	pvas_space_destroy(self->s);		/* kills them */
	self->s = NULL;
	for (i = 0; i < 3; i++)
		EXPECT_EQ(end_of(pid[i]), SIGKILL);
}

TEST_F(space, tasks_meet)
{
	pid_t pid[4];
	int i;

	/* They end in any order: each waits for all, and for one that ends. */
	for (i = 0; i < 4; i++) {
		char *argv[] = { "task", "meet", "4", NULL };

		ASSERT_EQ(pvas_task_spawn(self->s, 1 + i, ours("task"), argv, environ, NULL,
					  &pid[i]),
			  1 + i);
	}
	for (i = 0; i < 4; i++)
		EXPECT_EQ(end_of(pid[i]), 0);
}

TEST_F(space, destroy_can_keep)
{
	struct pvas_space *s;
	pid_t pid;

	self->attr.flags = PVAS_KEEP_ON_CLOSE;
	if (variant->backend == PVAS_BACKEND_USER) {
		EXPECT_EQ(pvas_space_create(&s, &self->attr), -ENOSYS);
		return;
	}
	ASSERT_EQ(pvas_space_create(&s, &self->attr), 0);
	ASSERT_EQ(spawn(s, PVAS_ANY, "/bin/sleep", "0.3", &pid), 1);
	pvas_space_destroy(s);
	EXPECT_EQ(end_of(pid), 0);
}

TEST_F(space, killed_launcher_takes_its_tasks)
{
	pid_t pid, launcher;
	int p[2], i;

	ASSERT_EQ(pipe(p), 0);
	launcher = fork();
	if (!launcher) {
		struct pvas_space *s;

		if (pvas_space_create(&s, &self->attr) || spawn(s, 7, "/bin/sleep", "100",
								&pid) != 7)
			_exit(1);
		if (write(p[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		pause();
	}
	ASSERT_EQ(read(p[0], &pid, sizeof(pid)), sizeof(pid));
	kill(launcher, SIGKILL);
	EXPECT_EQ(end_of(launcher), SIGKILL);
	for (i = 0; i < 100 && !kill(pid, 0); i++)
		usleep(100000);		/* init reaps it */
	EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(space, standard_descriptors)
{
	struct pvas_spawn_attr a = { .size = sizeof(a), .set_fds = 1, .fds = { -1, -1, -1 } };
	char *argv[] = { "echo", "hello", NULL };
	char buf[16] = "";
	pid_t pid;
	int p[2];

	ASSERT_EQ(pipe2(p, O_CLOEXEC), 0);
	a.fds[1] = p[1];
	EXPECT_EQ(pvas_task_spawn(self->s, PVAS_ANY, "/bin/echo", argv, environ, &a, &pid), 1);
	EXPECT_EQ(end_of(pid), 0);
	EXPECT_EQ(read(p[0], buf, sizeof(buf)), 6);
	EXPECT_STREQ(buf, "hello\n");
}

TEST_F(space, scripts)
{
	char path[] = "/tmp/pvas-space-XXXXXX";
	int fd = mkstemp(path);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(write(fd, "#!/bin/bash\nexit 9\n", 19), 19);
	fchmod(fd, 0755);
	close(fd);
	EXPECT_EQ(run(self->s, path), 9 << 8);
	unlink(path);
}

/* A task creates a space of its own, and spawns into it. */
TEST_F(space, space_made_by_a_task)
{
	if (variant->backend == PVAS_BACKEND_USER)
		SKIP(return, "two listeners can't watch one process");
	EXPECT_EQ(run(self->s, ours("task-launcher")), 0);
}

FIXTURE(many) {};
FIXTURE_SETUP(many) {}
FIXTURE_TEARDOWN(many) {}

TEST_F_TIMEOUT(many, create_and_destroy, 900)
{
	struct pvas_space *s;
	int i;

	for (i = 0; i < 100; i++) {
		ASSERT_EQ(pvas_space_create(&s, NULL), 0) TH_LOG("%d: %s", i, pvas_error_get());
		ASSERT_EQ(pvas_space_destroy(s), 0);
	}
}

TEST_HARNESS_MAIN
