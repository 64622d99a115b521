// SPDX-License-Identifier: GPL-2.0-only
/* Many tasks in one mm, and what they see of each other. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

/* 60 tasks at once, in one mm; all of them then end */
PVAS_TEST(many_tasks)
{
	enum { N = 60 };
	struct pvas_space *space = PT_SPACE_OF(16UL << 30);
	static struct pvas_task_info info[N + 1];
	static pid_t pid[N];
	int fds[2], i;

	ASSERT_EQ(0, pipe(fds));
	for (i = 0; i < N; i++) {
		ASSERT_LT(0, pt_start_task_fds(space, PVAS_ANY, "ready_and_pause", fds[1], 0,
			&pid[i]));
	}
	for (i = 0; i < N; i++) {
		ASSERT_EQ('r', pt_hear(fds[0]));
	}
	ASSERT_EQ(N, pvas_task_list(space, info, PT_ARRAY_SIZE(info)));
	for (i = 0; i < N; i++) {
		EXPECT_EQ(PVAS_TASK_RUNNING, info[i].state);
		EXPECT_EQ(0, syscall(SYS_kcmp, pid[0], pid[i], KCMP_VM, 0, 0));
	}
	for (i = 0; i < N; i++)
		kill(pid[i], SIGKILL);
	for (i = 0; i < N; i++) {
		EXPECT_EQ(256 + SIGKILL, pt_wait(pid[i]));
	}
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	pvas_space_destroy(space);
}

/* one mm among tasks, none with the launcher or another space */
MODULE_TEST(kcmp, "one space a process")
{
	struct pvas_space *space = PT_SPACE(), *other = PT_SPACE();
	pid_t pid[3];
	int fds[2], i;

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(1, pt_start_task_fds(space, 1, "ready_and_pause", fds[1], 0, &pid[0]));
	ASSERT_EQ(2, pt_start_task_fds(space, 2, "ready_and_pause", fds[1], 0, &pid[1]));
	ASSERT_EQ(1, pt_start_task_fds(other, 1, "ready_and_pause", fds[1], 0, &pid[2]));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ('r', pt_hear(fds[0]));
	}
	EXPECT_EQ(0, syscall(SYS_kcmp, pid[0], pid[1], KCMP_VM, 0, 0));
	EXPECT_NE(0, syscall(SYS_kcmp, pid[0], pid[2], KCMP_VM, 0, 0));
	EXPECT_NE(0, syscall(SYS_kcmp, pid[0], getpid(), KCMP_VM, 0, 0));
	for (i = 0; i < 3; i++)
		pt_kill(pid[i]);
	pvas_space_destroy(space);
	pvas_space_destroy(other);
}

/* hundreds of armed processes at once, up to the last index */
MODULE_TEST(armed_many, "the ABI of /dev/pvas")
{
	enum { N = 200 };
	struct pt_raw raw;
	static pid_t pid[N];
	uint32_t index;
	int i, fds[2];

	ASSERT_EQ(0, pipe(fds));
	pt_raw_init(&raw, 34);
	ASSERT_EQ(0, pt_raw_create(&raw));
	EXPECT_LE(4094, raw.create.last - raw.create.first + 1);
	for (i = 0; i < N; i++) {
		index = i < N / 2 ? raw.create.first + i : raw.create.last - i;
		pid[i] = fork();
		if (!pid[i]) {
			if (pt_raw_arm(raw.fd, 0, index, 0))
				_exit(1);
			_exit(write(fds[1], "a", 1) != 1 || pause());
		}
	}
	for (i = 0; i < N; i++) {
		ASSERT_EQ('a', pt_hear(fds[0]));
	}
	EXPECT_EQ(N, pt_raw_count(raw.fd));
	for (i = 0; i < N; i++)
		kill(pid[i], SIGKILL);
	for (i = 0; i < N; i++) {
		EXPECT_EQ(256 + SIGKILL, pt_wait(pid[i]));
	}
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	pt_raw_close(&raw);
}

/* a mutex in one task's memory, used by another: both are in one mm */
static int futex_word;

TASK(futex_sleeper)
{
	struct timespec limit = { .tv_sec = 20 };

	CHECK_EQ(0, pvas_name_export("word", &futex_word));
	while (!__atomic_load_n(&futex_word, __ATOMIC_SEQ_CST))
		if (syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0) &&
		    errno == ETIMEDOUT)
			break;
	CHECK_EQ(1, futex_word);
}

TASK(futex_waker)
{
	void *word;

	CHECK(pvas_name_import_wait(PVAS_ANY, "word", 20000, &word) > 0);
	CHECK(!pt_inside(word, 4));
	usleep(50000);
	__atomic_store_n((int *)word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

PVAS_TEST(futex_between_tasks)
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid[2];

	pid[0] = pt_start_task(space, PVAS_ANY, "futex_sleeper");
	pid[1] = pt_start_task(space, PVAS_ANY, "futex_waker");
	ASSERT_LT(0, pid[0]);
	ASSERT_LT(0, pid[1]);
	EXPECT_EQ(0, pt_wait(pid[0]));
	EXPECT_EQ(0, pt_wait(pid[1]));
	pvas_space_destroy(space);
}

TASK_TEST(queries)
{
	struct pvas_task_info info;
	unsigned int first, last;
	uint64_t size;
	void *base;
	size_t len;

	CHECK_EQ(0, pvas_space_get_bounds(NULL, &first, &last, &size));
	CHECK_EQ(64UL << 30, size);
	CHECK(first <= (unsigned int)pvas_task_get_index() &&
	      (unsigned int)pvas_task_get_index() <= last);
	CHECK_EQ(0, pvas_partition_get(pvas_task_get_index(), &base, &len));
	CHECK_EQ(size, len);
	CHECK(pt_inside(&info, sizeof(info)));
	CHECK_EQ(pvas_task_get_index(), pvas_task_find(&info));
	CHECK_EQ(pvas_task_get_index(), pvas_task_find((void *)&task_body_queries));
	CHECK_EQ(-ENOENT, pvas_task_find((void *)(pt_base() + pt_size())));
	CHECK_EQ(0, pvas_task_get(pvas_task_get_index(), &info));
	CHECK_EQ(getpid(), info.pid);
	CHECK_EQ(PVAS_TASK_RUNNING, info.state);
	CHECK_EQ(-EINVAL, pvas_task_get(0x7fffffff, &info));
	CHECK_EQ(1, pvas_task_list(NULL, &info, 1));
	CHECK_EQ(getpid(), info.pid);
	CHECK(pvas_space_get_id(NULL) != 0);
}

PT_MAIN()
