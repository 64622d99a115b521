// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The pager of a job, without a job: its functions are called as the user backend does for tasks,
 * and this process' threads touch the memory. The kernel and the store are made to wait at gates,
 * so that each test has the order of events that it is about.
 */
#include <linux/userfaultfd.h>
#include <pthread.h>
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
#define CAPACITY (512 * PAGE)
#define PART (16 * PAGE)
#define REST (96 * PAGE)	/* more than the budget */

/* ---- gates ---- */

/**
 * struct gate - where threads wait until it is opened
 * @closed:	for those who come now
 * @waiting:	how many wait there
 */
struct gate {
	bool closed;
	unsigned int waiting;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void pass(struct gate *gate)
{
	pthread_mutex_lock(&lock);
	gate->waiting++;
	pthread_cond_broadcast(&changed);
	while (gate->closed)
		pthread_cond_wait(&changed, &lock);
	gate->waiting--;
	pthread_mutex_unlock(&lock);
}

static void set_gate(struct gate *gate, bool closed)
{
	pthread_mutex_lock(&lock);
	gate->closed = closed;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void wait_until_reached(const struct gate *gate)
{
	pthread_mutex_lock(&lock);
	while (!gate->waiting)
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

static struct gate taking;
static uintptr_t watched;

/* The first page of those watched that is taken out stays at the gate. */
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
TEST_F_TIMEOUT(exchange, moved_while_it_goes_out, 60)
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
	set_gate(&taking, true);
	watched = (uintptr_t)part;
	before_ioctl = watch;
	ASSERT_EQ(0, pthread_create(&reader, NULL, read_all, rest));
	wait_until_reached(&taking);
	ASSERT_EQ(0, pthread_create(&mover, NULL, move_part, part));
	wait_for_waiter();
	set_gate(&taking, false);
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

TEST_HARNESS_MAIN
