// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Each error that the manual pages of section 3 name, provoked on each backend it
 * can come from: scripts/check-manuals wants a FAILS() of each. Where the real
 * condition is out of a test's reach (a module of another ABI, a machine out of
 * files), a seccomp filter answers in the kernel's place.
 *
 *	errors --task	the calls of a task: errors_task.c
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "backend.h"
#include "errors.h"
#include "helpers.h"
#include "kselftest_harness.h"

#define MAX_SPACES "/sys/module/pvas/parameters/max_spaces"

static int task_spawn(struct pvas_space *s, const char *path)
{
	char *argv[] = { (char *)path, NULL };

	return pvas_task_spawn(s, PVAS_ANY, path, argv, environ, NULL, NULL);
}

/* A task that runs until the space is destroyed */
static int start_at(struct pvas_space *s, unsigned int index)
{
	char *argv[] = { "sleep", "1000", NULL };

	return pvas_task_spawn(s, index, "/bin/sleep", argv, environ, NULL, NULL);
}

/* ---- spaces ---- */

FIXTURE(create)
{
	int backend;
};

FIXTURE_VARIANT(create)
{
	int backend;
};

FIXTURE_VARIANT_ADD(create, kernel) { .backend = PVAS_BACKEND_KERNEL };
FIXTURE_VARIANT_ADD(create, user) { .backend = PVAS_BACKEND_USER };

