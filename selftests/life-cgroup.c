// SPDX-License-Identifier: GPL-2.0-only
/* Tasks in cgroups: memory that is charged, processor time that is not given, cgroup.kill. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "cgroup.h"
#include "pvas_test.h"

TASK(use_32_mib)
{
	char *p = mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 1, 32 << 20);
	pt_say("r");
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
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = enter_cgroup };
	struct pvas_space *space;
	char group[128], fd[16];
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)"use_32_mib", fd, NULL };
	int fds[2], round;
	pid_t pid;

	PT_NEED_ROOT();
	if (make_cgroup("mem", group, sizeof(group)))
		SKIP(return, "no cgroup2");
	if (pt_write_file(cg_file(CG_ROOT, "cgroup.subtree_control"), "+memory"))
		SKIP(return, "no memory controller in cgroup2");
	/* Not before: make_cgroup() takes us to a mount namespace of our own. */
	space = PT_SPACE();
	ASSERT_EQ(0, pipe(fds));
	snprintf(fd, sizeof(fd), "%d", fds[1]);
	attr.setup_arg = group;
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(1, pvas_task_spawn(space, 1, pt_self(), argv, environ, &attr, &pid));
		ASSERT_EQ('r', pt_hear(fds[0]));
		EXPECT_LE(32 << 20, read_number(cg_file(group, "memory.current")));
		pt_kill(pid);
		EXPECT_GT(16 << 20, read_number(cg_file(group, "memory.current")));
	}
	pvas_space_destroy(space);
	remove_cgroup(group);
}

#define STRINGS		32
#define STRING_LEN	(120 << 10)

static int enter_with_stack(void *arg)
{
	/* Arguments can be 6 MiB long if the stack can be four times as large. */
	struct rlimit stack = { 64 << 20, 64 << 20 };

	return setrlimit(RLIMIT_STACK, &stack) ? -errno : enter_cgroup(arg);
}

/*
 * all that exec holds of the arguments is charged to the caller's cgroup: the strings
 * that execve() has copied, and the module's copy of them
 */
MODULE_TEST(exec_arguments, "it copies them itself")
{
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = enter_with_stack };
	char *argv[STRINGS + 4] = { (char *)pt_self(), (char *)"--task", (char *)"succeed" };
	struct pvas_space *space;
	char group[128];
	pid_t pid;
	int i;

	PT_NEED_ROOT();
	if (make_cgroup("exec", group, sizeof(group)))
		SKIP(return, "no cgroup2");
	if (pt_write_file(cg_file(CG_ROOT, "cgroup.subtree_control"), "+memory"))
		SKIP(return, "no memory controller in cgroup2");
	if (access(cg_file(group, "memory.peak"), R_OK))
		SKIP(return, "no memory.peak");
	for (i = 0; i < STRINGS; i++) {
		argv[3 + i] = malloc(STRING_LEN + 1);
		memset(argv[3 + i], 'x', STRING_LEN);
		argv[3 + i][STRING_LEN] = '\0';
	}
	space = PT_SPACE();
	attr.setup_arg = group;
	ASSERT_EQ(1, pvas_task_spawn(space, 1, pt_self(), argv, environ, &attr, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	EXPECT_LE(2L * STRINGS * STRING_LEN, read_number(cg_file(group, "memory.peak")));
	pvas_space_destroy(space);
	remove_cgroup(group);
}

#define STARVED_MS	15000	/* how long others make spaces */
#define CREATE_MS	5000	/* the longest that one of theirs may take, and */
#define CREATE_TIMES	4	/* as many times one before the starved process */

static char starved_group[128];

static int starve(void *arg)
{
	return enter_cgroup(starved_group) ?: pt_write_file(cg_file(starved_group, "cpu.max"), arg);
}

/* A process that the scheduler lets run for 1 ms in 100 from just before its CREATE on */
static pid_t start_starved(void)
{
	pid_t pid = fork();
	struct pt_raw raw;

	if (pid)
		return pid;
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = starve;
	raw.prepare_arg = (void *)"1000 100000";
	_exit(pt_raw_create(&raw) != 0);
}

static int mappings_of(long pid)
{
	char path[64], line[512];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/maps", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		n++;
	if (f)
		fclose(f);
	return n;
}

/* It has unmapped all that a creator may not have, and only CREATE is left. */
static bool starved_is_creating(void)
{
	int tries, n;

	for (tries = 0; tries < 600; tries++) {
		n = mappings_of(read_number(cg_file(starved_group, "cgroup.procs")));
		if (n > 0 && n < 12)
			return true;
		usleep(50000);
	}
	return false;
}

/* One space, made and gone. The hooks are off: to switch them on is the long part. */
static long create_ms(struct __test_metadata *_metadata)
{
	struct pt_raw raw;
	long began;

	ASSERT_TRUE(pt_spaces_gone());
	usleep(500000);
	began = now_ms();
	ASSERT_EQ(0, pt_raw_make(&raw));
	began = now_ms() - began;
	pt_raw_close(&raw);
	return began;
}

/* a process that is starved in the middle of CREATE keeps nobody else from it */
MODULE_TEST(starved_creator, "no hooks")
{
	long began, end, took, alone, longest = 0;
	struct pt_raw raw;
	int made = 0;
	pid_t pid;

	PT_NEED_ROOT();
	if (make_cgroup("starved", starved_group, sizeof(starved_group)))
		SKIP(return, "no cgroup2");
	if (pt_write_file(cg_file(CG_ROOT, "cgroup.subtree_control"), "+cpu"))
		SKIP(return, "no cpu controller in cgroup2");
	alone = create_ms(_metadata);
	ASSERT_TRUE(pt_spaces_gone());
	usleep(500000);
	pid = start_starved();
	ASSERT_TRUE(starved_is_creating());
	usleep(500000);
	for (end = now_ms() + STARVED_MS; now_ms() < end; made++) {
		began = now_ms();
		ASSERT_EQ(0, pt_raw_make(&raw));
		took = now_ms() - began;
		longest = took > longest ? took : longest;
		pt_raw_close(&raw);
		usleep(400000);
	}
	TH_LOG("%d spaces, the longest CREATE %ld ms, one alone %ld ms", made, longest, alone);
	EXPECT_GT(CREATE_MS + CREATE_TIMES * alone, longest);
	pt_write_file(cg_file(starved_group, "cpu.max"), "max");
	pt_kill(pid);
	remove_cgroup(starved_group);
}

static void spawn_storm(void *group, int fd)
{
	struct pvas_space *space;
	pid_t pid;

	if (enter_cgroup(group) || write(fd, "r", 1) != 1 || pt_create(&space, 0, 0))
		_exit(1);
	for (;;) {
		pid = pt_start_task(space, PVAS_ANY, "succeed");
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
	if (access(cg_file(group, "cgroup.kill"), F_OK)) {
		remove_cgroup(group);
		SKIP(return, "no cgroup.kill in this kernel");
	}
	ASSERT_EQ(0, pipe(fds));
	for (round = 0; round < 8; round++) {
		for (i = 0; i < 2; i++) {
			pid[i] = fork();
			if (!pid[i])
				spawn_storm(group, fds[1]);
		}
		for (i = 0; i < 2; i++) {
			ASSERT_EQ('r', pt_hear(fds[0]));
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
	EXPECT_TRUE(pt_spaces_gone());
	remove_cgroup(group);
}

PT_MAIN()
