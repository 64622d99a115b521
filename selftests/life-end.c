// SPDX-License-Identifier: GPL-2.0-only
/* The end of a task, by itself, by a signal or by a crash: its partition is free again. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

/* wait() has returned: the partition is free, its memory gone; 60 times */
MODULE_TEST(wait_means_free, "a partition is free a moment later")
{
	struct pvas_space *space = PT_SPACE();
	long before, after;
	pid_t pid;
	int i;

	before = pt_resident_kib();
	for (i = 0; i < 60; i++) {
		ASSERT_EQ(2, pvas_task_spawn(space, 2, pt_self(), pt_task_argv("dirty"), environ,
					     NULL,
					     &pid)) TH_LOG("round %d", i);
		ASSERT_EQ(0, pt_wait(pid)) TH_LOG("round %d", i);
		ASSERT_EQ(0, pvas_task_list(space, NULL, 0)) TH_LOG("round %d", i);
	}
	after = pt_resident_kib();
	EXPECT_LE(0, before);
	EXPECT_GT(before + 512, after);
	pvas_space_destroy(space);
}

/* the same if it is killed, anywhere between spawn and exit */
PVAS_TEST(kill_at_any_time)
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid;
	int i, ret;

	for (i = 0; i < 60; i++) {
		ret = pvas_task_spawn(space, 2, pt_self(), pt_task_argv("dirty"), environ, NULL,
				      &pid);
		ASSERT_EQ(2, ret) TH_LOG("round %d", i);
		usleep(i * 300 % 20000);
		kill(pid, SIGKILL);
		ret = pt_wait(pid);
		ASSERT_TRUE(ret == 0 || ret == 256 + SIGKILL) TH_LOG("round %d: %d", i, ret);
		ASSERT_EQ(0, pvas_task_list(space, NULL, 0)) TH_LOG("round %d", i);
	}
	pvas_space_destroy(space);
}

TASK(crash_segv)
{
	static int *volatile nowhere = (int *)8;

	*nowhere = 1;
}

TASK(crash_ill)
{
	__asm__ volatile("ud2");
}

TASK(crash_abort)
{
	abort();
}

static int cores(void *arg)
{
	struct rlimit limit = { (long)arg, (long)arg };

	return setrlimit(RLIMIT_CORE, &limit) || chdir("/tmp") ? -errno : 0;
}

/* crashes end the task alone; its peer lives */
PVAS_TEST(crash)
{
	static const struct { const char *name; int status; } crashes[] = {
		{ "crash_segv", 256 + SIGSEGV }, { "crash_ill", 256 + SIGILL },
		{ "crash_abort", 256 + SIGABRT },
	};
	struct pvas_space *space = PT_SPACE();
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = cores };
	pid_t pid, peer;
	int fds[2];
	size_t i;

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(1, pt_start_task_fds(space, 1, "ready_and_pause", fds[1], 0, &peer));
	ASSERT_EQ('r', pt_hear(fds[0]));
	for (i = 0; i < PT_ARRAY_SIZE(crashes); i++) {
		ASSERT_EQ(2, pvas_task_spawn(space, 2, pt_self(), pt_task_argv(crashes[i].name),
					     environ,
					     &attr, &pid));
		EXPECT_EQ(crashes[i].status, pt_wait(pid));
		EXPECT_EQ(1, pvas_task_list(space, NULL, 0));
	}
	EXPECT_EQ(0, kill(peer, 0));
	pt_kill(peer);
	pvas_space_destroy(space);
}

/* a core dump of one while a peer runs on */
PVAS_TEST(core_dump)
{
	struct pvas_space *space = PT_SPACE();
	struct pvas_spawn_attr attr = {
		.size = sizeof(attr), .setup = cores, .setup_arg = (void *)(1L << 24),
	};
	pid_t pid, peer;
	int fds[2], status;

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(1, pt_start_task_fds(space, 1, "ready_and_pause", fds[1], 0, &peer));
	ASSERT_EQ('r', pt_hear(fds[0]));
	ASSERT_EQ(2, pvas_task_spawn(space, 2, pt_self(), pt_task_argv("crash_abort"), environ,
				     &attr,
				     &pid));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGABRT, WTERMSIG(status));
	EXPECT_EQ(1, pvas_task_list(space, NULL, 0));
	EXPECT_EQ(0, kill(peer, 0));
	EXPECT_EQ(0, waitpid(peer, &status, WNOHANG));
	pt_kill(peer);
	pvas_space_destroy(space);
}

