// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process in an exec that stays has another mm than its space for a while, and can be kept so: by
 * its tracer, which holds it in its exit, or because the end of the old program is held up.
 * Nothing of the space stays then that no process has.
 *
 * The kernel's unmapping of the old program is held up for as long as a test likes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "packet_ring.h"
#include "pvas_test.h"
#include "window.h"

#define PAGE		4096L
#define FILL_AT		0x40000000L	/* in partition 0 */
#define FILL_LEN	(48L << 20)
#define SHARED_LEN	(64L << 20)
#define ARGV_AT		256
#define WAIT_MS		"/sys/module/pvas/parameters/reclaim_wait_ms"
#define SMALL_KIB	((long)(PVAS_IDLE_MAX >> 10))
#define TRIES		600		/* 50 ms each */

/** struct held - a task that execs, and the window in which its old program is unmapped */
struct held {
	struct pt_raw raw;
	struct window window;
	pid_t pid;
	char wait_ms[32];
};

static int map_to_fill(void *arg)
{
	void *p = mmap((void *)FILL_AT, FILL_LEN, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);

	(void)arg;
	return p == MAP_FAILED ? -errno : 0;
}

/* Partitions that are small: the whole of one is unmapped at once. */
static int held_begin(struct held *h)
{
	int err = window_make_at(&h->window, "vm_munmap", WINDOW_ARG2);

	if (err)
		return err;
	pt_raw_init(&h->raw, PVAS_SHIFT_DEFAULT);
	h->raw.prepare = map_to_fill;
	h->raw.keep = FILL_AT;
	err = pt_raw_create(&h->raw);
	h->pid = err ? err : pt_raw_spawn(&h->raw, 1);
	/* Less than a worker can be held: a process that is killed waits for it before its exit. */
	pt_read_file(WAIT_MS, h->wait_ms, sizeof(h->wait_ms));
	pt_write_file(WAIT_MS, "500");
	return h->pid < 0 ? h->pid : 0;
}

#define HELD_BEGIN(h) do {							\
	int err__;								\
	PT_NEED_ROOT();								\
	err__ = held_begin(h);							\
	if (window_is_missing(err__))						\
		SKIP(return, "no BPF program can be attached: %s", strerror(-err__)); \
	ASSERT_EQ(0, err__);							\
} while (0)

static void held_end(struct held *h)
{
	pt_write_file(WAIT_MS, h->wait_ms);
	window_break(&h->window);
	pt_raw_close(&h->raw);
}

static long fill(struct held *h, unsigned int index, long at, long len)
{
	long fd;

	strcpy(h->raw.data, "/dev/zero");
	fd = pt_raw_call(&h->raw, index, SYS_openat, AT_FDCWD, PT_DATA_AT, O_RDONLY);
	return fd < 0 ? fd : pt_raw_call(&h->raw, index, SYS_read, fd, at, len);
}

/* The task begins to exec, and waits for the end of its old program. */
static bool begin_exec(struct held *h)
{
	const uint64_t argv[] = { PT_DATA_AT, 0 };
	const long args[6] = { PT_DATA_AT, PT_DATA_AT + ARGV_AT, PT_DATA_AT + ARGV_AT + 8 };

	window_hold(&h->window, 1UL << PVAS_SHIFT_DEFAULT);
	strcpy(h->raw.data, "/bin/true");
	memcpy(h->raw.data + ARGV_AT, argv, sizeof(argv));
	pt_raw_ask(&h->raw, 1, SYS_execve, args);
	return window_is_open(&h->window);
}

/* It is killed then, and its tracer keeps it in its exit, with the mm that execve made. */
static bool is_killed_and_held(struct held *h)
{
	int status;

	if (kill(h->pid, SIGKILL) || waitpid(h->pid, &status, __WALL) != h->pid ||
	    status >> 8 != (SIGTRAP | PTRACE_EVENT_EXIT << 8))
		return false;
	return window_close(&h->window);
}

static bool gets_small(long (*kib)(void))
{
	int i;

	for (i = 0; i < TRIES && kib() > SMALL_KIB; i++)
		usleep(50000);
	return i < TRIES;
}

static bool is_free(struct pt_raw *raw)
{
	int i;

	for (i = 0; i < TRIES && pt_raw_count(raw->fd); i++)
		usleep(50000);
	return i < TRIES;
}

