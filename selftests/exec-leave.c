// SPDX-License-Identifier: GPL-2.0-only
/* The exec of a task that leaves the space: the new program can't be a task, or wants to leave. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "program.h"

TASK(check_left)
{
	CHECK_EQ(-ESRCH, pvas_task_get_index());
}

TASK(leave_by_variable)
{
	setenv("PVAS_EXEC", "leave", 1);
	pt_exec_as("check_left", NULL);
}

TASK(leave_by_call)
{
	CHECK(pvas_task_get_index() > 0);
	CHECK_EQ(0, pvas_exec_leave(1));
	if (pt_args[0])
		pt_exec_as("check_left", NULL);
	CHECK_EQ(0, pvas_exec_leave(0));
	CHECK(!strcmp(getenv("PVAS_EXEC"), "stay"));
	pt_exec_as("leave_by_call", "again");
}

/* PVAS_EXEC=leave, also by the call, which can be taken back */
PVAS_TEST(leaves_by_variable)
{
	EXPECT_EQ(0, pt_run_task("leave_by_variable"));
	EXPECT_EQ(0, pt_run_task("leave_by_call"));
}

TASK(leave_by_rights)
{
	CHECK_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	pt_exec_as("check_left", NULL);
}

/* a program that would have other rights than the tasks */
MODULE_TEST(leaves_by_rights, "a task has no_new_privs anyway")
{
	EXPECT_EQ(0, pt_run_task("leave_by_rights"));
}

TASK(leave_by_capabilities)
{
	CHECK_EQ(0, prctl(PR_CAPBSET_DROP, 20, 0, 0, 0));
	pt_exec_as("check_left", NULL);
}

/* ... or fewer */
PVAS_TEST(leaves_by_capabilities)
{
	PT_NEED_ROOT();
	EXPECT_EQ(0, pt_run_task("leave_by_capabilities"));
}

/* Its status in /proc becomes long. */
TASK(leave_by_filter)
{
	struct sock_filter allow = { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW };
	struct sock_fprog program = { 1, &allow };
	gid_t groups[2000];
	gid_t i;

	for (i = 0; i < 2000; i++)
		groups[i] = 100000 + i;
	setgroups(2000, groups);	/* which the module refuses, and ordinary users may not */
	CHECK_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_EQ(0, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
	pt_exec_as("check_left", NULL);
}

/* a program with a filter that its peers don't have */
PVAS_TEST(leaves_by_filter)
{
	EXPECT_EQ(0, pt_run_task("leave_by_filter"));
}

TASK(exec_nopie)
{
	execl(pt_beside("nopie"), "nopie", (char *)NULL);
	CHECK_EQ(0, errno);
}

/* a program that is not position-independent runs outside */
PVAS_TEST(leaves_if_not_pie)
{
	int status;

	ASSERT_EQ(0, access(pt_beside("nopie"), X_OK));
	status = pt_wait(fork() ?: (execl(pt_beside("nopie"), "nopie", (char *)NULL), 0));
	EXPECT_EQ(status, pt_run_task("exec_nopie"));
}

TASK(exec_file)
{
	execv(pt_args[0], pt_argv_as("check_left", NULL));
	CHECK_EQ(0, errno);
}

/* nor one that is set-uid, whether or not the kernel heeds that */
PVAS_TEST(leaves_if_set_uid)
{
	const char *copy = strdup(pt_copy_file("suid", pt_self(), 04755));

	EXPECT_EQ(0, pt_run_task_with("exec_file", copy));
}

static void *vfork_thread(void *arg)
{
	/* A process with the task's memory: it sleeps for 3 s. */
	if (!vfork()) {
		struct timespec t = { 3, 0 };

		syscall(SYS_nanosleep, &t, NULL);
		_exit(0);
	}
	return arg;
}

TASK(vfork_and_exec)
{
	pthread_t t;

	CHECK_EQ(0, pthread_create(&t, NULL, vfork_thread, NULL));
	usleep(300000);
	pt_exec_as("check_left", NULL);
}

/* memory that a vfork child still uses stays for it: then the exec leaves the space */
PVAS_TEST(leaves_a_guest_alone)
{
	EXPECT_EQ(0, pt_run_task("vfork_and_exec"));
}

TASK(check_locked)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	pid_t self = getpid(), pid;

	CHECK_EQ(-ESRCH, pvas_task_get_index());
	pid = fork();
	if (!pid) {
		fcntl(atoi(pt_args[0]), F_GETLK, &lock);
		_exit(lock.l_pid != self);
	}
	CHECK_EQ(0, pt_wait(pid));
}

TASK(lock_and_exec)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	int fd = open(pt_args[0], O_RDONLY);

	CHECK_EQ(0, fcntl(fd, F_SETLK, &lock));
	pt_exec_as("check_locked", pt_number(fd));
}

/* a program that has locked its own file, or that of its interpreter, keeps the lock */
PVAS_TEST(leaves_with_locks)
{
	EXPECT_EQ(0, pt_run_task_with("lock_and_exec", pt_self()));
	EXPECT_EQ(0, pt_run_task_with("lock_and_exec", "/lib64/ld-linux-x86-64.so.2"));
}

PT_MAIN()
