// SPDX-License-Identifier: GPL-2.0-only
/* Services of the kernel that still work for a task: clocks, membarrier(), kernel threads. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

/* How many the space has at once; waits up to a second for @want. */
static int tasks_soon(struct pvas_space *space, int want)
{
	int tries = 100, n;

	while ((n = pvas_task_list(space, NULL, 0)) != want && tries--)
		usleep(10000);
	return n;
}

/* From here on only write() and exit() are allowed. */
static int only_write_and_exit(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = PT_ARRAY_SIZE(code), .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) ? -errno : 0;
}

/* Ends the process: 0 if the clock runs, killed by SIGSYS if it needs a system call. */
static int read_clocks(void *arg)
{
	struct timespec a, b;
	struct timeval tv;
	int i;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &a);
	if (only_write_and_exit())
		_exit(98);
	for (i = 0; i < 1000; i++) {
		clock_gettime(CLOCK_MONOTONIC, &b);
		gettimeofday(&tv, NULL);
	}
	_exit(tv.tv_sec < 1000000000 || b.tv_sec < a.tv_sec ||
	      (b.tv_sec == a.tv_sec && b.tv_nsec <= a.tv_nsec));
}

TASK(read_clocks_in_task)
{
	CHECK(getauxval(AT_SYSINFO_EHDR) != 0);
	read_clocks(NULL);
}

TASK(read_clocks_in_fork_child)
{
	pid_t pid = fork();

	if (!pid)
		read_clocks(NULL);
	_exit(pt_wait(pid));
}

/* a task and its fork child read the clock in the vdso, without a system call */
PVAS_TEST(vdso)
{
	pid_t pid = fork();

	if (!pid)
		read_clocks(NULL);
	if (pt_wait(pid))
		SKIP(return, "this machine's clock needs a system call");
	EXPECT_EQ(0, pt_run_task("read_clocks_in_task"));
	EXPECT_EQ(0, pt_run_task("read_clocks_in_fork_child"));
}

TASK_TEST(membarrier)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) < 0)
		return;
	CHECK_EQ(0, syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
	CHECK_EQ(0, syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
	CHECK_EQ(0, syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0));
}

TASK(use_io_uring)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 10000 };
	int fd = syscall(SYS_io_uring_setup, 8, &p);
	size_t len = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
	unsigned int *tail, *array;
	struct io_uring_sqe *sqe;
	char *sq;

	if (fd < 0) {
		CHECK(errno == ENOSYS || errno == EPERM);
		return;
	}
	sq = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
		  IORING_OFF_SQ_RING);
	sqe = mmap(NULL, p.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQES);
	CHECK(sq != MAP_FAILED && pt_inside(sq, len));
	CHECK(sqe != MAP_FAILED && pt_inside(sqe, sizeof(*sqe)));
	tail = (unsigned int *)(sq + p.sq_off.tail);
	array = (unsigned int *)(sq + p.sq_off.array);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_NOP;
	array[0] = 0;
	__atomic_store_n(tail, 1, __ATOMIC_RELEASE);
	syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_SQ_WAKEUP, NULL,
		0);
}

/* a task ends with a kernel thread of io_uring's in it */
MODULE_TEST(io_uring, "a task has no io_uring")
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid;
	int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(1, pt_start_task_fds(space, 1, "use_io_uring", 0, 0, &pid));
		EXPECT_EQ(0, pt_wait(pid));
		EXPECT_EQ(0, tasks_soon(space, 0));
	}
	pvas_space_destroy(space);
}

static int take_all_keys(void)
{
	int n = 0;

	while (syscall(SYS_pkey_alloc, 0, 0) > 0)
		n++;
	return n;
}

TASK(take_keys)
{
	_exit(take_all_keys());
}

TASK(take_keys_and_exec)
{
	pt_exec_as("take_as_many_keys", pt_number(take_all_keys()));
}

TASK(take_as_many_keys)
{
	CHECK(pvas_task_get_index() > 0);
	CHECK_EQ(atoi(pt_args[0]), take_all_keys());
}

/* The protection keys that a program has allocated are free when it has ended, or has execed. */
MODULE_TEST(keys, "the keys of a program are not known")
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid = pt_start_task(space, 1, "take_keys");
	int n;

	ASSERT_LT(0, pid);
	n = pt_wait(pid);
	pid = pt_start_task(space, 2, "take_keys");
	EXPECT_LT(0, pid);
	EXPECT_EQ(n, pt_wait(pid));
	pvas_space_destroy(space);
	if (!n)
		SKIP(return, "the processor has no protection keys");
	EXPECT_EQ(0, pt_run_task("take_keys_and_exec"));
}

PT_MAIN()
