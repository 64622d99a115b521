// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module as the kernel's own tracing sees it: which work queues it uses, in which
 * process it makes them, and how often it searches the list of a space's members.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

static const char tracing[] = "/sys/kernel/tracing";
/* A trace buffer of our own */
#define INSTANCE	"instances/pvas-test/"

static const char *trace_file(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", tracing, name);
	return path;
}

static int trace_on(void)
{
	if (access(trace_file("instances"), F_OK))
		mount("none", tracing, "tracefs", 0, NULL);
	return mkdir(trace_file(INSTANCE), 0700) && errno != EEXIST ? -errno : 0;
}

static void trace_off(void)
{
	pt_write_file(trace_file(INSTANCE "events/enable"), "0");
	rmdir(trace_file(INSTANCE));
}

/* How many lines of the trace have both words? */
static int traced(const char *word, const char *other)
{
	FILE *f = fopen(trace_file(INSTANCE "trace"), "re");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, word) && strstr(line, other);
	if (f)
		fclose(f);
	return n;
}

#define PROBE		"pvas_test_probe"

/* How often the function with the probe was called, or -1 */
static long probe_hits(void)
{
	FILE *f = fopen(trace_file("kprobe_profile"), "re");
	char line[256], name[64];
	long hits = -1, n;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %ld", name, &n) == 2 && !strcmp(name, PROBE))
			hits = n;
	if (f)
		fclose(f);
	return hits;
}

static int probe_on(const char *function)
{
	char text[128];
	int err = trace_on();

	snprintf(text, sizeof(text), "p:" PROBE " %s", function);
	if (!err)
		err = pt_write_file(trace_file("kprobe_events"), text);
	return err ? err : pt_write_file(trace_file(INSTANCE "events/kprobes/" PROBE "/enable"), "1");
}

static void probe_off(void)
{
	pt_write_file(trace_file(INSTANCE "events/kprobes/" PROBE "/enable"), "0");
	pt_write_file(trace_file("kprobe_events"), "-:" PROBE);
	trace_off();
}

/* The last reference to a space's mm goes with its file, or with its creator. */
static void make_and_end_spaces(void)
{
	struct pt_raw raw;
	int i;

	for (i = 0; i < 4; i++) {
		if (pt_raw_make(&raw))
			return;
		pt_raw_close(&raw);
	}
}

/*
 * the memory of a space is not freed on system_wq ("events"), where up to kernel 6.5 all
 * other work of that processor waits as long as one item uses it
 */
MODULE_TEST(freed_elsewhere, "no work queues")
{
	PT_NEED_ROOT();
	if (pt_kernel_before(5, 11))
		SKIP(return, "its events do not name work queues");
	if (trace_on())
		SKIP(return, "no tracefs");
	if (pt_write_file(trace_file(INSTANCE "events/workqueue/workqueue_queue_work/enable"), "1"))
		SKIP(return, "no event workqueue_queue_work");
	make_and_end_spaces();
	EXPECT_TRUE(pt_spaces_gone());
	EXPECT_LE(4, traced("function=pvas_", "workqueue=pvas"));
	EXPECT_EQ(0, traced("function=pvas_", "workqueue=events "));
	EXPECT_EQ(0, traced("function=mmput_async_fn", ""));
	trace_off();
}

/*
 * nor does any work of the module wait in a queue of the system's ("events", "events_unbound"
 * and others), which users fill with work that waits for them: the hooks go on and off, too
 */
MODULE_TEST(own_queues, "no work queues")
{
	PT_NEED_ROOT();
	if (pt_kernel_before(5, 11))
		SKIP(return, "its events do not name work queues");
	if (trace_on())
		SKIP(return, "no tracefs");
	/* Until the hooks are off */
	EXPECT_TRUE(pt_spaces_gone());
	sleep(1);
	if (pt_write_file(trace_file(INSTANCE "events/workqueue/workqueue_queue_work/enable"), "1"))
		SKIP(return, "no event workqueue_queue_work");
	make_and_end_spaces();
	EXPECT_TRUE(pt_spaces_gone());
	sleep(1);
	EXPECT_LE(2, traced("function=pvas_hook_work_fn", "workqueue=pvas"));
	EXPECT_EQ(traced("function=pvas_", ""), traced("function=pvas_", "workqueue=pvas"));
	trace_off();
}

