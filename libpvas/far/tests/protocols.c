// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The DLM paper's protocols: how they suspend threads, and requests to the pager meanwhile. That no
 * store is lost, and what becomes of failures, is tested by pager.c and faults.c with them, too.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "far_test.h"

#define PAGE ((size_t)65536)
#define RAM (64 * PAGE)
#define PAGES 256
#define SIZE (PAGES * PAGE)

FIXTURE(protocols)
{
	volatile char *p;
};

FIXTURE_VARIANT(protocols)
{
	struct how how;
};

FIXTURE_VARIANT_ADD(protocols, r3) { { "zip", PAGE, .protocol = "r3" } };
FIXTURE_VARIANT_ADD(protocols, r58) { { "zip", PAGE, .protocol = "r58" } };
FIXTURE_VARIANT_ADD(protocols, r77) { { "zip", PAGE, .protocol = "r77" } };

FIXTURE_SETUP(protocols)
{
	uint64_t seed = 88172645463325252ULL;
	size_t i;

	mallopt(M_ARENA_MAX, 1);
	ASSERT_EQ(0, open_far(&variant->how, RAM, SIZE));
	ASSERT_EQ(0, pvas_far_alloc((void **)&self->p, SIZE));
	/* Not to be compressed, so that the store allocates much */
	for (i = 0; i < SIZE / 8; i++)
		((uint64_t *)self->p)[i] = next_random(&seed);
	for (i = 0; i < PAGES; i++)
		self->p[i * PAGE] = (char)i;
}

FIXTURE_TEARDOWN(protocols)
{
	EXPECT_EQ(0, pvas_far_close());
}

/* How many of the pages are not as written by the fixture */
static size_t count_wrong(volatile char *p)
{
	size_t i, wrong = 0;

	for (i = 0; i < PAGES; i++)
		wrong += p[i * PAGE] != (char)i;
	return wrong;
}

/* ---- what happens beside it ---- */

static bool stop;

/* Runs all the time */
static void *spin(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		;
	return arg;
}

static void *spin_unsuspended(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	return spin(arg);
}

/* Has a lock that the store needs, most of the time: there is one arena. */
static void *allocate(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		free(malloc((size_t)64 << 10));
	return arg;
}

/* Has the pager's lock, most of the time */
static void *call_pager(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		pvas_far_advise(arg, SIZE, PVAS_FAR_NORMAL);
	return NULL;
}

/* Sleeps, and counts what interrupts it */
static void *nap(void *arg)
{
	struct timespec t = { .tv_nsec = 1000000 };
	size_t *interrupted = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		*interrupted += nanosleep(&t, NULL) != 0;
	return NULL;
}

/* Read all pages, so often. Returns how many were wrong. */
static size_t page_beside(volatile char *p, void *(*run)(void *arg), void *arg, int rounds)
{
	pthread_t thread;
	size_t wrong = 0;
	int i;

	stop = false;
	pthread_create(&thread, NULL, run, arg);
	for (i = 0; i < rounds; i++)
		wrong += count_wrong(p);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	return wrong;
}

TEST_F(protocols, who_runs_is_suspended)
{
	uint64_t before = counters().suspended;

	EXPECT_EQ(0, page_beside(self->p, spin, NULL, 3));
	EXPECT_LT(before, counters().suspended);
}

TEST_F(protocols, who_blocks_signals_is_not)
{
	uint64_t before = counters().suspended;

	EXPECT_EQ(0, page_beside(self->p, spin_unsuspended, NULL, 3));
	/* Its first moments are without the mask. */
	EXPECT_GE(before + 100, counters().suspended);
}

/* But for a few that fell asleep just when they were looked at */
TEST_F(protocols, who_sleeps_is_not_interrupted)
{
	size_t interrupted = 0;

	EXPECT_EQ(0, page_beside(self->p, nap, &interrupted, 3));
	EXPECT_GE(3 * PAGES / 10, interrupted);
}

