// SPDX-License-Identifier: GPL-2.0
/*
 * The life of tasks and spaces: who holds a partition, when it is free again,
 * and what is left when somebody is killed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/kcmp.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

extern char **environ;

static struct pvas_space *space_with(struct __test_metadata *_metadata, uint64_t partition,
				     unsigned int flags)
{
	struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = pt_backend(), .partition_size = partition,
		.flags = flags,
	};
	struct pvas_space *space = NULL;

	ASSERT_EQ(0, pvas_create(&space, &attr)) TH_LOG("%s", pvas_last_error());
	return space;
}

static struct pvas_space *new_space(struct __test_metadata *_metadata)
{
	return space_with(_metadata, 0, 0);
}

static void say(const char *what)
{
	CHECK_EQ(1, write(atoi(pt_args[0]), what, 1));
}

static char hear(int fd)
{
	char c;

	return read(fd, &c, 1) == 1 ? c : 0;
}

/* How many the space has at once; waits up to a second for @want. */
static int tasks_soon(struct pvas_space *space, int want)
{
	int tries = 100, n;

	while ((n = pvas_tasks(space, NULL, 0)) != want && tries--)
		usleep(10000);
	return n;
}

TASK(nothing)
{
}

TASK(ready_and_pause)
{
	say("r");
	pause();
}

TASK(dirty)
{
	char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	/* What the last one stored here is not there any more. */
	CHECK_EQ(0, p[4095]);
	memset(p, 1, 1 << 20);
	free(malloc(1 << 20));
}

static long rss_kib(void)
{
	char line[256];
	long kib = -1;
	char *at;

	if (!pt_read_file("/proc/pvas", line, sizeof(line)) && (at = strstr(line, "rss_kib ")))
		kib = atol(at + 8);
	return kib;
}

/* wait() has returned: the partition is free, its memory gone; 60 times */
MODULE_TEST(wait_means_free, "a partition is free a moment later")
{
	struct pvas_space *space = new_space(_metadata);
	long before, after;
	pid_t pid;
	int i;

	before = rss_kib();
	for (i = 0; i < 60; i++) {
		ASSERT_EQ(2, pvas_spawn(space, 2, pt_self(), pt_task_argv("dirty"), environ, NULL,
					&pid)) TH_LOG("round %d", i);
		ASSERT_EQ(0, pt_wait(pid)) TH_LOG("round %d", i);
		ASSERT_EQ(0, pvas_tasks(space, NULL, 0)) TH_LOG("round %d", i);
	}
	after = rss_kib();
	EXPECT_LE(0, before);
	EXPECT_GT(before + 512, after);
	pvas_destroy(space);
}

/* the same if it is killed, anywhere between spawn and exit */
PVAS_TEST(kill_at_any_time)
{
	struct pvas_space *space = new_space(_metadata);
	pid_t pid;
	int i, ret;

	for (i = 0; i < 60; i++) {
		ret = pvas_spawn(space, 2, pt_self(), pt_task_argv("dirty"), environ, NULL, &pid);
		ASSERT_EQ(2, ret) TH_LOG("round %d", i);
		usleep(i * 300 % 20000);
		kill(pid, SIGKILL);
		ret = pt_wait(pid);
		ASSERT_TRUE(ret == 0 || ret == 256 + SIGKILL) TH_LOG("round %d: %d", i, ret);
		ASSERT_EQ(0, pvas_tasks(space, NULL, 0)) TH_LOG("round %d", i);
	}
	pvas_destroy(space);
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
	struct pvas_space *space = new_space(_metadata);
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = cores };
	pid_t pid, peer;
	int fds[2];
	size_t i;

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(1, pt_start_task_fds(space, 1, "ready_and_pause", fds[1], 0, &peer));
	ASSERT_EQ('r', hear(fds[0]));
	for (i = 0; i < PT_ARRAY_SIZE(crashes); i++) {
		ASSERT_EQ(2, pvas_spawn(space, 2, pt_self(), pt_task_argv(crashes[i].name), environ,
					&attr, &pid));
		EXPECT_EQ(crashes[i].status, pt_wait(pid));
		EXPECT_EQ(1, pvas_tasks(space, NULL, 0));
	}
	EXPECT_EQ(0, kill(peer, 0));
	pt_kill(peer);
	pvas_destroy(space);
}