/* ---- by whom work queues are made ---- */

/* A CREATE that is refused when all of the space is made: its key is in use. */
static int create_twice(void)
{
	struct pt_raw raw[2];
	int i, err[2];

	for (i = 0; i < 2; i++) {
		pt_raw_init(&raw[i], PVAS_SHIFT_DEFAULT);
		raw[i].create.flags |= PVAS_CREATE_KEY;
		raw[i].create.key = (uintptr_t)"life-trace";
		raw[i].create.key_len = 10;
		err[i] = pt_raw_create(&raw[i]);
	}
	for (i = 0; i < 2; i++)
		pt_raw_close(&raw[i]);
	return err[0] ?: err[1];
}

/* Kernels that can tell who allocates have such a function under another name. */
static int probe_on_either(const char *function)
{
	char other[64];
	int err = probe_on(function);

	snprintf(other, sizeof(other), "%s_noprof", function);
	return err == -EINVAL ? probe_on(other) : err;
}

static void only_by_workers(struct __test_metadata *_metadata, const char *function)
{
	int err = probe_on_either(function), calls;

	if (err)
		SKIP(return, "no kprobe events: %d", err);
	EXPECT_EQ(-EEXIST, create_twice());
	EXPECT_TRUE(pt_spaces_gone());
	calls = traced(PROBE ":", "");
	TH_LOG("%d calls of %s", calls, function);
	EXPECT_LE(2, calls);
	EXPECT_EQ(calls, traced(PROBE ":", " kworker/"));
	probe_off();
}

/*
 * CREATE and its failure take no lock of all work queues in the caller, which its cgroup
 * could starve meanwhile: a worker makes and removes the queues
 */
MODULE_TEST(queues_are_made_by_workers, "no work queues")
{
	PT_NEED_ROOT();
	only_by_workers(_metadata, "alloc_workqueue");
	only_by_workers(_metadata, "destroy_workqueue");
}

/* ---- thousands of processes killed at once ---- */

#define GUESTS		3000
#define GUEST_STACK	4096

static int guest(void __attribute__((unused)) *arg)
{
	while (syscall(SYS_pause))
		;
	return 0;
}

TASK(many_guests)
{
	char *stacks = mmap(NULL, GUESTS * GUEST_STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	setpgid(0, 0);
	for (i = 1; i <= GUESTS; i++)
		CHECK(clone(guest, stacks + i * GUEST_STACK, CLONE_VM | SIGCHLD, NULL) > 0);
	pt_say("r");
	pause();
}

/* Clock ticks in @ms: the coarse clock goes by them. */
static long ticks(long ms)
{
	struct timespec tick;

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return ms * 1000000 / tick.tv_nsec;
}

/*
 * the end of each of thousands of killed processes does not search all others for the OOM
 * killer's mark: with a spinlock held, that took quadratic time. Once a tick is enough.
 */
MODULE_TEST(killed_together, "no list of members")
{
	struct pvas_space *space = PT_SPACE();
	long began, took, hits;
	int fds[2], err;
	pid_t pid;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pipe(fds));
	pid = pt_start_task_fd(space, 1, "many_guests", fds[1]);
	ASSERT_LT(0, pid);
	ASSERT_EQ('r', pt_hear(fds[0]));
	err = probe_on("pvas_oom_has_victim");
	if (err)
		TH_LOG("no kprobe events: %d", err);
	began = now_ms();
	kill(-pid, SIGKILL);
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	while (pvas_task_list(space, NULL, 0) > 0 && now_ms() - began < 40000)
		usleep(1000);
	took = now_ms() - began;
	hits = probe_hits();
	probe_off();
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	pvas_space_destroy(space);
	if (err)
		SKIP(return, "no kprobe events");
	TH_LOG("%d processes, %ld searches in %ld ticks", GUESTS, hits, ticks(took));
	/* Freeing the partition adds one search for each slice, and a few more. */
	if (ticks(took) + 100 > GUESTS)
		SKIP(return, "too slow a machine to tell");
	EXPECT_LT(0, hits);
	EXPECT_GE(ticks(took) + 100, hits);
}

PT_MAIN()
