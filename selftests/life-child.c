// SPDX-License-Identifier: GPL-2.0-only
/* Children of tasks: copies, guests in the partition, and what they leave. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

static int value = 5;

/* fork: a copy of its own partition, an ordinary process */
TASK_TEST(fork_child)
{
	char *heap = malloc(1 << 20);
	pid_t pid;

	memset(heap, 3, 1 << 20);
	value = 6;
	pid = fork();
	if (!pid) {
		CHECK_EQ(6, value);
		CHECK_EQ(3, heap[12345]);
		value = 7;
		heap[12345] = 4;
		CHECK_EQ(-ESRCH, pvas_task_get_index());
		CHECK(malloc(1 << 10) != NULL);
		CHECK(malloc(1 << 24) != NULL);
		CHECK(sbrk(1 << 16) != (void *)-1);
		/* Not bounded any more. */
		CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1,
			   0) != MAP_FAILED);
		_exit(pt_failed);
	}
	CHECK_EQ(0, pt_wait(pid));
	CHECK_EQ(6, value);
	CHECK_EQ(3, heap[12345]);
	CHECK(pvas_task_get_index() > 0);
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "exit 13", (char *)NULL);
		_exit(99);
	}
	CHECK_EQ(13, pt_wait(pid));
}

/* Is anything mapped in the partition at @base? */
static int mapped_at(uintptr_t base, size_t size)
{
	unsigned long lo, hi;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0;

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &lo, &hi) == 2 && hi > base && lo < base + size)
			n++;
	fclose(f);
	return n;
}

TASK(fork_and_look)
{
	uintptr_t peer = pt_base() - pt_size(), own = pt_base();
	size_t size = pt_size();
	pid_t pid;

	CHECK(mapped_at(peer, size) > 3);
	pid = fork();
	if (!pid) {
		CHECK_EQ(0, mapped_at(peer, size));
		CHECK(mapped_at(own, size) > 3);
		_exit(pt_failed);
	}
	CHECK_EQ(0, pt_wait(pid));
}

/* the fork child has none of the other partitions */
MODULE_TEST(fork_has_no_foreign_memory, "fork copies all partitions")
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid, peer;
	int fds[2];

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(4, pt_start_task_fds(space, 4, "ready_and_pause", fds[1], 0, &peer));
	ASSERT_EQ('r', pt_hear(fds[0]));
	ASSERT_EQ(5, pt_start_task_fds(space, 5, "fork_and_look", 0, 0, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	pt_kill(peer);
	pvas_space_destroy(space);
}

#define KEPT_PAGES	256

/* Writes all of them; how many are copied, or are made writable again */
static long write_faults(volatile char *p)
{
	struct rusage before, after;
	long i;

	getrusage(RUSAGE_SELF, &before);
	for (i = 0; i < KEPT_PAGES; i++)
		p[i * 4096] = i + 1;
	getrusage(RUSAGE_SELF, &after);
	return after.ru_minflt - before.ru_minflt;
}

TASK(write_again)
{
	char *p = mmap(NULL, KEPT_PAGES * 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	/* Where the kernel has them */
	madvise(p, KEPT_PAGES * 4096, MADV_NOHUGEPAGE);
	CHECK(write_faults(p) >= KEPT_PAGES / 2);
	pt_say("r");
	CHECK_EQ('x', pt_hear(atoi(pt_args[1])));
	CHECK(write_faults(p) < KEPT_PAGES / 2);
}

TASK(fork_once)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	CHECK_EQ(0, pt_wait(pid));
}

/* Runs fork_once while @name is at index 4, and tells that afterwards. Its exit status. */
static int fork_beside(struct __test_metadata *_metadata, const char *name)
{
	struct pvas_space *space = PT_SPACE();
	int from[2], to[2], status;
	pid_t pid, peer;

	ASSERT_EQ(0, pipe(from));
	ASSERT_EQ(0, pipe(to));
	ASSERT_EQ(4, pt_start_task_fds(space, 4, name, from[1], to[0], &peer));
	ASSERT_EQ('r', pt_hear(from[0]));
	ASSERT_EQ(5, pt_start_task_fds(space, 5, "fork_once", 0, 0, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	ASSERT_EQ(1, write(to[1], "x", 1));
	status = pt_wait(peer);
	pvas_space_destroy(space);
	return status;
}

/* nor does fork touch their page tables: it would write-protect what a peer has written */
MODULE_TEST(fork_protects_no_foreign_page, "fork copies all partitions")
{
	EXPECT_EQ(0, fork_beside(_metadata, "write_again"));
}

static int bomb(int depth)
{
	int i, bad = 0;
	pid_t pid[3];

	if (!depth)
		return 0;
	for (i = 0; i < 3; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(bomb(depth - 1));
	}
	for (i = 0; i < 3; i++)
		bad |= pt_wait(pid[i]) != 0;
	return bad;
}

/* 39 descendants */
TASK_TEST(fork_tree)
{
	CHECK_EQ(0, bomb(3));
}

/* Exit status of a vfork child that execs, or (NULL) exits by itself. */
static int run_vfork(char *const argv[])
{
	pid_t pid = vfork();

	if (!pid) {
		if (argv)
			execv("/bin/sh", argv);
		_exit(4);
	}
	return pt_wait(pid);
}

/* vfork, posix_spawn, system, popen */
TASK_TEST(vfork_children)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)"exit 3", NULL };
	char line[16] = "";
	pid_t pid;
	FILE *f;
	int i;

	for (i = 0; i < 10; i++) {
		CHECK_EQ(3, run_vfork(argv));
		CHECK_EQ(4, run_vfork(NULL));
	}
	CHECK_EQ(0, posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ));
	CHECK_EQ(3, pt_wait(pid));
	CHECK_EQ(7, WEXITSTATUS(system("exit 7")));
	f = popen("echo hello", "r");
	CHECK(fgets(line, sizeof(line), f) != NULL);
	CHECK(!strcmp(line, "hello\n"));
	CHECK_EQ(0, pclose(f));
	CHECK(pvas_task_get_index() > 0);
	CHECK(pt_inside(malloc(1 << 22), 1 << 22));
}