/* a core dump of one while a peer runs on */
PVAS_TEST(core_dump)
{
	struct pvas_space *space = new_space(_metadata);
	struct pvas_spawn_attr attr = {
		.size = sizeof(attr), .setup = cores, .setup_arg = (void *)(1L << 24),
	};
	pid_t pid, peer;
	int fds[2], status;

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(1, pt_start_task_fds(space, 1, "ready_and_pause", fds[1], 0, &peer));
	ASSERT_EQ('r', hear(fds[0]));
	ASSERT_EQ(2, pvas_spawn(space, 2, pt_self(), pt_task_argv("crash_abort"), environ, &attr,
				&pid));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGABRT, WTERMSIG(status));
	EXPECT_EQ(1, pvas_tasks(space, NULL, 0));
	EXPECT_EQ(0, kill(peer, 0));
	EXPECT_EQ(0, waitpid(peer, &status, WNOHANG));
	pt_kill(peer);
	pvas_destroy(space);
}

/* ---- children ---- */

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
		CHECK_EQ(-ESRCH, pvas_self());
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
	CHECK(pvas_self() > 0);
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
	struct pvas_space *space = new_space(_metadata);
	pid_t pid, peer;
	int fds[2];

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(4, pt_start_task_fds(space, 4, "ready_and_pause", fds[1], 0, &peer));
	ASSERT_EQ('r', hear(fds[0]));
	ASSERT_EQ(5, pt_start_task_fds(space, 5, "fork_and_look", 0, 0, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	pt_kill(peer);
	pvas_destroy(space);
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
	CHECK(pvas_self() > 0);
	CHECK(pt_inside(malloc(1 << 22), 1 << 22));
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
	struct pvas_space *space = new_space(_metadata);
	int fds[2], status;
	pid_t pid, other;

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(6, pt_start_task_fds(space, 6, "leave_a_guest", 0, fds[0], &pid));
	EXPECT_EQ(0, pt_wait(pid));
	EXPECT_EQ(1, pvas_tasks(space, NULL, 0));
	EXPECT_EQ(-EBUSY, pvas_spawn(space, 6, pt_self(), pt_task_argv("nothing"), environ, NULL,
				     &other));
	ASSERT_EQ(1, write(fds[1], "g", 1));
	ASSERT_LT(0, wait(&status));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, pvas_tasks(space, NULL, 0));
	EXPECT_EQ(6, pvas_spawn(space, 6, pt_self(), pt_task_argv("nothing"), environ, NULL,
				&other));
	EXPECT_EQ(0, pt_wait(other));
	pvas_destroy(space);
}

/* ---- threads ---- */

static void *count_thread(void *arg)
{
	__atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
	CHECK(pt_inside(&arg, sizeof(arg)));
	return malloc(100);
}

TASK_TEST(threads_64)
{
	pthread_t t[64];
	int n = 0, i;
	void *p;

	for (i = 0; i < 64; i++)
		CHECK_EQ(0, pthread_create(&t[i], NULL, count_thread, &n));
	for (i = 0; i < 64; i++) {
		CHECK_EQ(0, pthread_join(t[i], &p));
		CHECK(pt_inside(p, 100));
	}
	CHECK_EQ(64, n);
}

static void *last_thread(void *arg)
{
	char *p;

	usleep(200000);
	p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!pt_inside(p, 1 << 20) || munmap((void *)(pt_base() - 4096), 4096) != -1)
		_exit(1);
	memset(p, 1, 1 << 20);
	_exit(21);
	return arg;
}

/* the leader ends first: the task lives on with its thread, bounded as ever */
TASK(leader_goes_first)
{
	pthread_t t;

	CHECK_EQ(0, pthread_create(&t, NULL, last_thread, NULL));
	pthread_exit(NULL);
}

PVAS_TEST(leader_exits_first)
{
	EXPECT_EQ(21, pt_run_task("leader_goes_first"));
}

static void *idle_thread(void *arg)
{
	pause();
	return arg;
}

static void *exec_from_thread(void *arg)
{
	execl("/bin/sh", "sh", "-c", "exit 17", (char *)NULL);
	_exit(99);
	return arg;
}