#define SECRET_LEN	(8 << 20)

TASK(hold_8_mib)
{
	char *p = mmap(NULL, SECRET_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	memset(p, 's', SECRET_LEN);
	pt_say("r");
	pause();
}

/* With no descriptor free for the program, exec fails after the task has the space's mm. */
static int core_and_no_descriptor(void *arg)
{
	struct rlimit none = { 0, 0 };

	return cores(arg) ?: setrlimit(RLIMIT_NOFILE, &none) ? -errno : 0;
}

/* the core file of a task whose exec fails in the space does not hold its peers' memory */
MODULE_TEST(core_of_a_failed_exec, "a task has its own core filter")
{
	static const char pattern[] = "/proc/sys/kernel/core_pattern";
	struct pvas_spawn_attr attr = {
		.size = sizeof(attr), .setup = core_and_no_descriptor,
		.setup_arg = (void *)(1L << 26),
	};
	struct pvas_space *space = PT_SPACE();
	char old[256], path[128];
	struct stat core = { .st_size = -1 };
	pid_t pid, peer;
	int fds[2];

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_read_file(pattern, old, sizeof(old)));
	snprintf(path, sizeof(path), "%s/core", pt_tmpdir());
	ASSERT_EQ(0, pt_write_file(pattern, path));
	ASSERT_EQ(0, pipe(fds));
	EXPECT_EQ(1, pt_start_task_fds(space, 1, "hold_8_mib", fds[1], 0, &peer));
	EXPECT_EQ('r', pt_hear(fds[0]));
	EXPECT_EQ(2, pvas_task_spawn(space, 2, pt_self(), pt_task_argv("succeed"), environ, &attr,
				     &pid));
	EXPECT_EQ(256 + SIGSEGV, pt_wait(pid));
	EXPECT_EQ(0, pt_write_file(pattern, old));
	/* Before 5.16 a task has none. */
	EXPECT_EQ(pt_kernel_before(5, 16) ? -1 : 0, stat(path, &core));
	EXPECT_TRUE(core.st_blocks > 0 || pt_kernel_before(5, 16));
	/* Not the size: partition 0 is large, and most of it was never written. */
	EXPECT_GT(SECRET_LEN, core.st_blocks * 512);
	EXPECT_EQ(1, pvas_task_list(space, NULL, 0));
	pt_kill(peer);
	pvas_space_destroy(space);
}

/* When the test says so: the usual work of a program, with children, memory, the heap. */
TASK(goes_on)
{
	pid_t pid;
	char *p;

	pt_say("r");
	CHECK_EQ('g', pt_hear(atoi(pt_args[1])));
	p = malloc(8 << 20);
	CHECK(p);
	memset(p, 1, 8 << 20);
	pid = fork();
	if (!pid)
		_exit(p[4711]);
	CHECK_EQ(1, pt_wait(pid));
	CHECK_EQ(0, system("exit 0"));
	_exit(5);
}

/* the first task, which is the mm's owner and names its program, ends before the others */
PVAS_TEST(first_task_ends_first)
{
	struct pvas_space *space = PT_SPACE();
	int ready[2], go[2], i;
	pid_t pids[3];

	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(go));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(i + 1, pt_start_task_fds(space, i + 1, "goes_on", ready[1], go[0],
						   &pids[i]));
		ASSERT_EQ('r', pt_hear(ready[0]));
	}
	kill(pids[0], SIGKILL);
	EXPECT_EQ(256 + SIGKILL, pt_wait(pids[0]));
	/* Somebody else gets its place. */
	ASSERT_EQ(1, pt_start_task_fds(space, 1, "goes_on", ready[1], go[0], &pids[0]));
	ASSERT_EQ('r', pt_hear(ready[0]));
	ASSERT_EQ(3, write(go[1], "ggg", 3));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(5, pt_wait(pids[i]));
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	pvas_space_destroy(space);
}

#define LARGE (512UL << 20)	/* 32 of the slices in which the module unmaps */

TASK(large)
{
	char *p = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	madvise(p, LARGE, MADV_NOHUGEPAGE);
	memset(p, 1, LARGE);
	pt_say("r");
	pause();
}

