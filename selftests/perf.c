// SPDX-License-Identifier: GPL-2.0-only
/*
 * perf on a task: samples and mapping records of one, by another process and by
 * itself, with its ring buffer in the task's partition, through forks and its end.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define PAGE		4096UL
#define RING_PAGES	64UL
#define RING_LEN	((1 + RING_PAGES) * PAGE)
#define RW		(PROT_READ | PROT_WRITE)

/* Samples by a timer: an emulated processor has no counters. */
static int open_event(pid_t pid, bool inherit)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000, .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
		PERF_SAMPLE_CALLCHAIN, .inherit = inherit, .mmap = 1, .comm = 1, .task = 1,
		.exclude_kernel = 1,
	};

	/* An event that children inherit is mapped per processor: count only. */
	if (inherit)
		attr.sample_period = attr.sample_type = 0;
	return syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

struct seen {
	unsigned int inside, maps;
};

/* The records so far; @base and @size: the task's partition. */
static void read_ring(char *ring, uintptr_t base, size_t size, struct seen *seen)
{
	struct perf_event_mmap_page *page = (void *)ring;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t at = page->data_tail, ip;
	struct perf_event_header h;
	char *data = ring + PAGE;

	while (at < head) {
		/* Records are multiples of 8 bytes, so the header and ip don't wrap. */
		memcpy(&h, data + at % (RING_PAGES * PAGE), sizeof(h));
		memcpy(&ip, data + (at + sizeof(h)) % (RING_PAGES * PAGE), sizeof(ip));
		seen->maps += h.type == PERF_RECORD_MMAP;
		seen->inside += h.type == PERF_RECORD_SAMPLE && ip - base < size;
		if (!h.size)
			break;
		at += h.size;
	}
	__atomic_store_n(&page->data_tail, at, __ATOMIC_RELEASE);
}

static void work(void)
{
	volatile unsigned int i;
	void *p;

	for (i = 0; i < 20000; i++)
		;
	p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED && !munmap(p, 4 * PAGE));
}

TASK(busy)
{
	pid_t pid;
	int i;

	pt_say("b");
	for (i = 0;; i++) {
		work();
		if (i % 50)
			continue;
		pid = fork();
		if (!pid)
			_exit(0);
		CHECK(pid > 0 && pt_wait(pid) == 0);
	}
}

PVAS_TEST(of_a_task)
{
	struct pvas_space *space = PT_SPACE();
	struct seen seen = {};
	struct pvas_task_info info;
	int fds[2], fd, i;
	pid_t pid;
	char *ring;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pipe(fds));
	pid = pt_start_task_fd(space, 1, "busy", fds[1]);
	ASSERT_LT(0, pid);
	ASSERT_EQ('b', pt_hear(fds[0]));
	ASSERT_EQ(1, pvas_task_list(space, &info, 1));
	fd = open_event(pid, false);
	ASSERT_LE(0, fd) TH_LOG("perf_event_open: errno %d", errno);
	ring = mmap(NULL, RING_LEN, RW, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, ring);
	for (i = 0; i < 300 && (seen.inside < 20 || seen.maps < 2); i++) {
		usleep(20000);
		read_ring(ring, (uintptr_t)info.base, info.length, &seen);
	}
	EXPECT_LE(20, seen.inside);
	EXPECT_LE(2, seen.maps);
	pt_kill(pid);
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	/* The event outlives its task. */
	read_ring(ring, 0, 0, &seen);
	EXPECT_EQ(0, munmap(ring, RING_LEN));
	close(fd);
	pvas_space_destroy(space);
}

TASK(watch_oneself)
{
	struct seen seen = {};
	int fd = open_event(0, false), children = open_event(0, true), i;
	uint64_t count = 0;
	char *ring;
	pid_t pid;

	CHECK(fd >= 0 && children >= 0);
	ring = mmap(NULL, RING_LEN, RW, MAP_SHARED, fd, 0);
	CHECK(ring != MAP_FAILED && pt_inside(ring, RING_LEN));
	for (i = 0; i < 2000 && seen.inside < 20; i++) {
		work();
		read_ring(ring, pt_base(), pt_size(), &seen);
	}
	CHECK(seen.inside >= 20);
	for (i = 0; i < 10; i++) {
		pid = fork();
		if (!pid) {
			work();
			_exit(0);
		}
		CHECK_EQ(0, pt_wait(pid));
	}
	CHECK_EQ(sizeof(count), read(children, &count, sizeof(count)));
	CHECK(count > 0);
	/* And ends with all of it open and mapped. */
}

PVAS_TEST(by_a_task)
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid;
	int i;

	PT_NEED_ROOT();
	for (i = 0; i < 2; i++) {
		pid = pt_start_task(space, 1, "watch_oneself");
		ASSERT_LT(0, pid);
		EXPECT_EQ(0, pt_wait(pid));
		EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	}
	pvas_space_destroy(space);
}

PT_MAIN()