TASK(thread_execs)
{
	pthread_t t;
	int i;

	for (i = 0; i < 4; i++)
		CHECK_EQ(0, pthread_create(&t, NULL, idle_thread, NULL));
	CHECK_EQ(0, pthread_create(&t, NULL, exec_from_thread, NULL));
	pause();
}

/* a thread, not the leader, execs out of the space */
PVAS_TEST(exec_by_a_thread)
{
	struct pvas_space *space = new_space(_metadata);
	pid_t pid;
	int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(1, pt_start_task_fds(space, 1, "thread_execs", 0, 0, &pid));
		EXPECT_EQ(17, pt_wait(pid));
		EXPECT_EQ(0, pvas_tasks(space, NULL, 0));
	}
	pvas_destroy(space);
}

/* a task killed with all its threads in the middle of things */
static void *busy_thread(void *arg)
{
	for (;;) {
		void *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		memset(p, 1, 65536);
		munmap(p, 65536);
	}
	return arg;
}

TASK(busy_threads)
{
	pthread_t t;
	int i;

	for (i = 0; i < 8; i++)
		CHECK_EQ(0, pthread_create(&t, NULL, busy_thread, NULL));
	say("r");
	pause();
}

PVAS_TEST(kill_busy_threads)
{
	struct pvas_space *space = new_space(_metadata);
	int fds[2], i;
	pid_t pid;

	ASSERT_EQ(0, pipe(fds));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, pt_start_task_fds(space, 1, "busy_threads", fds[1], 0, &pid));
		ASSERT_EQ('r', hear(fds[0]));
		usleep(i * 1000);
		pt_kill(pid);
		ASSERT_EQ(0, pvas_tasks(space, NULL, 0));
	}
	pvas_destroy(space);
}

/* ---- many ---- */

/* 60 tasks at once, in one mm; all of them then end */
PVAS_TEST(many_tasks)
{
	enum { N = 60 };
	struct pvas_space *space = space_with(_metadata, 16UL << 30, 0);
	static struct pvas_task_info info[N + 1];
	static pid_t pid[N];
	int fds[2], i;

	ASSERT_EQ(0, pipe(fds));
	for (i = 0; i < N; i++) {
		ASSERT_LT(0, pt_start_task_fds(space, PVAS_ANY, "ready_and_pause", fds[1], 0,
			&pid[i]));
	}
	for (i = 0; i < N; i++) {
		ASSERT_EQ('r', hear(fds[0]));
	}
	ASSERT_EQ(N, pvas_tasks(space, info, PT_ARRAY_SIZE(info)));
	for (i = 0; i < N; i++) {
		EXPECT_EQ(PVAS_TASK_RUNNING, info[i].state);
		EXPECT_EQ(0, syscall(SYS_kcmp, pid[0], pid[i], KCMP_VM, 0, 0));
	}
	for (i = 0; i < N; i++)
		kill(pid[i], SIGKILL);
	for (i = 0; i < N; i++) {
		EXPECT_EQ(256 + SIGKILL, pt_wait(pid[i]));
	}
	EXPECT_EQ(0, pvas_tasks(space, NULL, 0));
	pvas_destroy(space);
}

/* one mm among tasks, none with the launcher or another space */
MODULE_TEST(kcmp, "one space a process")
{
	struct pvas_space *space = new_space(_metadata), *other = new_space(_metadata);
	pid_t pid[3];
	int fds[2], i;

	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(1, pt_start_task_fds(space, 1, "ready_and_pause", fds[1], 0, &pid[0]));
	ASSERT_EQ(2, pt_start_task_fds(space, 2, "ready_and_pause", fds[1], 0, &pid[1]));
	ASSERT_EQ(1, pt_start_task_fds(other, 1, "ready_and_pause", fds[1], 0, &pid[2]));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ('r', hear(fds[0]));
	}
	EXPECT_EQ(0, syscall(SYS_kcmp, pid[0], pid[1], KCMP_VM, 0, 0));
	EXPECT_NE(0, syscall(SYS_kcmp, pid[0], pid[2], KCMP_VM, 0, 0));
	EXPECT_NE(0, syscall(SYS_kcmp, pid[0], getpid(), KCMP_VM, 0, 0));
	for (i = 0; i < 3; i++)
		pt_kill(pid[i]);
	pvas_destroy(space);
	pvas_destroy(other);
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
		ASSERT_EQ('a', hear(fds[0]));
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