/* what is in partition 0, if it was the last task */
MODULE_TEST(last_task, "no process has another mm")
{
	struct held h;

	HELD_BEGIN(&h);
	ASSERT_EQ(FILL_LEN, fill(&h, 1, FILL_AT, FILL_LEN));
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, h.pid, 0, PTRACE_O_TRACEEXIT));
	ASSERT_TRUE(begin_exec(&h));
	ASSERT_TRUE(is_killed_and_held(&h));
	EXPECT_TRUE(gets_small(pt_resident_kib));
	EXPECT_TRUE(is_free(&h.raw));
	EXPECT_EQ(-ENOENT, pt_raw_arm(h.raw.fd, 0, 2, 0));
	pt_let_exit(h.pid);
	held_end(&h);
}

/* nor does anybody add to it, with /proc/PID/mem, whose memory it would not be either */
MODULE_TEST(last_task_and_writer, "no process has another mm")
{
	static char page[PAGE] = "x";
	struct held h;

	HELD_BEGIN(&h);
	ASSERT_EQ(PAGE, fill(&h, 1, FILL_AT, PAGE));
	ASSERT_EQ(PAGE, pwrite(h.raw.mem, page, PAGE, FILL_AT + PAGE));
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, h.pid, 0, PTRACE_O_TRACEEXIT));
	ASSERT_TRUE(begin_exec(&h));
	EXPECT_EQ(-1, pwrite(h.raw.mem, page, PAGE, FILL_AT + 2 * PAGE));
	ASSERT_TRUE(is_killed_and_held(&h));
	EXPECT_TRUE(is_free(&h.raw));
	EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&h.raw, 1).state);
	EXPECT_EQ(-1, pwrite(h.raw.mem, page, PAGE, FILL_AT + 3 * PAGE));
	/* The space is small, and goes on. */
	EXPECT_EQ(PAGE, pread(h.raw.mem, page, PAGE, FILL_AT));
	EXPECT_LT(0, pt_raw_spawn(&h.raw, 2));
	EXPECT_EQ(PAGE, pwrite(h.raw.mem, page, PAGE, FILL_AT + 3 * PAGE));
	pt_let_exit(h.pid);
	held_end(&h);
}

static long shmem_before;

static long shmem_more(void)
{
	return pt_file_kib("/proc/meminfo", "Shmem:") - shmem_before;
}

/* after an OOM kill of the others: all memory of the space */
MODULE_TEST(last_after_oom, "the launcher is the victim")
{
	struct held h;
	pid_t other;

	HELD_BEGIN(&h);
	shmem_before = pt_file_kib("/proc/meminfo", "Shmem:");
	other = pt_raw_spawn(&h.raw, 2);
	ASSERT_LT(0, other);
	ASSERT_LT(0, pt_raw_call(&h.raw, 2, SYS_mmap, 0, SHARED_LEN, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
	ASSERT_LT(SHARED_LEN >> 11, shmem_more());
	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, h.pid, 0, PTRACE_O_TRACEEXIT));
	ASSERT_TRUE(begin_exec(&h));
	ASSERT_TRUE(is_killed_and_held(&h));
	ASSERT_EQ(0, pt_write_file("/proc/sysrq-trigger", "f"));
	EXPECT_EQ(256 + SIGKILL, pt_wait(other));
	EXPECT_TRUE(gets_small(shmem_more));
	pt_let_exit(h.pid);
	held_end(&h);
}

/* nor if it lives, and what it has mapped is not unmapped for long: then its exec fails */
MODULE_TEST(slow_area, "no process has another mm")
{
	struct held h;
	int ring;

	PT_NEED_ROOT();
	ring = packet_ring();
	if (ring < 0)
		SKIP(return, "this kernel has no packet rings: %s", strerror(errno));
	HELD_BEGIN(&h);
	ASSERT_LT(0, pt_raw_call(&h.raw, 1, SYS_mmap, 0, PACKET_RING_LEN, PROT_READ | PROT_WRITE,
				 MAP_SHARED, ring, 0));
	ASSERT_EQ(0, pt_raw_call(&h.raw, 1, SYS_close, ring));
	ASSERT_EQ(FILL_LEN, fill(&h, 1, FILL_AT, FILL_LEN));
	ASSERT_TRUE(begin_exec(&h));
	EXPECT_TRUE(gets_small(pt_resident_kib));
	EXPECT_TRUE(window_close(&h.window));
	EXPECT_EQ(256 + SIGSEGV, pt_wait(h.pid));
	close(ring);
	held_end(&h);
}

PT_MAIN()
