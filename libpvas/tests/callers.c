// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: whether a caller shares the launcher's memory, where kcmp() is
 * forbidden: nobody can guess the answer, and nobody can keep it waiting. And what writing
 * to its memory costs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helpers.h"
#include "user/worker.h"
#include "kselftest_harness.h"

#define MIX	0x9e3779b97f4a7c15ULL		/* of the numbers that once were asked for */

/* In a copy of our memory: all that looks like a number in a row becomes the next one. */
static void guess(void)
{
	unsigned long lo, hi;
	char line[600], prot[8];
	FILE *f = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %7s", &lo, &hi, prot) != 3 || strncmp(prot, "rw", 2))
			continue;
		if (hi - lo > 16UL << 20)
			continue;
		for (uint64_t *w = (uint64_t *)lo; w < (uint64_t *)hi; w++)
			if ((*w ^ MIX) - 1 < 1000)
				*w = ((*w ^ MIX) + 1) ^ MIX;
	}
	fclose(f);
}

TEST(no_guess)
{
	const int nr[] = { SYS_kcmp };
	int ready[2], i;
	pid_t pid;
	char c;

	forbid(nr, 1, EPERM);
	ASSERT_EQ(user_caller_begin(), 0);
	ASSERT_EQ(pipe(ready), 0);
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(user_caller_still_inside(getpid()), 1);
	}
	pid = fork();
	if (!pid) {
		guess();
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	ASSERT_EQ(read(ready[0], &c, 1), 1);
	EXPECT_EQ(user_caller_still_inside(pid), 0);
	EXPECT_EQ(user_caller_still_inside(getpid()), 1);
	kill(pid, SIGKILL);
	end_of(pid);
}

/* In a fork child: the range that is wiped by fork, where the launcher would read. */
static char *find_wiped(size_t *len)
{
	unsigned long lo = 0, hi = 0, a, b;
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[600], *found = NULL;

	while (!found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &a, &b) == 2) {
			lo = a;
			hi = b;
		} else if (!strncmp(line, "VmFlags:", 8) && strstr(line, " wf")) {
			found = (char *)lo;
		}
	}
	fclose(f);
	*len = hi - lo;
	return found;
}

/* A reader of the first page waits for ever; the other pages are in use, or not. */
static int make_readers_wait(int in_use)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	size_t len;
	char *p = find_wiped(&len);

	if (!p || fd < 0 || ioctl(fd, UFFDIO_API, &api))
		return -1;
	if (in_use)
		memset(p + 4096, 1, len - 4096);
	reg.range.start = (uintptr_t)p;
	reg.range.len = 4096;
	return ioctl(fd, UFFDIO_REGISTER, &reg);
}

/* Only the number of its helpers limits who else waits with a launcher that does. */
TEST(no_wait)
{
	const int nr[] = { SYS_kcmp };
	int ready[2], in_use;
	pid_t pid;
	char c;

	alarm(60);
	forbid(nr, 1, EPERM);
	ASSERT_EQ(user_caller_begin(), 0);
	ASSERT_EQ(pipe(ready), 0);
	for (in_use = 0; in_use < 2; in_use++) {
		pid = fork();
		if (!pid) {
			c = make_readers_wait(in_use) ? 'n' : 'y';
			if (write(ready[1], &c, 1) == 1)
				pause();
			_exit(0);
		}
		ASSERT_EQ(read(ready[0], &c, 1), 1);
		if (c == 'y')
			EXPECT_EQ(user_caller_inside(pid), 0);
		kill(pid, SIGKILL);
		end_of(pid);
		if (c != 'y')
			SKIP(return, "no userfaultfd");
	}
	EXPECT_EQ(user_caller_inside(getpid()), 1);
}

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

TEST_HARNESS_MAIN