/* ---- launchers ---- */

static void launcher(unsigned int flags, int n, int fd)
{
	struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = pt_backend(), .flags = flags,
	};
	struct pvas_space *space;
	pid_t pid;
	int i;

	if (pvas_create(&space, &attr))
		_exit(1);
	for (i = 0; i < n; i++) {
		if (pt_start_task_fds(space, PVAS_ANY, "ready_and_pause", fd, 0, &pid) < 0)
			_exit(2);
		if (write(fd, &pid, sizeof(pid)) != sizeof(pid))
			_exit(3);
	}
	pause();
}

/* The kernel's: a user backend's is gone when its processes are. */
static int spaces(void)
{
	struct pvas_info info = { .size = sizeof(info) };
	int fd, err;

	if (pt_backend() == PVAS_BACKEND_USER)
		return 0;
	fd = pt_open();
	err = pt_ioctl(fd, PVAS_IOC_INFO, &info);
	close(fd);
	return err ? err : (int)info.spaces;
}

/* Waits for up to 5 s. */
static bool spaces_gone(void)
{
	int tries = 500;

	while (spaces() && tries--)
		usleep(10000);
	return spaces() == 0;
}

/* the launcher killed: its tasks go, the space goes */
PVAS_TEST(launcher_killed)
{
	pid_t pid, task[8];
	int fds[2], i, tries;

	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	if (!pid)
		launcher(0, 8, fds[1]);
	/* "r"s come in between. */
	for (i = 0; i < 8; i++) {
		char c[sizeof(pid_t)];
		size_t got = 0;

		while (got < sizeof(c)) {
			ASSERT_EQ(1, read(fds[0], &c[got], 1));
			if (got || c[0] != 'r')
				got++;
		}
		memcpy(&task[i], c, sizeof(c));
	}
	EXPECT_EQ(pt_backend() == PVAS_BACKEND_KERNEL, spaces());
	pt_kill(pid);
	for (i = 0; i < 8; i++) {
		for (tries = 0; tries < 500 && !kill(task[i], 0); tries++)
			usleep(10000);
		EXPECT_EQ(-1, kill(task[i], 0));
	}
	EXPECT_TRUE(spaces_gone());
}

/* made with KEEP: the tasks outlive their launcher */
MODULE_TEST(launcher_killed_tasks_kept, "tasks end with the launcher")
{
	pid_t pid, task = 0;
	int fds[2];

	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	if (!pid)
		launcher(PVAS_KEEP_ON_CLOSE, 1, fds[1]);
	while (task == 0) {
		char c[sizeof(pid_t)];

		ASSERT_EQ(1, read(fds[0], c, 1));
		if (c[0] == 'r')
			continue;
		ASSERT_EQ(3, read(fds[0], c + 1, 3));
		memcpy(&task, c, sizeof(c));
	}
	pt_kill(pid);
	usleep(100000);
	EXPECT_EQ(0, kill(task, 0));
	EXPECT_EQ(1, spaces());
	kill(task, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, pt_wait(task));
	EXPECT_TRUE(spaces_gone());
}

/* a task is a launcher too: a space of its own, with tasks */
TASK(nest)
{
	struct pvas_create_attr attr = { .size = sizeof(attr), .backend = pt_backend() };
	struct pvas_space *space;
	pid_t pid[4];
	int i;

	CHECK_EQ(0, pvas_create(&space, &attr));
	if (pt_failed) {
		fprintf(stderr, "# %s\n", pvas_last_error());
		return;
	}
	for (i = 0; i < 4; i++)
		CHECK((pid[i] = pt_start_task(space, PVAS_ANY, "dirty")) > 0);
	for (i = 0; i < 4; i++)
		CHECK_EQ(0, pt_wait(pid[i]));
	CHECK_EQ(0, pvas_tasks(space, NULL, 0));
	CHECK_EQ(0, pvas_destroy(space));
}

MODULE_TEST(nested_spaces, "a task can't make a space")
{
	EXPECT_EQ(0, pt_run_task("nest"));
	EXPECT_TRUE(spaces_gone());
}

