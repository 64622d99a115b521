// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: whether a caller shares the launcher's memory, where kcmp() is
 * forbidden. Nobody can guess the answer, and nobody can keep it waiting.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
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

/* Whoever reads the first page waits for ever; the others are in use, or not. */
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

TEST_HARNESS_MAIN
