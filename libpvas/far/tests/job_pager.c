// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The pager of a job, without a job: its functions are called as the user backend does for tasks,
 * and this process' threads touch the memory. The kernel and the store are made to wait at
 * breakpoints, so that each test has the order of events that it is about.
 */
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include "far_test.h"
#include "job.h"

#ifndef UFFDIO_MOVE
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, uint64_t[5])
#endif

#define PAGE ((size_t)65536)
#define RAM (32 * PAGE)
#define ROW ((size_t)256 * PAGE)
#define CAPACITY (96 * PAGE)
#define PART (8 * PAGE)
#define REST (CAPACITY / 2)	/* more than the budget */

/* ---- breakpoints ---- */

/**
 * struct breakpoint - where threads wait until it is cleared
 * @closed:	for those who come now
 * @waiting:	how many wait there
 */
struct breakpoint {
	bool closed;
	unsigned int waiting;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void pass(struct breakpoint *at)
{
	pthread_mutex_lock(&lock);
	at->waiting++;
	pthread_cond_broadcast(&changed);
	while (at->closed)
		pthread_cond_wait(&changed, &lock);
	at->waiting--;
	pthread_mutex_unlock(&lock);
}

static void set_breakpoint(struct breakpoint *at, bool closed)
{
	pthread_mutex_lock(&lock);
	at->closed = closed;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void wait_until_reached(const struct breakpoint *at)
{
	pthread_mutex_lock(&lock);
	while (!at->waiting)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void pause_for(long ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

/* ---- the pager ---- */

static char *base;

static int open_job(const char *protocol)
{
	struct pvas_far_attr attr = {
		.size = sizeof(attr), .stores = "zip", .ram = RAM, .far = CAPACITY, .page = PAGE,
		.copies = 1, .protocol = protocol, .flags = PVAS_FAR_USER_FAULTS_ONLY,
	};
	struct pvas_far_rows rows = { .stride = ROW, .length = ROW, .count = 2 };
	int kernel, err;

	/* Free addresses; the pager maps them one by one. */
	base = mmap(NULL, 3 * ROW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -1;
	munmap(base, 3 * ROW);
	base += ROW - (uintptr_t)base % ROW;
	rows.base = (uintptr_t)base;
	err = far_job_ops.open(&attr, &rows, &kernel);
	if (err)
		fprintf(stderr, "# open: %d: %s\n", err, far_job_ops.error());
	return err;
}

static uint64_t *map(unsigned int row, size_t size)
{
	int64_t at = far_job_ops.map(row, size);

	return at > 0 ? (uint64_t *)at : NULL;
}

/* Not to be compressed to nothing, and different in each page */
static void fill(uint64_t *p, size_t size, uint64_t what)
{
	size_t i;

	for (i = 0; i < size / 8; i++)
		p[i] = what * 1000003 + i;
}

/* How many pages are not as @fill left them */
static size_t count_wrong(const volatile uint64_t *p, size_t size, uint64_t what)
{
	size_t i, wrong = 0;

	for (i = 0; i < size / 8; i += PAGE / 8)
		wrong += p[i] != what * 1000003 + i || p[i + 77] != what * 1000003 + i + 77;
	return wrong;
}

/* ---- pages that move while others are exchanged ---- */

static struct breakpoint taking;
static uintptr_t watched;

/* The first page of those watched that is taken out stays at the breakpoint. */
static void watch(unsigned long request, void *arg)
{
	uintptr_t at = 0;

	if (request == UFFDIO_MOVE)
		at = ((uint64_t *)arg)[1];
	else if (request == UFFDIO_WRITEPROTECT)
		at = ((uint64_t *)arg)[0];
	if (at - watched < PART && __atomic_exchange_n(&watched, 0, __ATOMIC_ACQ_REL))
		pass(&taking);
}

static void *read_all(void *arg)
{
	return (void *)count_wrong(arg, REST, 2);
}

static void *move_part(void *arg)
{
	return (void *)far_job_ops.move((uintptr_t)arg, PART, 2 * PART, 1);
}

/* A thread waits for a page in the pager. */
static void wait_for_waiter(void)
{
	bool waits = false;

	while (!waits) {
		pause_for(1);
		pthread_mutex_lock(&far.lock);
		waits = far.waiting;
		pthread_mutex_unlock(&far.lock);
	}
}

FIXTURE(exchange) { char unused; };
FIXTURE_VARIANT(exchange) { const char *protocol; };
FIXTURE_VARIANT_ADD(exchange, pvas) { "pvas" };
FIXTURE_VARIANT_ADD(exchange, r3) { "r3" };
FIXTURE_VARIANT_ADD(exchange, r58) { "r58" };
FIXTURE_VARIANT_ADD(exchange, r77) { "r77" };

FIXTURE_SETUP(exchange)
{
	ASSERT_EQ(0, open_job(variant->protocol));
}

FIXTURE_TEARDOWN(exchange)
{
	far_job_ops.close();
}

/* mremap() reaches a page that is on its way out, in exchange for one that comes from the store. */
TEST_F(exchange, moved_while_it_goes_out)
{
	uint64_t *part, *behind, *rest;
	pthread_t reader, mover;
	void *moved, *wrong;

	part = map(0, PART);
	behind = map(0, PAGE);
	rest = map(1, REST);
	ASSERT_TRUE(part && behind && rest);
	fill(part, PART, 1);
	fill(rest, REST, 2);
	ASSERT_EQ(0, count_wrong(part, PART, 1));
	set_breakpoint(&taking, true);
	watched = (uintptr_t)part;
	before_ioctl = watch;
	ASSERT_EQ(0, pthread_create(&reader, NULL, read_all, rest));
	wait_until_reached(&taking);
	ASSERT_EQ(0, pthread_create(&mover, NULL, move_part, part));
	wait_for_waiter();
	set_breakpoint(&taking, false);
	pthread_join(mover, &moved);
	pthread_join(reader, &wrong);
	EXPECT_EQ(0, (size_t)wrong);
	ASSERT_LT(0, (int64_t)moved);
	EXPECT_NE((int64_t)part, (int64_t)moved);
	EXPECT_EQ(0, count_wrong(moved, PART, 1));
	EXPECT_EQ(0, count_wrong(rest, REST, 2));
	EXPECT_EQ(0, count_wrong(moved, PART, 1));
	before_ioctl = NULL;
}

/* ---- a store that doesn't answer ---- */

static struct breakpoint putting, discarding;
static const struct far_store_ops *quick;

static int put_slowly(struct far_store *store, uint64_t first, uint64_t count, const void *buf)
{
	pass(&putting);
	return quick->put(store, first, count, buf);
}

static void discard_slowly(struct far_store *store, uint64_t first, uint64_t count)
{
	pass(&discarding);
	quick->discard(store, first, count);
}

static void clear_breakpoints(void)
{
	set_breakpoint(&putting, false);
	set_breakpoint(&discarding, false);
}

static sigjmp_buf gone;

/* Its memory is gone. */
static void on_segv(int sig)
{
	siglongjmp(gone, sig);
}

static bool finished;

/* As a task does that may be killed meanwhile */
static void *fill_all(void *arg)
{
	signal(SIGSEGV, on_segv);
	if (!sigsetjmp(gone, 1))
		fill(arg, REST, 3);
	__atomic_store_n(&finished, true, __ATOMIC_RELEASE);
	return NULL;
}

/* A thread waits for a page in the pager, or has no need to. */
static void wait_for_filler(void)
{
	bool waits = false;

	while (!waits && !__atomic_load_n(&finished, __ATOMIC_ACQUIRE)) {
		pause_for(1);
		pthread_mutex_lock(&far.lock);
		waits = far.waiting;
		pthread_mutex_unlock(&far.lock);
	}
}

static void end_task(unsigned int row)
{
	while (!far_job_ops.end(row))
		pause_for(1);
}

FIXTURE(slow_store) { char unused; };
FIXTURE_VARIANT(slow_store) { const char *protocol; };
FIXTURE_VARIANT_ADD(slow_store, pvas) { "pvas" };
FIXTURE_VARIANT_ADD(slow_store, r3) { "r3" };
FIXTURE_VARIANT_ADD(slow_store, r58) { "r58" };
FIXTURE_VARIANT_ADD(slow_store, r77) { "r77" };

FIXTURE_SETUP(slow_store)
{
	static struct far_store_ops slow;

	ASSERT_EQ(0, open_job(variant->protocol));
	quick = far.stripe.store[0]->ops;
	slow = *quick;
	slow.put = put_slowly;
	slow.discard = discard_slowly;
	far.stripe.store[0]->ops = &slow;
}

FIXTURE_TEARDOWN(slow_store)
{
	clear_breakpoints();
	if (!far.left)
		far_job_ops.close();
}

/* Memory is freed, in each way; meanwhile others page, and look on. */
TEST_F(slow_store, nobody_waits_for_discards)
{
	uint64_t *part = map(0, REST), *rest = map(1, REST);

	ASSERT_TRUE(part && rest);
	fill(part, REST, 1);
	fill(rest, REST, 2);
	set_breakpoint(&discarding, true);
	ASSERT_EQ(0, far_job_ops.unmap((uintptr_t)part, PART));
	wait_until_reached(&discarding);
	ASSERT_EQ(0, far_job_ops.discard((uintptr_t)part + PART, PART));
	EXPECT_EQ(0, part[PART / 8]);
	EXPECT_LT(0, far_job_ops.move((uintptr_t)part + PART, REST - PART, PART, 0));
	EXPECT_EQ(0, count_wrong(rest, REST, 2));
	end_task(0);
	EXPECT_LT(0, counters().stored);
	EXPECT_EQ(1, discarding.waiting);
}

/* A page that is put is newer than a discard of its place, which waits still or is under way. */
TEST_F(slow_store, discards_come_before_puts)
{
	uint64_t *part = map(0, REST), *rest = map(1, REST);
	pthread_t filler;
	bool told = false;

	ASSERT_TRUE(part && rest);
	fill(part, REST, 1);
	fill(rest, REST, 2);
	set_breakpoint(&discarding, true);
	end_task(0);
	wait_until_reached(&discarding);
	/* There are no other places. */
	part = map(0, REST);
	ASSERT_NE(NULL, part);
	ASSERT_EQ(0, pthread_create(&filler, NULL, fill_all, part));
	wait_for_filler();
	set_breakpoint(&discarding, false);
	pthread_join(filler, NULL);
	EXPECT_EQ(0, count_wrong(part, REST, 3));
	EXPECT_EQ(0, count_wrong(rest, REST, 2));
	while (!told) {
		pause_for(1);
		pthread_mutex_lock(&far.lock);
		told = !far.stale_count && !far.discards;
		pthread_mutex_unlock(&far.lock);
	}
	EXPECT_EQ(0, count_wrong(part, REST, 3));
}

/* A task ends while a page of it is on its way to the store: its end can be looked for again. */
TEST_F(slow_store, end_waits_for_no_put)
{
	uint64_t *part = map(0, REST);
	pthread_t filler;

	ASSERT_NE(NULL, part);
	set_breakpoint(&putting, true);
	ASSERT_EQ(0, pthread_create(&filler, NULL, fill_all, part));
	wait_until_reached(&putting);
	EXPECT_EQ(0, far_job_ops.end(0));
	EXPECT_EQ(0, far_job_ops.end(0));
	set_breakpoint(&putting, false);
	end_task(0);
	pthread_join(filler, NULL);
	EXPECT_EQ(0, counters().allocated);
}

/* The job ends: threads that never come back from the store are left. */
TEST_F(slow_store, close_does_not_wait_for_ever)
{
	uint64_t *part = map(0, REST);
	pthread_t filler;

	ASSERT_NE(NULL, part);
	set_breakpoint(&putting, true);
	ASSERT_EQ(0, pthread_create(&filler, NULL, fill_all, part));
	wait_until_reached(&putting);
	EXPECT_EQ(0, far_job_ops.end(0));
	far_job_ops.close();
	EXPECT_TRUE(far.left);
}

/* Those who only look on do not even wait for a thread of the pager. */
TEST_F(slow_store, counters_need_no_lock)
{
	ASSERT_NE(NULL, map(0, REST));
	pthread_mutex_lock(&far.lock);
	EXPECT_EQ(REST, counters().allocated);
	pthread_mutex_unlock(&far.lock);
}

TEST_HARNESS_MAIN
