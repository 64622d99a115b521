// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ranks that are bound to fewer processors than there are ranks: one that waits yields at once,
 * from when they are bound until they no longer are.
 *
 *	bound before|after PROCESSORS		bind them itself, before or after MPI_Init()
 *	bound already				another program has
 */
#define COUNTER_PREFIX "coll_pvas_"
#include "common.h"
#include "counter.h"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Waits of each rank that must be as expected; others, that something disturbed, don't count. */
#define ENOUGH 20

/* Nanoseconds for which the next root lets others wait */
#define WAIT 300000

static struct counter waits;
static long yields;

/* In the place of libc's, which the component would call */
int sched_yield(void)
{
	yields++;
	return (int)syscall(SYS_sched_yield);
}

/* Asleep, so that the others get this processor, and wait */
static void let_wait(void)
{
	nanosleep(&(struct timespec) { .tv_nsec = WAIT }, NULL);
}

/* Each call of the progress function in vain comes with a yield, or nearly none does. */
static int as_expected(long long waited, int yielding)
{
	return yielding ? yields && 2 * yields >= waited : waited >= 50 && yields * 50 <= waited;
}

/* Returns when all ranks have waited so. */
static void wait_often(int yielding)
{
	int i, value, enough = 0, mine = 0;
	long long before;

	for (i = 0; !enough; i++) {
		if (rank == i % size)
			let_wait();
		value = rank == i % size ? i : -1;
		before = counter_read(&waits);
		yields = 0;
		MPI_Bcast(&value, 1, MPI_INT, i % size, MPI_COMM_WORLD);
		mine += as_expected(counter_read(&waits) - before, yielding);
		value = mine >= ENOUGH;
		MPI_Allreduce(&value, &enough, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("%d rounds to %d waits %s yielding\n", i, ENOUGH, yielding ? "with" : "without");
}

/* Bind this process to the first @nr of its processors. */
static void bind_to(const cpu_set_t *all, int nr)
{
	cpu_set_t some;
	int i;

	CPU_ZERO(&some);
	for (i = 0; i < CPU_SETSIZE && CPU_COUNT(&some) < nr; i++)
		if (CPU_ISSET(i, all))
			CPU_SET(i, &some);
	if (sched_setaffinity(0, sizeof(some), &some))
		perror("sched_setaffinity");
}

/* All that the job may use, although the launcher has bound each rank to some of them */
static void get_all(cpu_set_t *all)
{
	memset(all, 0xff, sizeof(*all));
	sched_setaffinity(0, sizeof(*all), all);
	sched_getaffinity(0, sizeof(*all), all);
}

int main(int argc, char **argv)
{
	const char *when = argc > 1 ? argv[1] : "already";
	const int nr = argc > 2 ? atoi(argv[2]) : 1;
	cpu_set_t all;

	if (strcmp(when, "already"))
		get_all(&all);
	if (!strcmp(when, "before"))
		bind_to(&all, nr);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	counters_begin();
	counter_find(&waits, "waits");
	if (!waits.found) {
		MPI_Abort(MPI_COMM_WORLD, 1);
		return 1;
	}
	if (!strcmp(when, "after")) {
		if (CPU_COUNT(&all) >= size)
			wait_often(0);
		bind_to(&all, nr);
	}
	wait_often(1);
	if (strcmp(when, "already") && CPU_COUNT(&all) >= size) {
		MPI_Barrier(MPI_COMM_WORLD);
		sched_setaffinity(0, sizeof(all), &all);
		wait_often(0);
	}
	MPI_Finalize();
	return 0;
}