TEST_F(protocols, who_has_a_lock_of_malloc)
{
	EXPECT_EQ(0, page_beside(self->p, allocate, NULL, 4));
}

TEST_F(protocols, who_has_the_lock_of_the_pager)
{
	EXPECT_EQ(0, page_beside(self->p, call_pager, (void *)self->p, 4));
}

/* ---- requests that are no faults ---- */

TEST_F(protocols, pins_and_advice)
{
	char *p = (char *)self->p;
	size_t i;

	ASSERT_EQ(0, pvas_far_pin(p, 8 * PAGE));
	EXPECT_EQ(0, pvas_far_advise(p + 100 * PAGE, 20 * PAGE, PVAS_FAR_WILL_NEED));
	EXPECT_EQ(0, count_wrong(self->p));
	/* To be read by the kernel, it must be there. */
	for (i = 0; i < 8; i++) {
		FILE *null = fopen("/dev/null", "we");

		ASSERT_NE(NULL, null);
		EXPECT_EQ(PAGE, (size_t)write(fileno(null), p + i * PAGE, PAGE));
		fclose(null);
	}
	EXPECT_EQ(0, pvas_far_unpin(p, 8 * PAGE));
	EXPECT_EQ(0, pvas_far_advise(p, PAGE, PVAS_FAR_DISCARD));
	EXPECT_EQ(0, p[0]);
	EXPECT_EQ(0, count_wrong(self->p));
}

/* Pages change places in the stores; what is freed leaves no room behind. */
TEST_F(protocols, room_in_the_stores)
{
	uint64_t seed = 88172645463325252ULL, i;

	for (i = 0; i < 20 * PAGES; i++)
		EXPECT_EQ((char)(next_random(&seed) % PAGES), self->p[seed % PAGES * PAGE]);
	EXPECT_LT(PAGES, counters().put);
	EXPECT_EQ(0, pvas_far_free((char *)self->p));
	wait_until_nothing_is_stored();
	ASSERT_EQ(0, pvas_far_alloc((void **)&self->p, SIZE));
	for (i = 0; i < PAGES; i++)
		EXPECT_EQ(0, self->p[i * PAGE]);
}

/* The steps make up the whole. */
TEST_F(protocols, times)
{
	struct pvas_far_counters c;
	uint64_t sum = 0;
	int i;

	EXPECT_EQ(0, count_wrong(self->p));
	c = counters();
	for (i = 0; i < PVAS_FAR_STEPS; i++)
		sum += c.step[i];
	EXPECT_EQ(c.waited, sum);
	EXPECT_LE(PAGES, c.exchanges);
	EXPECT_EQ(0, c.ahead + c.returned + c.dropped);
}

/* ---- failures ---- */

TEST(unknown)
{
	struct how how = { "zip", PAGE, .protocol = "r99" };

	EXPECT_EQ(-EINVAL, open_far(&how, RAM, SIZE));
	EXPECT_STREQ("there is no protocol 'r99' (pvas, r3, r58 or r77)", pvas_far_error());
	setenv("PVAS_FAR_PROTOCOL", "R77", 1);
	how.protocol = NULL;
	EXPECT_EQ(-EINVAL, open_far(&how, RAM, SIZE));
	setenv("PVAS_FAR_PROTOCOL", "r77", 1);
	ASSERT_EQ(0, open_far(&how, RAM, SIZE));
	EXPECT_EQ(0, pvas_far_close());
}

static void ignore(int sig)
{
	(void)sig;
}

TEST(no_signal_is_left)
{
	struct how how = { "zip", PAGE, .protocol = "r77" };
	int sig;

	for (sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		signal(sig, ignore);
	EXPECT_EQ(-EBUSY, open_far(&how, RAM, SIZE));
	signal(SIGRTMIN, SIG_DFL);
	/* As often as wanted: it takes one signal, once. */
	for (sig = 0; sig < 3; sig++) {
		ASSERT_EQ(0, open_far(&how, RAM, SIZE));
		EXPECT_EQ(0, pvas_far_close());
	}
}

TEST_HARNESS_MAIN