/* the module can't be removed while there is a space */
MODULE_TEST(rmmod, "there is no module")
{
	struct pvas_space *space;

	PT_NEED_ROOT();
	space = new_space(_metadata);
	EXPECT_EQ(-1, syscall(SYS_delete_module, "pvas", O_NONBLOCK));
	EXPECT_EQ(EWOULDBLOCK, errno);
	EXPECT_EQ(0, pt_run_task("nothing"));
	pvas_destroy(space);
}

/* ---- what the kernel still does for a task ---- */

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
	struct pvas_space *space = new_space(_metadata);
	pid_t pid;
	int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(1, pt_start_task_fds(space, 1, "use_io_uring", 0, 0, &pid));
		EXPECT_EQ(0, pt_wait(pid));
		EXPECT_EQ(0, tasks_soon(space, 0));
	}
	pvas_destroy(space);
}

/* a mutex in one task's memory, used by another: both are in one mm */
static int futex_word;

TASK(futex_sleeper)
{
	struct timespec limit = { .tv_sec = 20 };

	CHECK_EQ(0, pvas_export("word", &futex_word));
	while (!__atomic_load_n(&futex_word, __ATOMIC_SEQ_CST))
		if (syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0) &&
		    errno == ETIMEDOUT)
			break;
	CHECK_EQ(1, futex_word);
}

TASK(futex_waker)
{
	void *word;

	CHECK(pvas_import_wait(PVAS_ANY, "word", 20000, &word) > 0);
	CHECK(!pt_inside(word, 4));
	usleep(50000);
	__atomic_store_n((int *)word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

PVAS_TEST(futex_between_tasks)
{
	struct pvas_space *space = new_space(_metadata);
	pid_t pid[2];

	pid[0] = pt_start_task(space, PVAS_ANY, "futex_sleeper");
	pid[1] = pt_start_task(space, PVAS_ANY, "futex_waker");
	ASSERT_LT(0, pid[0]);
	ASSERT_LT(0, pid[1]);
	EXPECT_EQ(0, pt_wait(pid[0]));
	EXPECT_EQ(0, pt_wait(pid[1]));
	pvas_destroy(space);
}

/* ---- cgroups ---- */

/* Any directory will do: only the test itself sees what is mounted there. */
static const char cg_root[] = "/mnt";

/*
 * A cgroup2 hierarchy, mounted where only this test sees it and gone with it;
 * and in it a group @name.
 */
static int make_cgroup(const char *name, char *path, size_t len)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", cg_root, "cgroup2", 0, NULL))
		return -errno;
	snprintf(path, len, "%s/%s", cg_root, name);
	return mkdir(path, 0755) && errno != EEXIST ? -errno : 0;
}

static const char *cg_file(const char *group, const char *file)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", group, file);
	return path;
}

static void remove_cgroup(const char *group)
{
	int tries = 100;

	while (rmdir(group) && tries--)
		usleep(20000);
}

static int enter_cgroup(void *arg)
{
	return pt_write_file(cg_file(arg, "cgroup.procs"), "0");
}

TASK(use_32_mib)
{
	char *p = mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 1, 32 << 20);
	say("r");
	pause();
}

static long read_number(const char *path)
{
	char buf[64];

	return pt_read_file(path, buf, sizeof(buf)) ? -1 : atol(buf);
}

/* a task's memory is charged to its cgroup, the first one's and a later one's */
MODULE_TEST(memory_cgroup, "all of a space is the launcher's memory")
{
	struct pvas_space *space = new_space(_metadata);
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = enter_cgroup };
	char group[128], fd[16];
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)"use_32_mib", fd, NULL };
	int fds[2], round;
	pid_t pid;

	PT_NEED_ROOT();
	if (make_cgroup("mem", group, sizeof(group)))
		SKIP(return, "no cgroup2");
	if (pt_write_file(cg_file(cg_root, "cgroup.subtree_control"), "+memory"))
		SKIP(return, "no memory controller in cgroup2");
	ASSERT_EQ(0, pipe(fds));
	snprintf(fd, sizeof(fd), "%d", fds[1]);
	attr.setup_arg = group;
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(1, pvas_spawn(space, 1, pt_self(), argv, environ, &attr, &pid));
		ASSERT_EQ('r', hear(fds[0]));
		EXPECT_LE(32 << 20, read_number(cg_file(group, "memory.current")));
		pt_kill(pid);
		EXPECT_GT(16 << 20, read_number(cg_file(group, "memory.current")));
	}
	pvas_destroy(space);
	remove_cgroup(group);
}