FIXTURE_SETUP(create)
{
	self->backend = variant->backend;
	if (self->backend == PVAS_BACKEND_KERNEL && access("/dev/pvas", F_OK))
		SKIP(return, "no /dev/pvas");
	ASSERT_EQ(space_create(self->backend), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(create)
{
	EXPECT_EQ(failed, 0);
}

TEST_F(create, attributes)
{
	struct { struct pvas_create_attr a; long more; } big = {
		.a = { .size = sizeof(big), .backend = self->backend }, .more = 1,
	};
	struct pvas_space *s;

	FAILS(E2BIG, pvas_space_create(&s, &big.a));
	big.more = 0;
	big.a.partition_size = 5;
	FAILS(EINVAL, pvas_space_create(&s, &big.a));
}

TEST_F(create, not_permitted)
{
	if (self->backend == PVAS_BACKEND_KERNEL)
		forbid((int[]){ SYS_openat }, 1, EACCES);
	else
		forbid((int[]){ SYS_seccomp }, 1, EPERM);
	FAILS(EACCES, space_create(self->backend));
}

TEST_F(create, processes)
{
	be_ordinary();
	set_limit(RLIMIT_NPROC, 0);
	FAILS(EAGAIN, space_create(self->backend));
}

/* Whichever descriptor can't be opened */
TEST_F_TIMEOUT(create, files, 180)
{
	int left, err = -EMFILE;

	leave_files(0);
	FAILS(EMFILE, space_create(self->backend));
	for (left = 1; left < 20 && err == -EMFILE; left++) {
		leave_files(left);
		err = space_create(self->backend);
	}
	EXPECT_EQ(err, 0) TH_LOG("%d files", left);
	EXPECT_LT(2, left);
}

TEST_F(create, files_of_the_machine)
{
	forbid((int[]){ SYS_openat }, 1, ENFILE);
	FAILS(ENFILE, space_create(self->backend));
}

TEST_F(create, memory)
{
	leave_no_memory();
	FAILS(ENOMEM, space_create(self->backend));
	give_memory_back();
}

TEST_F(create, processes_for_a_task)
{
	struct pvas_create_attr a = { .size = sizeof(a), .backend = self->backend };
	struct pvas_space *s;

	be_ordinary();
	ASSERT_EQ(pvas_space_create(&s, &a), 0);
	set_limit(RLIMIT_NPROC, 0);
	FAILS(EAGAIN, task_spawn(s, "/bin/true"));
	pvas_space_destroy(s);
}

/* ---- tasks ---- */

FIXTURE(spawn)
{
	struct pvas_space *s;
};

FIXTURE_VARIANT(spawn)
{
	int backend;
};

FIXTURE_VARIANT_ADD(spawn, kernel) { .backend = PVAS_BACKEND_KERNEL };
FIXTURE_VARIANT_ADD(spawn, user) { .backend = PVAS_BACKEND_USER };

/* With the largest partitions, so that there are few. */
FIXTURE_SETUP(spawn)
{
	struct pvas_create_attr a = {
		.size = sizeof(a), .backend = variant->backend,
		.partition_size = 1ULL << PVAS_SHIFT_MAX,
	};

	if (variant->backend == PVAS_BACKEND_KERNEL && access("/dev/pvas", F_OK))
		SKIP(return, "no /dev/pvas");
	ASSERT_EQ(pvas_space_create(&self->s, &a), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(spawn)
{
	pvas_space_destroy(self->s);
	EXPECT_EQ(failed, 0);
}

static int die(void *arg)
{
	(void)arg;
	return kill(getpid(), SIGKILL);
}

TEST_F(spawn, attributes)
{
	struct { struct pvas_spawn_attr a; long more; } big = { .a.size = sizeof(big), .more = 1 };
	static char huge[200000];
	char *argv[] = { "true", huge, NULL };
	struct pvas_space *s = self->s;

	FAILS(E2BIG, pvas_task_spawn(s, PVAS_ANY, "/bin/true", argv, environ, &big.a, NULL));
	memset(huge, 'x', sizeof(huge) - 1);
	FAILS(E2BIG, pvas_task_spawn(s, PVAS_ANY, "/bin/true", argv, environ, NULL, NULL));
	FAILS(EINVAL, pvas_task_spawn(s, 0, "/bin/true", argv, environ, NULL, NULL));
	big.more = 0;
	big.a.setup = die;
	argv[1] = NULL;
	FAILS(ECHILD, pvas_task_spawn(s, PVAS_ANY, "/bin/true", argv, environ, &big.a, NULL));
	big.a.setup = NULL;
	big.a.cwd = "/none";
	FAILS(ENOENT, pvas_task_spawn(s, PVAS_ANY, "/bin/true", argv, environ, &big.a, NULL));
	big.a.cwd = "/etc/passwd";
	FAILS(ENOTDIR, pvas_task_spawn(s, PVAS_ANY, "/bin/true", argv, environ, &big.a, NULL));
}

TEST_F(spawn, programs)
{
	make_bad_programs();
	FAILS(EACCES, task_spawn(self->s, "/etc"));
	FAILS(ELIBBAD, task_spawn(self->s, bad_interp));
	FAILS(EACCES, task_spawn(self->s, fifo_interp));
	FAILS(EACCES, task_spawn(self->s, fifo));
	FAILS(ELOOP, task_spawn(self->s, bad_link));
	FAILS(ENAMETOOLONG, task_spawn(self->s, long_path));
	FAILS(ENOENT, task_spawn(self->s, "/none"));
	FAILS(ENOEXEC, task_spawn(self->s, ours("launch-nopie")));
	FAILS(ENOTDIR, task_spawn(self->s, "/etc/passwd/x"));
	FAILS(EPERM, task_spawn(self->s, "/bin/mount"));	/* set-uid */
	remove_bad_programs();
}

TEST_F(spawn, memory)
{
	leave_no_memory();
	FAILS(ENOMEM, task_spawn(self->s, "/bin/true"));
	give_memory_back();
}

TEST_F(spawn, partitions)
{
	char *argv[] = { "true", NULL };
	int i, n = 0;

	ASSERT_EQ(start_at(self->s, 2), 2);
	FAILS(EBUSY, pvas_task_spawn(self->s, 2, "/bin/true", argv, environ, NULL, NULL));
	for (i = 0; i < 20 && n >= 0; i++)
		n = start_at(self->s, PVAS_ANY);
	EXPECT_EQ(n, -ENOSPC);
	FAILS(ENOSPC, task_spawn(self->s, "/bin/true"));
}

TEST_F(spawn, in_a_task)
{
	const char *self_path = ours("errors");
	char *argv[] = { "errors", "--task", NULL };
	pid_t pid;

	/* Partition 2 has had a task before the one in 1 checks it. */
	ASSERT_EQ(pvas_task_spawn(self->s, 2, "/bin/true", argv, environ, NULL, &pid), 2);
	EXPECT_EQ(end_of(pid), 0);
	ASSERT_EQ(pvas_task_spawn(self->s, 1, self_path, argv, environ, NULL, &pid), 1);
	EXPECT_EQ(end_of(pid), 0);
}

TEST(not_a_task)
{
	struct pvas_task_info info;
	void *p;

	FAILS(ESRCH, pvas_task_get_index());
	FAILS(EINVAL, pvas_exec_leave(2));
	FAILS(EINVAL, pvas_exec_leave(-1));
	FAILS(ESRCH, pvas_partition_get(1, NULL, NULL));
	FAILS(ESRCH, pvas_task_find(&p));
	FAILS(ESRCH, pvas_task_get(1, &info));
	FAILS(ESRCH, pvas_task_list(NULL, &info, 1));
	FAILS(ESRCH, pvas_space_get_bounds(NULL, NULL, NULL, NULL));
	FAILS(ESRCH, pvas_name_export("a", NULL));
	FAILS(ESRCH, pvas_name_unexport("a"));
	FAILS(ESRCH, pvas_name_import(1, "a", &p));
	FAILS(ESRCH, pvas_name_import_wait(1, "a", 10, &p));
	EXPECT_EQ(pvas_space_get_id(NULL), 0);
	EXPECT_EQ(failed, 0);
}

/* ---- the kernel backend alone ---- */

FIXTURE(module)
{
	struct pvas_space *s;
};

FIXTURE_SETUP(module)
{
	struct pvas_create_attr a = { .size = sizeof(a), .backend = PVAS_BACKEND_KERNEL };

	if (access("/dev/pvas", F_OK))
		SKIP(return, "no /dev/pvas");
	ASSERT_EQ(pvas_space_create(&self->s, &a), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(module)
{
	pvas_space_destroy(self->s);
	EXPECT_EQ(failed, 0);
}

TEST_F(module, not_loaded)
{
	forbid((int[]){ SYS_openat }, 1, ENOENT);
	FAILS(ENODEV, space_create(PVAS_BACKEND_KERNEL));
	FAILS(ENODEV, space_join());
}

TEST_F(module, another_device)
{
	forbid_with(SYS_ioctl, (unsigned int)PVAS_IOC_INFO, ENOTTY);
	FAILS(EPROTO, space_create(PVAS_BACKEND_KERNEL));
	FAILS(EPROTO, space_join());
}

TEST_F(module, hook_refused)
{
	forbid_with(SYS_ioctl, (unsigned int)PVAS_IOC_CREATE, EOPNOTSUPP);
	FAILS(EOPNOTSUPP, space_create(PVAS_BACKEND_KERNEL));
	FAILS(EOPNOTSUPP, space_join());
}

TEST_F(module, not_dumpable)
{
	prctl(PR_SET_DUMPABLE, 0);
	FAILS(EPERM, space_create(PVAS_BACKEND_KERNEL));
	FAILS(EPERM, space_join());
}

/* This test has one space already. */
TEST_F(module, too_many_spaces)
{
	char text[16] = "";
	int fd;

	if (geteuid())
		SKIP(return, "must be root");
	fd = open(MAX_SPACES, O_RDONLY);
	ASSERT_LT(0, read(fd, text, sizeof(text) - 1));
	close(fd);
	ASSERT_EQ(write_text(MAX_SPACES, "1"), 0);
	FAILS(ENOSPC, space_create(PVAS_BACKEND_KERNEL));
	FAILS(ENOSPC, space_join());
	ASSERT_EQ(write_text(MAX_SPACES, text), 0);
}

/* A child that has the handle ends it. */
TEST_F(module, space_has_ended)
{
	pid_t pid = fork();

	if (!pid)
		_exit(pvas_space_destroy(self->s));
	EXPECT_EQ(end_of(pid), 0);
	FAILS(ESRCH, task_spawn(self->s, "/bin/true"));
}

TEST_F(module, memory_for_a_list)
{
	static struct pvas_task_info info[PVAS_MAX_TASKS];

	EXPECT_EQ(pvas_task_list(self->s, info, PVAS_MAX_TASKS), 0);
	leave_no_memory();
	FAILS(ENOMEM, pvas_task_list(self->s, info, PVAS_MAX_TASKS));
	give_memory_back();
}

/* The space is found, but ends before it can be entered, each time */
TEST_F_TIMEOUT(module, comes_and_goes, 180)
{
	struct pvas_space *s;

	forbid_with(SYS_ioctl, (unsigned int)PVAS_IOC_ATTACH, ENOENT);
	forbid_with(SYS_ioctl, (unsigned int)PVAS_IOC_CREATE, EEXIST);
	FAILS(EAGAIN, pvas_space_join(&s, "key", NULL));
}

TEST_F(module, entering_already)
{
	struct pvas_spawn arm = { .size = sizeof(arm), .flags = PVAS_SPAWN_ANY };
	char *argv[] = { "true", NULL };

	ASSERT_EQ(ioctl(self->s->device, PVAS_IOC_SPAWN, &arm), 0);
	FAILS(EALREADY, pvas_task_exec(self->s, PVAS_ANY, "/bin/true", argv, environ));
	/* Disarm, or the end of the space kills this process. */
	arm = (struct pvas_spawn){ .size = sizeof(arm), .flags = PVAS_SPAWN_CANCEL };
	EXPECT_EQ(ioctl(self->s->device, PVAS_IOC_SPAWN, &arm), 0);
}

/* ---- the user backend alone, and none ---- */

TEST(user_backend)
{
	struct pvas_create_attr a = { .size = sizeof(a), .backend = PVAS_BACKEND_USER };
	char *argv[] = { "true", NULL };
	struct pvas_space *s, *other;

	ASSERT_EQ(pvas_space_create(&s, &a), 0);
	FAILS(EBUSY, pvas_space_create(&other, &a));
	FAILS(ENOSYS, pvas_task_exec(s, PVAS_ANY, "/bin/true", argv, environ));
	FAILS(ENOSYS, pvas_space_join(&other, "key", &a));
	leave_files(0);
	FAILS(EMFILE, task_spawn(s, "/bin/true"));
	pvas_space_destroy(s);
	leave_files(20);
	a.flags = PVAS_KEEP_ON_CLOSE;
	FAILS(ENOSYS, pvas_space_create(&s, &a));
	EXPECT_EQ(failed, 0);
}

TEST(keys)
{
	struct pvas_space *s;

	memset(long_path, 'k', PVAS_JOIN_KEY_MAX + 1);
	FAILS(EINVAL, pvas_space_join(&s, "", NULL));
	FAILS(EINVAL, pvas_space_join(&s, long_path, NULL));
	EXPECT_EQ(failed, 0);
}

/* pvas_space_create() and pvas_space_join() refuse the same attributes for the same reasons. */
TEST(attributes_of_both)
{
	struct {
		struct pvas_create_attr a;
		long more;
	} bad[] = {
		{ .a.backend = PVAS_BACKEND_USER + 1 },
		{ .a.backend = -1 },
		{ .a.flags = PVAS_KEEP_ON_CLOSE << 1 },
		{ .a.partition_size = 5 },
		{ .a.partition_size = 1ULL << (PVAS_SHIFT_MIN - 1) },
		{ .a.partition_size = 1ULL << (PVAS_SHIFT_MAX + 1) },
		{ .a.size = 1 },
		{ .a.size = sizeof(bad[0]), .more = 1 },
	};
	struct pvas_space *s;
	char text[512];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int want = bad[i].more ? E2BIG : EINVAL;

		FAILS(want, pvas_space_create(&s, &bad[i].a));
		strcpy(text, pvas_error_get());
		FAILS(want, pvas_space_join(&s, "key", &bad[i].a));
		EXPECT_STREQ(pvas_error_get(), text);
		EXPECT_NE(text[0], 0);
	}
	EXPECT_EQ(failed, 0);
}

TEST(find_program)
{
	char small[8], buf[64];

	FAILS(ENOENT, pvas_program_find("none", "/bin", buf, sizeof(buf)));
	FAILS(EACCES, pvas_program_find("/etc", NULL, buf, sizeof(buf)));
	FAILS(ENAMETOOLONG, pvas_program_find("/bin/true", NULL, small, sizeof(small)));
	EXPECT_EQ(failed, 0);
}

TEST(check_programs)
{
	make_bad_programs();
	FAILS(EACCES, program_check("/etc"));
	FAILS(ELIBBAD, program_check(bad_interp));
	FAILS(EACCES, program_check(fifo_interp));
	FAILS(EACCES, program_check(fifo));
	FAILS(ELOOP, program_check(bad_link));
	FAILS(ENAMETOOLONG, program_check(long_path));
	FAILS(ENOENT, program_check("/none"));
	FAILS(ENOEXEC, program_check(ours("launch-nopie")));
	FAILS(ENOTDIR, program_check("/etc/passwd/x"));
	FAILS(EPERM, program_check("/bin/mount"));	/* set-uid */
	remove_bad_programs();
	leave_no_memory();
	FAILS(ENOMEM, program_check("/bin/true"));
	give_memory_back();
	EXPECT_EQ(failed, 0);
}

TEST(leave_without_memory)
{
	leave_no_memory();
	FAILS(ENOMEM, pvas_exec_leave(1));
	give_memory_back();
	EXPECT_EQ(pvas_exec_leave(1), 0);
	EXPECT_EQ(pvas_exec_leave(0), 0);
	EXPECT_EQ(failed, 0);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--task"))
		return errors_as_task();
	return test_harness_run(argc, argv);
}
