// SPDX-License-Identifier: GPL-2.0-only
/* Fault injection: see fail_nth.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "fail_nth.h"
#include "pvas_test.h"

#define MAX_NTH		2000	/* more than any call here makes: then it is a failure */
#define TRIES		3	/* of one n, if its failure was nobody's */

/* Allocations that may sleep, and single pages, are spared by default. */
static const char * const switches[][2] = {
	{ "failslab/ignore-gfp-wait", "N" }, { "failslab/verbose", "0" },
	{ "fail_page_alloc/ignore-gfp-wait", "N" }, { "fail_page_alloc/ignore-gfp-highmem", "N" },
	{ "fail_page_alloc/min-order", "0" }, { "fail_page_alloc/verbose", "0" },
};

const char *fail_possible(void)
{
	char path[128];
	size_t i;

	if (geteuid())
		return "must be root";
	if (access("/proc/self/fail-nth", W_OK))
		return "this kernel has no fault injection (no /proc/self/fail-nth)";
	if (access("/sys/kernel/debug/failslab", F_OK))
		mount("none", "/sys/kernel/debug", "debugfs", 0, NULL);
	for (i = 0; i < PT_ARRAY_SIZE(switches); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s", switches[i][0]);
		if (pt_write_file(path, switches[i][1]))
			return "no failslab or fail_page_alloc in debugfs";
	}
	return NULL;
}

int fail_open_nth(pid_t pid)
{
	char path[64];

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/fail-nth", pid);
	else
		snprintf(path, sizeof(path), "/proc/thread-self/fail-nth");
	return open(path, O_RDWR | O_CLOEXEC);
}

int fail_set_nth(int fd, unsigned int nth)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", nth);

	return pwrite(fd, text, n, 0) == n ? 0 : -EIO;
}

/* Was it too few allocations to reach the one that was to fail? And no more faults. */
bool fail_reached(int fd)
{
	char text[16] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	fail_set_nth(fd, 0);
	return n > 0 && atoi(text) == 0;
}

static int set_both(const char *name, const char *text)
{
	static const char * const kinds[] = { "failslab", "fail_page_alloc" };
	char path[128];
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(kinds); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", kinds[i], name);
		if (pt_write_file(path, text))
			return -EIO;
	}
	return 0;
}

static long number_in(const char *path)
{
	char text[32] = "";

	pt_read_file(path, text, sizeof(text));
	return atol(text);
}

/* Where the code of the module is */
static int say_where(void)
{
	char from[32] = "", size[32] = "", end[32];

	if (pt_read_file("/sys/module/pvas/sections/.text", from, sizeof(from)) < 0 ||
	    pt_read_file("/sys/module/pvas/coresize", size, sizeof(size)) < 0)
		return -ENOENT;
	snprintf(end, sizeof(end), "0x%lx", strtoul(from, NULL, 0) + strtoul(size, NULL, 0));
	return set_both("require-start", from) ?: set_both("require-end", end);
}

#define TIMES	1000000	/* as often as it may fail, then as often as it still may */

int fail_in_module(enum fail_depth depth)
{
	char text[16];
	int err;

	snprintf(text, sizeof(text), "%d", TIMES);
	err = set_both("probability", "0") ?: set_both("times", text);
	if (err || depth == FAIL_NONE)
		return err ?: set_both("require-start", "0") ?:
		       set_both("require-end", "0xffffffffffffffff");
	snprintf(text, sizeof(text), "%d", depth);
	return set_both("stacktrace-depth", text) ?: say_where() ?: set_both("probability", "100");
}

int fail_count(void)
{
	return 2 * TIMES - number_in("/sys/kernel/debug/failslab/times") -
	       number_in("/sys/kernel/debug/fail_page_alloc/times");
}

int fail_exec(void __attribute__((unused)) *unused)
{
	execl(pt_self(), "puppet", (char *)NULL);
	return -errno;
}

pid_t fail_spawn(struct pt_raw *raw)
{
	return pt_raw_spawn_by(raw, raw->create.first, fail_exec, NULL);
}

/* The errors allowed when an allocation fails; E2BIG is exec's, without a stack page. */
bool fail_proper(int err)
{
	return err == -ENOMEM || err == -EAGAIN || err == -E2BIG || err == -EFAULT;
}

/* A space goes with its last task or file; its end is a work item's. */
int fail_spaces_become(int want)
{
	long limit = now_ms() + pt_timeout() * 1000L / 3;
	int n;

	while ((n = pt_spaces()) != want && now_ms() < limit)
		usleep(10000);
	return n;
}

/*
 * Some failures nobody minds. If it was of what the kernel allocates once in a while
 * for itself (a pool of KASAN's), the n-th is the call's own the next time.
 */
static int try_often(struct fail_attempt *a)
{
	int i, err = 0;

	for (i = 0; i < TRIES && !err; i++)
		err = a->once(a);
	return err;
}

/*
 * Tries with the nth allocation failing, until none does; each time it must work or
 * give a proper error. Returns how many failed, or -1. With most of the test's time
 * gone it ends where it is, and says so.
 */
int fail_sweep(const char *what, struct fail_attempt a)
{
	long end = now_ms() + pt_timeout() * 700;
	int err, failed = 0;

	for (a.nth = 1; a.nth < MAX_NTH; a.nth++) {
		err = try_often(&a);
		if (err == -ENODATA)
			return failed;
		if (err && !fail_proper(err)) {
			say("%s, allocation %u: %d", what, a.nth, err);
			return -1;
		}
		failed += err != 0;
		if (now_ms() > end) {
			say("%s: no time for more than %u allocations", what, a.nth);
			return failed;
		}
	}
	return -1;
}

/* The call by this thread */
int fail_here(struct fail_attempt *a)
{
	int fd = fail_open_nth(0), err;
	bool hit;

	if (fd < 0 || fail_set_nth(fd, a->nth))
		return -ENOTRECOVERABLE;
	err = a->fn(a->arg);
	hit = fail_reached(fd);
	close(fd);
	return hit ? err : err ? -ENOTRECOVERABLE : -ENODATA;
}

static int here_of(void *a)
{
	return fail_here(a);
}

/* The call by a process of its own */
static int in_child(struct fail_attempt *a)
{
	return pt_in_child(here_of, a);
}

int fail_sweep_child(const char *what, int (*fn)(void *arg), void *arg)
{
	return fail_sweep(what, (struct fail_attempt){ .once = in_child, .fn = fn, .arg = arg });
}