TASK(exec_storm)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)":", NULL };

	pt_say("r");
	for (;;)
		run_vfork(argv);
}

/* tasks whose children exec without end, killed: the space goes */
PVAS_TEST(kill_exec_storm)
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid[4];
	int fds[2], i;

	ASSERT_EQ(0, pipe(fds));
	for (i = 0; i < 4; i++) {
		ASSERT_LT(0, pt_start_task_fds(space, PVAS_ANY, "exec_storm", fds[1], 0, &pid[i]));
	}
	for (i = 0; i < 4; i++) {
		ASSERT_EQ('r', pt_hear(fds[0]));
	}
	usleep(500000);
	pvas_space_destroy(space);
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(256 + SIGKILL, pt_wait(pid[i]));
	}
	EXPECT_TRUE(pt_spaces_gone());
}

static int guest_fds[2];

static int guest(void *arg)
{
	char c;

	/* It is alone in the partition now and then: its memory stays, and is bounded. */
	if (read(guest_fds[0], &c, 1) != 1)
		return 1;
	return *(int *)arg == 4711 && munmap((void *)(pt_base() - 4096), 4096) == -1 &&
	       errno == EPERM ? 0 : 2;
}

TASK(leave_a_guest)
{
	char *stack = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	static int number = 4711;

	guest_fds[0] = atoi(pt_args[1]);
	CHECK(clone(guest, stack + (1 << 16), CLONE_VM | CLONE_PARENT | SIGCHLD, &number) > 0);
}

/* a CLONE_VM child that outlives the task: the partition stays until it ends */
MODULE_TEST(guest_outlives_the_task, "a partition is freed under a vfork child")
{
	struct pvas_space *space = PT_SPACE();
	int fds[2], status;
	pid_t pid, other;

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(6, pt_start_task_fds(space, 6, "leave_a_guest", 0, fds[0], &pid));
	EXPECT_EQ(0, pt_wait(pid));
	EXPECT_EQ(1, pvas_task_list(space, NULL, 0));
	EXPECT_EQ(-EBUSY, pvas_task_spawn(space, 6, pt_self(), pt_task_argv("succeed"), environ,
					  NULL,
					  &other));
	ASSERT_EQ(1, write(fds[1], "g", 1));
	ASSERT_LT(0, wait(&status));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	EXPECT_EQ(6, pvas_task_spawn(space, 6, pt_self(), pt_task_argv("succeed"), environ, NULL,
				     &other));
	EXPECT_EQ(0, pt_wait(other));
	pvas_space_destroy(space);
}

PT_MAIN()
