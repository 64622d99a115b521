// SPDX-License-Identifier: LGPL-2.1-or-later
/* The user backend: callers outside, what writing to their memory costs, and whose they are. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helpers.h"
#include "user/worker.h"
#include "kselftest_harness.h"

/* ---- what it costs to write to a caller with mappings without end ---- */

#define MANY	30000UL
#define LOW	0x100000000UL	/* below all else */
#define MAP_QUERY 0xc0686611U	/* PROCMAP_QUERY, 6.11 */

/* The last page of so many mappings is writable. */
static char *make_many(void)
{
	char *p = mmap((void *)LOW, MANY * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (unsigned long i = 1; i < MANY; i += 2)
		if (mprotect(p + i * 4096, 4096, PROT_READ | PROT_WRITE))
			return NULL;
	return p + (MANY - 1) * 4096;
}

static int64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Processor time to read all of a process' mappings */
static int64_t read_all(pid_t pid)
{
	int64_t begin = cpu_ns();
	struct user_mapping m;
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	while (user_maps_next(f, &m))
		;
	fclose(f);
	return cpu_ns() - begin;
}

static int64_t write_to(pid_t pid, char *at)
{
	int64_t begin = cpu_ns();

	user_caller_write(pid, (uint64_t)at, "", 1);
	return cpu_ns() - begin;
}

TEST(writing_is_cheap)
{
	struct user_space u = { .listener = -1 };
	struct user_request r = { .u = &u };
	char *at = make_many();
	int64_t all;
	pid_t pid;

	ASSERT_NE(at, NULL);
	user_request_begin(&r);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	all = read_all(pid);
	EXPECT_LT(write_to(pid, at), all / 3);
	/* As before 6.11 */
	forbid_with(SYS_ioctl, MAP_QUERY, ENOTTY);
	EXPECT_LT(write_to(pid, at), all / 3);
	kill(pid, SIGKILL);
	end_of(pid);
}

/* ---- whose calls may hang only a part of the helpers ---- */

/* A child that has become a stranger. It ends with this process. */
static pid_t stranger(int (*become)(void))
{
	int ends[2];
	char done;
	pid_t pid;

	if (pipe(ends))
		return -1;
	pid = fork();
	if (!pid) {
		if (become() || prctl(PR_SET_PDEATHSIG, SIGKILL) || write(ends[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ends[1]);
	if (read(ends[0], &done, 1) != 1)
		pid = -1;
	close(ends[0]);
	return pid;
}

static int other_user(void)
{
	return setresuid(-1, 65534, -1);
}

static int other_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

/* It maps the same ids: its parent does that. */
static int same_map(void)
{
	const pid_t pid = getpid();
	int ready[2], err, status = -1;
	char c, command[80];
	pid_t parent;

	if (pipe(ready))
		return -1;
	snprintf(command, sizeof(command), "cat /proc/self/uid_map >/proc/%d/uid_map", pid);
	parent = fork();
	if (!parent)
		_exit(read(ready[0], &c, 1) != 1 || system(command));
	err = unshare(CLONE_NEWUSER) || write(ready[1], "", 1) != 1;
	return waitpid(parent, &status, 0) != parent || status || err;
}

static int hidden(void)
{
	return unshare(CLONE_NEWUSER) || prctl(PR_SET_DUMPABLE, 0);
}

static int nothing(void)
{
	return 0;
}

static struct user_space own_space;

TEST(strangers)
{
	int (*const become[])(void) = { other_user, other_namespace, same_map, hidden };
	int64_t owner, i;
	pid_t pid;

	ASSERT_EQ(user_proc_begin(), 0);
	user_caller_know_own(&own_space);
	EXPECT_EQ(user_caller_is_own(&own_space, getpid(), &owner), 1);
	pid = stranger(nothing);
	ASSERT_GT(pid, 0);
	EXPECT_EQ(user_caller_is_own(&own_space, pid, &owner), 1);
	kill(pid, SIGKILL);
	end_of(pid);
	EXPECT_EQ(user_caller_is_own(&own_space, pid, &owner), -ESRCH);
	for (i = 0; i < 4; i++) {
		pid = stranger(become[i]);
		if (getuid() && pid < 0)
			continue;
		ASSERT_GT(pid, 0);
		EXPECT_LE(user_caller_is_own(&own_space, pid, &owner), 0);
		/* by the effective user */
		EXPECT_EQ(owner, i ? getuid() | OWNER_SANDBOX : 65534);
		if (pid > 0)
			kill(pid, SIGKILL);
	}
}

TEST_HARNESS_MAIN
