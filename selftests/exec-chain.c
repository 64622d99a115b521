// SPDX-License-Identifier: GPL-2.0-only
/* Execs of tasks, one after the other: chains, beside each other, and with a peer that looks on. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

/* An emulated machine needs 50 ms for each: there abi-exec.c makes the long chains. */
static int chain_length(void)
{
	const char *wanted = getenv("EXEC_CHAIN");

	if (wanted)
		return atoi(wanted);
	return pt_backend() == PVAS_BACKEND_USER ? 1000 : 100;
}

static char *const *chain_argv(char *const *args)
{
	static char left[16], index[16];
	static char *argv[] = { NULL, "--task", "chain", left, index, NULL };

	argv[0] = (char *)pt_self();
	snprintf(left, sizeof(left), "%d", atoi(args[0]) - 1);
	snprintf(index, sizeof(index), "%s", args[1]);
	return argv;
}

TASK(chain)
{
	CHECK_EQ(atoi(pt_args[1]), pvas_task_get_index());
	if (pt_failed || atoi(pt_args[0]) <= 0)
		return;
	execv(pt_self(), chain_argv(pt_args));
	CHECK_EQ(0, errno);
}

static pid_t start_chain(struct pvas_space *space, unsigned int index, int length)
{
	char left[16], at[16];
	char *argv[] = { (char *)pt_self(), "--task", "chain", left, at, NULL };
	pid_t pid;
	int ret;

	snprintf(left, sizeof(left), "%d", length);
	snprintf(at, sizeof(at), "%u", index);
	ret = pvas_task_spawn(space, index, pt_self(), argv, environ, NULL, &pid);
	return ret < 0 ? ret : pid;
}

/* Nothing is left of the tasks, and all indices can be taken. */
static void check_empty(struct __test_metadata *_metadata, struct pvas_space *space)
{
	unsigned int i;
	pid_t pid;

	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	for (i = 1; i <= 2; i++) {
		pid = pt_start_task(space, i, "dirty");
		ASSERT_LT(0, pid);
		EXPECT_EQ(0, pt_wait(pid));
	}
	pvas_space_destroy(space);
	EXPECT_TRUE(pt_spaces_gone());
}

/* programs, one after the other */
PVAS_TEST(long_chain)
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid = start_chain(space, 1, chain_length());

	ASSERT_LT(0, pid);
	EXPECT_EQ(0, pt_wait(pid));
	check_empty(_metadata, space);
}

/* two tasks at once */
PVAS_TEST(two_chains)
{
	struct pvas_space *space = PT_SPACE();
	pid_t one = start_chain(space, 1, chain_length());
	pid_t two = start_chain(space, 2, chain_length());

	ASSERT_LT(0, one);
	ASSERT_LT(0, two);
	EXPECT_EQ(0, pt_wait(one));
	EXPECT_EQ(0, pt_wait(two));
	check_empty(_metadata, space);
}

/* chains that are killed somewhere: their partitions are free when wait() returns */
PVAS_TEST(killed_chains)
{
	struct pvas_space *space = PT_SPACE();
	unsigned int round;
	pid_t pid;

	for (round = 0; round < 30; round++) {
		pid = start_chain(space, 1, 1 << 20);
		ASSERT_LT(0, pid) TH_LOG("round %u", round);
		usleep(1000 * (round % 25) * 4);
		kill(pid, SIGKILL);
		EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
		EXPECT_EQ(0, pvas_task_list(space, NULL, 0)) TH_LOG("round %u", round);
	}
	check_empty(_metadata, space);
}

/* ---- a peer that reads ---- */

static sigjmp_buf fault;

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(fault, 1);
}

TASK(hold_and_exec)
{
	volatile char *p = mmap((void *)(pt_base() + pt_size() / 4), 1 << 20,
				PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	char *argv[] = { (char *)pt_self(), "--task", "ready_and_pause", pt_args[0], NULL };

	CHECK(p != MAP_FAILED);
	memset((void *)p, 's', 1 << 20);
	pt_say("r");
	CHECK_EQ('g', pt_hear(atoi(pt_args[1])));
	execv(pt_self(), argv);
	CHECK_EQ(0, errno);
}

/* Reads until there is nothing left: old data, and then what an ended task gives. */
TASK(read_peer)
{
	struct sigaction sa = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };
	volatile char *p;
	size_t i;

	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	p = (void *)(pt_base() - pt_size() + pt_size() / 4);
	CHECK_EQ('s', p[0]);
	pt_say("r");
	if (!sigsetjmp(fault, 1))
		for (i = 0;; i = (i + 4096) % (1 << 20))
			CHECK_EQ('s', p[i]);
}

/* a peer that reads the old program's memory reads it, and then faults; never anything else */
PVAS_TEST(peer_reads_the_old)
{
	struct pvas_space *space = PT_SPACE();
	int say[2], go[2];
	pid_t task, peer;

	ASSERT_EQ(0, pipe(say));
	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(1, pt_start_task_fds(space, 1, "hold_and_exec", say[1], go[0], &task));
	EXPECT_EQ('r', pt_hear(say[0]));
	ASSERT_EQ(2, pt_start_task_fds(space, 2, "read_peer", say[1], 0, &peer));
	EXPECT_EQ('r', pt_hear(say[0]));
	ASSERT_EQ(1, write(go[1], "g", 1));
	EXPECT_EQ('r', pt_hear(say[0]));
	EXPECT_EQ(0, pt_wait(peer));
	pt_kill(task);
	check_empty(_metadata, space);
}

PT_MAIN()
