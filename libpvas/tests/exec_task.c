// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prepares something and execs itself: run by tests/execs.c as a task. The program checks
 * whether it is a task still; a status of 0 means that it was right.
 */
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "pvas.h"
#include "task_check.h"

#define SKIPPED		77
#define STACK		65536
#define ENABLE_ON_EXEC	(1ULL << 12)
/* Older headers lack these. */
#define REMOVE_ON_EXEC	(1ULL << 36)
#define SIGTRAP_BIT	(1ULL << 37)

static char stacks[2][STACK] __attribute__((aligned(64)));

static char *top(int i)
{
	return stacks[i] + STACK - 64;
}

static void rest(void)
{
	const struct timespec t = { 0, 300000000 };

	syscall(SYS_nanosleep, &t, NULL);
}

/* ---- others with the memory of the task, which it does not wait for ---- */

static int rest_and_end(void *arg)
{
	rest();
	syscall(SYS_exit_group, arg ? 1 : 0);
	return 0;
}

static int make_thread(void *arg)
{
	clone(rest_and_end, top(1),
	      CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_FS | CLONE_FILES, arg);
	syscall(SYS_exit, 0);
	return 0;
}

static int kill_and_rest(void *arg)
{
	(void)arg;
	syscall(SYS_kill, syscall(SYS_getppid), SIGKILL);
	return rest_and_end(NULL);
}

static int make_child(void *arg)
{
	clone(kill_and_rest, top(1), CLONE_VM | CLONE_VFORK | SIGCHLD, arg);
	return 1;
}

static void run_as_vfork_child(int (*function)(void *))
{
	CHECK(clone(function, top(0), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL) > 0);
}

static void thread_of_child(void)
{
	run_as_vfork_child(make_thread);
}

static void child_of_child(void)
{
	run_as_vfork_child(make_child);
}

/* The same by the call that has no flags */
static void child_by_vfork(void)
{
	if (!vfork()) {
		if (!vfork())
			kill_and_rest(NULL);
		_exit(1);
	}
}

/* ---- what many programs do ---- */

static void ordinary_children(void)
{
	char *argv[] = { "true", NULL };
	pid_t pid;
	int i;

	for (i = 0; i < 3; i++) {
		pid = i == 0 ? vfork() : i == 1 ? fork() : 0;
		if (!pid && i < 2)
			_exit(0);
		if (i == 2)
			CHECK(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0);
		CHECK(waitpid(pid, NULL, 0) == pid);
	}
}

static void nothing(void)
{
}

static void leave(void)
{
	setenv("PVAS_EXEC", "leave", 1);
}

/* ---- perf events ---- */

static void open_event(uint64_t flags)
{
	struct {
		uint32_t type, size;
		uint64_t config, period, sample_type, read_format, flags, rest[20];
	} a = {
		.type = PERF_TYPE_SOFTWARE, .size = 128, .config = PERF_COUNT_SW_PAGE_FAULTS,
		.period = 1, .flags = flags | 1ULL << 5 | 1ULL << 6,	/* not of the kernel */
	};

	if (syscall(SYS_perf_event_open, &a, 0, -1, -1, 0) >= 0)
		return;
	fprintf(stderr, "# no such perf event: %s\n", strerror(errno));
	exit(SKIPPED);
}

static void handle(int sig)
{
	(void)sig;
}

/* Each page fault of the new program, which has no handler, would be a SIGTRAP. */
static void event_with_signal(void)
{
	signal(SIGTRAP, handle);
	open_event(SIGTRAP_BIT | REMOVE_ON_EXEC);
}

static void event_that_begins(void)
{
	open_event(ENABLE_ON_EXEC | 1);
}

static void event_that_counts(void)
{
	open_event(0);
}

/* ---- keys, and a page ---- */

static void add_key(long keyring)
{
	if (syscall(SYS_add_key, "user", "pvas-test", "secret", 6, keyring) < 0)
		exit(SKIPPED);
}

static void key_of_thread(void)
{
	add_key(KEY_SPEC_THREAD_KEYRING);
}

static void key_of_process(void)
{
	add_key(KEY_SPEC_PROCESS_KEYRING);
}

static void page_zero(void)
{
	CHECK(personality(MMAP_PAGE_ZERO) >= 0);
}

/* ---- descriptors that the program has not opened ---- */

#define NUMBERS		64
#define CHILDREN	1500

