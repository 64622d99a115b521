// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: whether a caller shares the launcher's memory, where kcmp() is
 * forbidden: nobody can guess the answer, nobody can keep it waiting, and without one it
 * counts as neither.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "callers.h"

#define MIX	0x9e3779b97f4a7c15ULL		/* of the numbers that once were asked for */

/* In a copy of our memory */
static void each_word(void (*see)(uint64_t *word))
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
			see(w);
	}
	fclose(f);
}

/* All that looks like a number in a row becomes the next one. */
static void guess(uint64_t *word)
{
	if ((*word ^ MIX) - 1 < 1000)
		*word = ((*word ^ MIX) + 1) ^ MIX;
}

TEST(no_guess)
{
	const int nr[] = { SYS_kcmp };
	int ready[2], i;
	pid_t pid;
	char c;

	forbid(nr, 1, EPERM);
	ASSERT_EQ(begin(), 0);
	ASSERT_EQ(pipe(ready), 0);
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(user_caller_still_inside(getpid()), 1);
	}
	pid = fork();
	if (!pid) {
		each_word(guess);
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

/* The range that is wiped by fork, where the launcher reads. */
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

/*
 * Only the number of its helpers limits who else waits with a launcher that does. At last
 * the launcher locks all of its memory, so that all its pages are in use as well.
 */
TEST(no_wait)
{
	const int nr[] = { SYS_kcmp };
	int ready[2], i;
	pid_t pid;
	char c;

	alarm(60);
	forbid(nr, 1, EPERM);
	ASSERT_EQ(begin(), 0);
	ASSERT_EQ(pipe(ready), 0);
	for (i = 0; i < 3; i++) {
		if (i == 2 && mlockall(MCL_CURRENT))
			SKIP(return, "can't lock memory");
		pid = fork();
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			c = make_readers_wait(i > 0) ? 'n' : 'y';
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

#define PATTERN	64

/* Which pages behind the first one are in use */
static uint64_t pages_in_use(const char *range)
{
	uint64_t entries[PATTERN] = { 0 }, mask = 0;
	int i, fd = open("/proc/self/pagemap", O_RDONLY);
	off_t at = (off_t)(((uintptr_t)range / 4096 + 1) * sizeof(entries[0]));

	if (pread(fd, entries, sizeof(entries), at) == sizeof(entries))
		for (i = 0; i < PATTERN; i++)
			mask |= (uint64_t)!!(entries[i] >> 62) << i;
	close(fd);
	return mask;
}

static uint64_t mixed, copies;

static void find(uint64_t *word)
{
	copies += (*word ^ MIX) == mixed;
}

/* A fork child, which has a copy of most of our memory, does not learn from it what to imitate. */
TEST(no_imitation)
{
	const int nr[] = { SYS_kcmp };
	int to[2], from[2];
	uint64_t used;
	size_t len;
	pid_t pid;

	ASSERT_EQ(begin(), 0);
	ASSERT_EQ(pipe(to), 0);
	ASSERT_EQ(pipe(from), 0);
	/* A comparison has seen it as well: of a process that isn't ours. */
	forbid(nr, 1, EPERM);
	EXPECT_EQ(user_caller_inside(getppid()), 0);
	pid = fork();
	if (!pid) {
		if (read(to[0], &mixed, sizeof(mixed)) == sizeof(mixed))
			each_word(find);
		_exit(write(from[1], &copies, sizeof(copies)) != sizeof(copies));
	}
	used = pages_in_use(find_wiped(&len));
	ASSERT_NE(used, 0);
	EXPECT_NE(used, ~0ULL);
	mixed = used ^ MIX;
	ASSERT_EQ(write(to[1], &mixed, sizeof(mixed)), (ssize_t)sizeof(mixed));
	ASSERT_EQ(read(from[0], &copies, sizeof(copies)), (ssize_t)sizeof(copies));
	EXPECT_EQ(copies, 0);
	end_of(pid);
}

/* ---- what can't be found out is neither inside nor outside ---- */

/* One with a copy */
static pid_t start_copying(int dumpable)
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_DUMPABLE, dumpable);
		if (write(ready[1], "", 1) == 1)
			wait_for_ever(NULL);
		_exit(1);
	}
	return read(ready[0], &c, 1) == 1 ? pid : -1;
}

FIXTURE(unknown)
{
};

FIXTURE_VARIANT(unknown)
{
	unsigned int forbidden;
};

/* kcmp() only; and to read memory, too */
FIXTURE_VARIANT_ADD(unknown, kcmp) { .forbidden = 1 };
FIXTURE_VARIANT_ADD(unknown, reading) { .forbidden = 2 };

FIXTURE_SETUP(unknown)
{
	const int nr[] = { SYS_kcmp, SYS_process_vm_readv };

	if (!getuid() && (setgid(65534) || setuid(65534)))
		SKIP(return, "can't become an ordinary user");
	prctl(PR_SET_DUMPABLE, 1);
	forbid(nr, variant->forbidden, EPERM);
	ASSERT_EQ(begin(), 0);
}

FIXTURE_TEARDOWN(unknown)
{
}

TEST_F(unknown, without_descriptors)
{
	struct rlimit limit, none;
	pid_t pid = start_sharing();

	EXPECT_EQ(user_caller_inside(pid), 1);
	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	EXPECT_LT(user_caller_inside(pid), 0);
	EXPECT_EQ(user_caller_left(pid, pid), 0);
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	EXPECT_EQ(user_caller_inside(pid), 1);
	EXPECT_EQ(user_caller_left(pid, pid), 0);
	end(pid);
}

/* A second space, when one can't see which pages are in use: it doesn't go on unprotected. */
TEST_F(unknown, begin_without_descriptors)
{
	struct rlimit limit, none;

	ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	EXPECT_EQ(user_caller_begin(), -EMFILE);
	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	EXPECT_EQ(user_caller_begin(), 0);
}

/* The launcher may not open its tasks' files any more, nor those of others. */
TEST_F(unknown, not_dumpable)
{
	pid_t shares = start_sharing(), copies = start_copying(1);

	ASSERT_GT(copies, 0);
	prctl(PR_SET_DUMPABLE, 0);
	if (variant->forbidden == 1) {
		EXPECT_EQ(user_caller_inside(shares), 1);
	} else {
		EXPECT_LT(user_caller_inside(shares), 0);
	}
	EXPECT_NE(user_caller_inside(copies), 1);
	EXPECT_EQ(user_caller_left(shares, shares), 0);
	prctl(PR_SET_DUMPABLE, 1);
	EXPECT_EQ(user_caller_inside(shares), 1);
	EXPECT_EQ(user_caller_inside(copies), 0);
	EXPECT_EQ(user_caller_left(shares, shares), 0);
	end(shares);
	end(copies);
}

/* It is certain of a descendant whose files are shut: its calls are not refused. */
TEST_F(unknown, descendant_not_dumpable)
{
	pid_t copies = start_copying(0);

	ASSERT_GT(copies, 0);
	EXPECT_EQ(user_caller_inside(copies), 0);
	EXPECT_EQ(user_caller_still_inside(copies), 0);
	end(copies);
}

TEST_HARNESS_MAIN
