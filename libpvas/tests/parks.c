// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: how long the other threads of a task wait for one that execs. Threads of this
 * process wait; there is no space.
 */
#include <pthread.h>
#include <unistd.h>

#include "clock.h"
#include "helpers.h"
#include "user/stay.h"
#include "kselftest_harness.h"

#define THREADS	4
#define ROUNDS	200
#define OPEN_MS	200	/* of stay_threads.c */

static struct user_part part = { .pid = 1 };	/* whose first thread none of these is */

static void *park(void *unused)
{
	user_stay_park(&part);
	return unused;
}

static void begin(pthread_t *threads, int n)
{
	int i;

	__atomic_store_n(&part.parks, PARK_WAIT, __ATOMIC_RELEASE);
	for (i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, park, NULL);
	while (__atomic_load_n(&part.nr_parked, __ATOMIC_ACQUIRE) < n)
		usleep(1000);
}

static void end(const pthread_t *threads, int n)
{
	user_stay_release_others(&part);
	while (n--)
		pthread_join(threads[n], NULL);
}

/* Not from when they began to wait, for another one that came late */
TEST(for_its_file_since_it_is_opened)
{
	pthread_t thread;
	int64_t begun;

	begin(&thread, 1);
	usleep(OPEN_MS * 1500);
	begun = now_ms();
	user_stay_opens(&part);
	while (__atomic_load_n(&part.parks, __ATOMIC_ACQUIRE) == PARK_OPENS)
		usleep(100);
	EXPECT_GE(now_ms() - begun, OPEN_MS);
	EXPECT_EQ(part.parks, PARK_NOT);
	EXPECT_EQ(user_stay_opened(&part), 0);
	end(&thread, 1);
}

/* When it is open, they all wait, or none has to: then they can be made to again. */
TEST(the_file_is_open_just_then)
{
	pthread_t threads[THREADS];
	int i, waited = 0;

	for (i = 0; i < ROUNDS; i++) {
		begin(threads, THREADS);
		user_stay_opens(&part);
		__atomic_store_n(&part.opens_since, 0, __ATOMIC_RELAXED);
		usleep(i * 10);
		if (user_stay_opened(&part)) {
			EXPECT_EQ(part.parks, PARK_WAIT);
			waited++;
		} else {
			EXPECT_EQ(part.parks, PARK_NOT);
		}
		end(threads, THREADS);
	}
	TH_LOG("%d of %d times they waited", waited, ROUNDS);
}

TEST_HARNESS_MAIN