static int count_open(void)
{
	int fd, n = 0;

	for (fd = 0; fd < NUMBERS; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static const char *not_a_program(void)
{
	static char path[] = "/tmp/exec-task.XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0 && write(fd, "none", 4) == 4 && !fchmod(fd, 0755) && !close(fd));
	return path;
}

/* With each number as the lowest free one */
static void failed_programs(void)
{
	char *argv[] = { (char *)"none", NULL };
	const char *none = not_a_program();
	int fd = 0, before;

	while (fd >= 0 && fd < NUMBERS - 1) {
		before = count_open();
		CHECK(execv("/nonexistent", argv) && count_open() == before);
		CHECK(execv(none, argv) && count_open() == before);
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	unlink(none);
}

static void *try_programs(void *none)
{
	char *argv[] = { (char *)"none", NULL };

	for (;;) {
		execv("/nonexistent", argv);
		execv(none, argv);
	}
	return NULL;
}

/* A child could use them to leave the directory that it confines itself to. */
static void children_beside(void)
{
	char *none = (char *)not_a_program();
	int before = count_open(), i, status;
	pthread_t t;
	pid_t pid;

	CHECK(!pthread_create(&t, NULL, try_programs, none));
	for (i = 0; i < CHILDREN && !failures; i++) {
		pid = fork();
		if (!pid)
			_exit(count_open() != before);
		CHECK(waitpid(pid, &status, 0) == pid && !status);
	}
	unlink(none);
	/* One more beside the thread's would have to leave. */
	_exit(!!failures);
}

/* ---- what children get of peers ---- */

#define PEER_MS		3000
#define LEN		65536

/* Maps and unmaps, and never forks */
static void maps(void)
{
	int64_t end = now_ms() + PEER_MS;
	void *p;

	while (now_ms() < end) {
		p = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		CHECK(p != MAP_FAILED && !munmap(p, LEN));
	}
	_exit(!!failures);
}

/* Is anything mapped in that range? */
static int has_mapping(unsigned long from, unsigned long to)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512];
	int has = !f;

	while (f && fgets(line, sizeof(line), f))
		has |= sscanf(line, "%lx-%lx", &start, &end) == 2 && start < to && end > from;
	return has;
}

/* Of the peer before this one */
static void children_beside_maps(void)
{
	int64_t end = now_ms() + PEER_MS / 2;
	struct pvas_task_info peer;
	unsigned long base;
	int status = 0;
	pid_t pid;

	CHECK(!pvas_task_get((unsigned int)pvas_task_get_index() - 1, &peer));
	base = (unsigned long)peer.base;
	while (now_ms() < end && !failures) {
		pid = fork();
		if (!pid)
			_exit(has_mapping(base, base + peer.length));
		CHECK(waitpid(pid, &status, 0) == pid && !status);
	}
	_exit(!!failures);
}

/* ---- */

static const struct {
	const char *name;
	void (*prepare)(void);
	int stays;
} cases[] = {
	{ "thread_of_child", thread_of_child, 0 },
	{ "child_of_child", child_of_child, 0 },
	{ "child_by_vfork", child_by_vfork, 0 },
	{ "ordinary_children", ordinary_children, 1 },
	{ "nothing", nothing, 1 },
	{ "leave", leave, 0 },
	{ "event_with_signal", event_with_signal, 0 },
	{ "event_that_begins", event_that_begins, 0 },
	{ "event_that_counts", event_that_counts, 1 },
	{ "key_of_thread", key_of_thread, 0 },
	{ "key_of_process", key_of_process, 0 },
	{ "page_zero", page_zero, 0 },
	{ "maps", maps, 1 },
	{ "children_beside_maps", children_beside_maps, 1 },
	{ "failed_programs", failed_programs, 1 },
	{ "children_beside", children_beside, 1 },
};

int main(int argc, char **argv)
{
	char *next[] = { argv[0], NULL, NULL };
	size_t i;

	if (argc == 2 && (!strcmp(argv[1], "task") || !strcmp(argv[1], "no task"))) {
		CHECK((pvas_task_get_index() >= 0) == !strcmp(argv[1], "task"));
		return failures;
	}
	for (i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[1]))
			continue;
		cases[i].prepare();
		if (failures)
			return failures;
		next[1] = cases[i].stays ? "task" : "no task";
		execv(argv[0], next);
	}
	return 1;
}