TASK(exec_storm)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)":", NULL };

	say("r");
	for (;;)
		run_vfork(argv);
}

static void spawn_storm(void *group, int fd)
{
	struct pvas_create_attr attr = { .size = sizeof(attr), .backend = pt_backend() };
	struct pvas_space *space;
	pid_t pid;

	if (enter_cgroup(group) || write(fd, "r", 1) != 1 || pvas_create(&space, &attr))
		_exit(1);
	for (;;) {
		pid = pt_start_task(space, PVAS_ANY, "nothing");
		if (pid > 0)
			pt_wait(pid);
	}
}

/* cgroup.kill in the middle of spawns and execs: nobody gets away */
PVAS_TEST(cgroup_kill)
{
	char group[128], line[64];
	int fds[2], round, i, tries;
	pid_t pid[2];

	PT_NEED_ROOT();
	if (make_cgroup("kill", group, sizeof(group)))
		SKIP(return, "no cgroup2");
	ASSERT_EQ(0, pipe(fds));
	for (round = 0; round < 8; round++) {
		for (i = 0; i < 2; i++) {
			pid[i] = fork();
			if (!pid[i])
				spawn_storm(group, fds[1]);
		}
		for (i = 0; i < 2; i++) {
			ASSERT_EQ('r', hear(fds[0]));
		}
		usleep(200000 + round * 5000);
		ASSERT_EQ(0, pt_write_file(cg_file(group, "cgroup.kill"), "1"));
		for (i = 0; i < 2; i++) {
			EXPECT_EQ(256 + SIGKILL, pt_wait(pid[i]));
		}
		for (tries = 0; tries < 300; tries++) {
			line[0] = '\0';
			pt_read_file(cg_file(group, "cgroup.procs"), line, sizeof(line));
			if (!line[0])
				break;
			usleep(10000);
		}
		ASSERT_STREQ("", line) TH_LOG("round %d", round);
	}
	EXPECT_TRUE(spaces_gone());
	remove_cgroup(group);
}

/* tasks whose children exec without end, killed: the space goes */
PVAS_TEST(kill_exec_storm)
{
	struct pvas_space *space = new_space(_metadata);
	pid_t pid[4];
	int fds[2], i;

	ASSERT_EQ(0, pipe(fds));
	for (i = 0; i < 4; i++) {
		ASSERT_LT(0, pt_start_task_fds(space, PVAS_ANY, "exec_storm", fds[1], 0, &pid[i]));
	}
	for (i = 0; i < 4; i++) {
		ASSERT_EQ('r', hear(fds[0]));
	}
	usleep(500000);
	pvas_destroy(space);
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(256 + SIGKILL, pt_wait(pid[i]));
	}
	EXPECT_TRUE(spaces_gone());
}

/* ---- the library's view ---- */

TASK_TEST(queries)
{
	struct pvas_task_info info;
	unsigned int first, last;
	uint64_t size;
	void *base;
	size_t len;

	CHECK_EQ(0, pvas_bounds_of(NULL, &first, &last, &size));
	CHECK_EQ(64UL << 30, size);
	CHECK(first <= (unsigned int)pvas_self() && (unsigned int)pvas_self() <= last);
	CHECK_EQ(0, pvas_partition(pvas_self(), &base, &len));
	CHECK_EQ(size, len);
	CHECK(pt_inside(&info, sizeof(info)));
	CHECK_EQ(pvas_self(), pvas_task_at(&info));
	CHECK_EQ(pvas_self(), pvas_task_at((void *)&task_body_queries));
	CHECK_EQ(-ENOENT, pvas_task_at((void *)(pt_base() + pt_size())));
	CHECK_EQ(0, pvas_task(pvas_self(), &info));
	CHECK_EQ(getpid(), info.pid);
	CHECK_EQ(PVAS_TASK_RUNNING, info.state);
	CHECK_EQ(-EINVAL, pvas_task(0x7fffffff, &info));
	CHECK_EQ(1, pvas_tasks(NULL, &info, 1));
	CHECK_EQ(getpid(), info.pid);
	CHECK(pvas_space_id() != 0);
}

PT_MAIN()
