// SPDX-License-Identifier: GPL-2.0-only
/* The exec of a task by all calls that there are for it, and of files that can't be executed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "program.h"

#define AT_EXECVE_CHECK_FLAG 0x10000	/* AT_EXECVE_CHECK, 6.14 */

/* ---- the calls ---- */

TASK(exec_by_descriptor)
{
	int fd = open(pt_self(), O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	fexecve(fd, pt_argv_as("check_inside", pt_number(getpid())), environ);
	CHECK_EQ(0, errno);
}

TASK(exec_in_directory)
{
	char *dir = strdup(pt_self()), *name = strrchr(dir, '/');
	int fd;

	*name++ = 0;
	fd = open(dir, O_PATH | O_DIRECTORY);
	CHECK(fd >= 0);
	CHECK_ERR(ENOENT, syscall(SYS_execveat, fd, "", pt_argv_as("x", NULL), environ, 0));
	CHECK_ERR(EBADF, syscall(SYS_execveat, 999, name, pt_argv_as("x", NULL), environ, 0));
	CHECK_ERR(EBADF, syscall(SYS_execveat, -5, name, pt_argv_as("x", NULL), environ, 0));
	CHECK_ERR(EINVAL, syscall(SYS_execveat, fd, name, pt_argv_as("x", NULL), environ, 0x80000));
	syscall(SYS_execveat, fd, name, pt_argv_as("check_inside", pt_number(getpid())), environ,
		0);
	CHECK_EQ(0, errno);
}

/* The interpreter would get the name of a descriptor that is closed. */
TASK(exec_lost_script)
{
	int fd = open(pt_args[0], O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	fexecve(fd, pt_argv_as("x", NULL), environ);
	CHECK_EQ(ENOENT, errno);
	pt_exec_as("check_inside", pt_number(getpid()));
}

/* In another root there is another program at the descriptor's name. */
TASK(exec_in_root)
{
	int fd = open(pt_self(), O_RDONLY);

	CHECK_EQ(60, dup2(fd, 60));
	CHECK_EQ(0, chroot(pt_args[0]));
	fexecve(60, pt_argv_as("check_root", NULL), environ);
	/* There is no dynamic linker in that root. */
	CHECK_EQ(ENOENT, errno);
}

/* execveat() with a descriptor of the program, or of its directory */
PVAS_TEST(by_descriptor)
{
	EXPECT_EQ(0, pt_run_task("exec_by_descriptor"));
	EXPECT_EQ(0, pt_run_task("exec_in_directory"));
	EXPECT_EQ(0, pt_run_task_with("exec_lost_script",
			      strdup(pt_put_file("script", "#!/bin/sh\n", 10, 0755))));
}

/* ... whatever has its name in another root */
PVAS_TEST(by_descriptor_in_root)
{
	char root[256], path[300];

	PT_NEED_ROOT();
	snprintf(root, sizeof(root), "%s", pt_tmp("root"));
	snprintf(path, sizeof(path), "%s/dev/fd", root);
	ASSERT_EQ(0, mkdir(root, 0755) || mkdir(strcat(strcpy(path, root), "/dev"), 0755) ||
		  mkdir(strcat(path, "/fd"), 0755));
	ASSERT_NE(NULL, pt_copy_file("root/dev/fd/60", pt_beside("nopie"), 0755));
	EXPECT_EQ(0, pt_run_task_with("exec_in_root", root));
}

/* An execve() that fails, with a number in the upper half of a vector register */
static long fail_with(uint64_t *upper)
{
	uint64_t v[4] = { 1, 2, 3, *upper };
	long ret = SYS_execve;

	__asm__ volatile("vmovdqu (%[v]), %%ymm9\n\t"
			 "syscall\n\t"
			 "vmovdqu %%ymm9, (%[v])"
			 : "+a"(ret)
			 : "D"("/nonexistent"), "S"(0), "d"(0), [v] "r"(v)
			 : "rcx", "r11", "xmm9", "memory");
	*upper = v[3];
	return ret;
}

/* one that fails changes no register */
TASK_TEST(fails_with_registers)
{
	uint64_t upper = 0x123456789abcdef;

	if (!__builtin_cpu_supports("avx"))
		return;
	CHECK_EQ(-ENOENT, fail_with(&upper));
	CHECK_EQ(0x123456789abcdef, upper);
}

/* ---- files ---- */

/* Does the kernel tell the user backend whether it would execute a file? */
static int can_ask(void)
{
	char *argv[] = { (char *)"", NULL };

	return pt_backend() != PVAS_BACKEND_USER ||
	       !syscall(SYS_execveat, AT_FDCWD, pt_self(), argv, environ, AT_EXECVE_CHECK_FLAG);
}

TASK(exec_written)
{
	int fd = open(pt_args[0], O_WRONLY);

	CHECK(fd >= 0);
	CHECK_ERR(ETXTBSY, execv(pt_args[0], pt_argv_as("succeed", NULL)));
	close(fd);
	if (!pt_failed)
		execv(pt_args[0], pt_argv_as("check_inside", pt_number(getpid())));
}

/* a file that is open for writing is refused, before Linux 6.14 not by the user backend */
PVAS_TEST(of_open_file)
{
	if (!can_ask())
		SKIP(return, "before Linux 6.14");
	EXPECT_EQ(0, pt_run_task_with("exec_written", strdup(pt_copy_file("copy", pt_self(), 0755))));
}

static int allow(int rules, const char *path)
{
	struct landlock_path_beneath_attr attr = {
		.allowed_access = LANDLOCK_ACCESS_FS_EXECUTE,
		.parent_fd = open(path, O_PATH | O_CLOEXEC),
	};
	int err = (int)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &attr, 0);

	close(attr.parent_fd);
	return err;
}

/* Only /usr, this program and @path may be executed. -1: there is no Landlock. */
static int confine(const char *path)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE };
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, 8, 0);

	if (rules < 0 || allow(rules, "/usr") || allow(rules, pt_self()) || allow(rules, path))
		return -1;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_landlock_restrict_self, rules, 0);
}

TASK(exec_forbidden)
{
	char script[256];

	CHECK_ERR(EACCES, execv(pt_args[0], pt_argv_as("succeed", NULL)));
	/* It may be executed, but its interpreter may not. */
	snprintf(script, sizeof(script), "%s.script", pt_args[0]);
	CHECK_ERR(EACCES, execv(script, pt_argv_as("succeed", NULL)));
	if (!pt_failed)
		pt_exec_as("check_inside", pt_number(getpid()));
}

/* one that the job's Landlock domain forbids to execute, too */
PVAS_TEST(of_forbidden_file)
{
	const char *copy = strdup(pt_copy_file("copy", pt_self(), 0755));
	char line[300];
	int len = snprintf(line, sizeof(line), "#!%s\n", copy);
	const char *script = pt_put_file("copy.script", line, len, 0755);

	if (!can_ask())
		SKIP(return, "before Linux 6.14");
	if (confine(script))
		SKIP(return, "no Landlock");
	EXPECT_EQ(0, pt_run_task_with("exec_forbidden", copy));
}

PT_MAIN()