/* Is some of the large task's memory gone, and some not? The mm is everybody's. */
static bool partly_freed(void)
{
	char line[64];
	long pages;

	if (pt_read_file("/proc/self/statm", line, sizeof(line)) ||
	    sscanf(line, "%*d %ld", &pages) != 1)
		return false;
	return pages > (long)(LARGE / 4096 / 10) && pages < (long)(LARGE / 4096 / 10 * 9);
}

/*
 * Calls that take the mmap lock begin and end while task 1 is being freed. There is one
 * such task on each processor: an emulator runs processors in turn, 0.1 s each, so one
 * task alone might see none of it.
 */
TASK(maps_meanwhile)
{
	struct pvas_task_info info = { .state = PVAS_TASK_RUNNING };
	char text[2] = "0";
	cpu_set_t cpu;
	bool partly;
	void *p;

	CPU_ZERO(&cpu);
	CPU_SET(pvas_task_get_index() - 2, &cpu);
	/* Where there is no such processor, anywhere */
	sched_setaffinity(0, sizeof(cpu), &cpu);
	pt_say("r");
	while (info.state != PVAS_TASK_FREE) {
		partly = partly_freed();
		p = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED && !munmap(p, 65536));
		if (partly && partly_freed() && text[0] < '9')
			text[0]++;
		CHECK_EQ(0, pvas_task_get(1, &info));
	}
	pt_say(text);
}

#define MAPPERS 2

/* a large task's end does not hold up its peers' mappings until all is freed */
MODULE_TEST(large_end, "a partition has an mm of its own")
{
	struct pvas_space *space = PT_SPACE();
	pid_t large, other[MAPPERS];
	int ready[2], i, times = 0;

	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(1, pt_start_task_fds(space, 1, "large", ready[1], 0, &large));
	ASSERT_EQ('r', pt_hear(ready[0]));
	for (i = 0; i < MAPPERS; i++) {
		ASSERT_EQ(2 + i, pt_start_task_fds(space, 2 + i, "maps_meanwhile", ready[1], 0,
						   &other[i]));
		ASSERT_EQ('r', pt_hear(ready[0]));
	}
	pt_kill(large);
	for (i = 0; i < MAPPERS; i++) {
		EXPECT_EQ(0, pt_wait(other[i]));
		times += pt_hear(ready[0]) - '0';
	}
	EXPECT_LE(3, times);
	pvas_space_destroy(space);
}

#define EDGE (64UL << 10)
#define NEXT (48UL << 20)

/* areas as near to the border as may be end without the neighbour's, which they don't touch */
MODULE_TEST(areas_of_neighbours, "uses the ABI")
{
	unsigned long border = 2UL << PVAS_SHIFT_DEFAULT, at;
	unsigned long first = border + 4096, last = border - 4096 - EDGE;
	long args[6] = { border, NEXT, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0 };
	struct pt_raw raw;
	pid_t below, above;
	char c;

	ASSERT_EQ(0, pt_raw_make(&raw));
	below = pt_raw_spawn(&raw, 1);
	above = pt_raw_spawn(&raw, 2);
	ASSERT_LT(0, below);
	ASSERT_LT(0, above);
	EXPECT_EQ(-ENOMEM, pt_raw_call_args(&raw, 2, SYS_mmap, args));
	args[0] = first;
	ASSERT_EQ((long)first, pt_raw_call_args(&raw, 2, SYS_mmap, args));
	for (at = first; at < first + NEXT; at += 4096) {
		ASSERT_EQ(1, pwrite(raw.mem, "x", 1, at));
	}
	args[0] = border - EDGE;
	args[1] = EDGE;
	EXPECT_EQ(-ENOMEM, pt_raw_call_args(&raw, 1, SYS_mmap, args));
	args[0] = last;
	ASSERT_EQ((long)last, pt_raw_call_args(&raw, 1, SYS_mmap, args));
	EXPECT_EQ(0, pt_raw_call(&raw, 1, SYS_mlock, last, EDGE));
	EXPECT_LE((long)EDGE / 1024, pt_status_kib(below, "VmLck:"));
	EXPECT_EQ(0, pt_raw_call(&raw, 1, SYS_munlock, last, EDGE));
	pt_kill(below);
	for (at = first; at < first + NEXT; at += 4096) {
		c = 0;
		EXPECT_TRUE(pread(raw.mem, &c, 1, at) == 1 && c == 'x')
			TH_LOG("at %#lx", at);
		if (c != 'x')
			break;
	}
	pt_kill(above);
	pt_raw_close(&raw);
}

PT_MAIN()
