// SPDX-License-Identifier: GPL-2.0-only
/*
 * Concurrency ids, see rseq(2): the kernel gives one to each thread that runs with an mm, as low
 * as it can, and each task finds one, however many threads the space has had, or had at times none.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/rseq.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define FEATURE_SIZE	27	/* AT_RSEQ_FEATURE_SIZE */
#define ID		6	/* struct rseq.mm_cid, as an index of words */
#define THREADS		12

#define SKIP_WITHOUT_IDS() do { \
	if (getauxval(FEATURE_SIZE) < (ID + 1) * sizeof(int)) \
		SKIP(return, "this kernel has no concurrency ids"); \
} while (0)

static unsigned int concurrency_id(void)
{
	const char *area = (const char *)__builtin_thread_pointer() + __rseq_offset;

	return ((const volatile unsigned int *)area)[ID];
}

TASK(has_an_id)
{
	/* The C library has registered 32 bytes, but counts those that it knows. */
	CHECK(__rseq_size > 0);
	CHECK(concurrency_id() < (unsigned int)get_nprocs_conf());
}

static pthread_barrier_t all_there;

static void *thread_with_id(void *arg)
{
	int i;

	pthread_barrier_wait(&all_there);
	for (i = 0; i < 100; i++) {
		CHECK(concurrency_id() < (unsigned int)get_nprocs_conf());
		sched_yield();
	}
	return arg;
}

/* More threads than processors, and then again one. */
TASK(threads_have_ids)
{
	pthread_t t[THREADS];
	int i;

	CHECK_EQ(0, pthread_barrier_init(&all_there, NULL, THREADS));
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(0, pthread_create(&t[i], NULL, thread_with_id, NULL));
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(0, pthread_join(t[i], NULL));
	CHECK(concurrency_id() < (unsigned int)get_nprocs_conf());
}

/* A task has one when it starts, in a new space and beside others. */
PVAS_TEST(at_the_start)
{
	struct pvas_space *space;
	pid_t pid[4];
	int i;

	SKIP_WITHOUT_IDS();
	space = PT_SPACE();
	for (i = 0; i < 4; i++) {
		pid[i] = pt_start_task(space, i + 1, "has_an_id");
		ASSERT_LT(0, pid[i]);
	}
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(0, pt_wait(pid[i]));
	}
	pvas_space_destroy(space);
}

/* No id is lost when the last thread ends, of which there were more than processors. */
PVAS_TEST(space_is_left_and_entered)
{
	struct pvas_space *space;
	pid_t pid[3];
	int round, i;

	SKIP_WITHOUT_IDS();
	space = PT_SPACE();
	for (round = 0; round < 6; round++) {
		pid[0] = pt_start_task(space, 1, "threads_have_ids");
		ASSERT_LT(0, pid[0]);
		ASSERT_EQ(0, pt_wait(pid[0]));
		ASSERT_EQ(0, pvas_task_list(space, NULL, 0));
		for (i = 0; i < 3; i++) {
			pid[i] = pt_start_task(space, i + 1, i ? "has_an_id" : "threads_have_ids");
			ASSERT_LT(0, pid[i]);
		}
		for (i = 0; i < 3; i++) {
			EXPECT_EQ(0, pt_wait(pid[i]));
		}
	}
	pvas_space_destroy(space);
}

PT_MAIN()
