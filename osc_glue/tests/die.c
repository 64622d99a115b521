// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: die kill|exec|stop STATE
 *
 * The last rank is killed, or becomes another program, in a state in which others need it: they
 * must end soon, with one line that names it. Or it is stopped, and continued after a while: then
 * all goes on. States: exclusive, shared, lock_all, fence, start, wait, free, poll, put,
 * accumulate, create. unmapped: it has unmapped the memory of its window.
 * A number: a random moment, different for each number.
 */
#include "common.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define BYTES (1 << 20)

static const char *how, *state;
static char *mem, *buf;
static MPI_Win win;
static int victim, last;

/* Rank 0 continues what is stopped. */
static void alarm_handler(int sig)
{
	(void)sig;
	kill(victim, SIGCONT);
}

static void end(void)
{
	if (rank != last)
		return;
	if (*how == 'e')
		execl("/bin/true", "true", NULL);
	raise(*how == 's' ? SIGSTOP : SIGKILL);
}

/* So that the last rank is in its loop first, or comes late */
static void pause_ms(int ms)
{
	nanosleep(&(struct timespec) { ms / 1000, ms % 1000 * 1000000L }, NULL);
}

static void with_lock(int type)
{
	if (rank == last) {
		MPI_Win_lock(type, 0, 0, win);
		MPI_Barrier(MPI_COMM_WORLD);
		end();
		MPI_Win_unlock(0, win);
		return;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
	MPI_Win_unlock(0, win);
}

static void with_lock_all(void)
{
	MPI_Win_lock_all(0, win);
	if (rank == last) {
		MPI_Put(buf, 1, MPI_CHAR, 0, 0, 1, MPI_CHAR, win);
		end();
	}
	MPI_Win_unlock_all(win);
	pause_ms(100);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
	MPI_Win_unlock(0, win);
}

/* Others start when it has not posted, or wait when it has not completed. */
static void with_groups(int is_target)
{
	MPI_Group world, one, others;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &last, &one);
	MPI_Group_excl(world, 1, &last, &others);
	if (rank == last) {
		if (!is_target)
			MPI_Win_start(others, 0, win);
		end();
		if (is_target)
			MPI_Win_post(others, 0, win);
		else
			MPI_Win_complete(win);
	}
	if (is_target && rank == last) {
		MPI_Win_wait(win);
	} else if (is_target) {
		MPI_Win_start(one, 0, win);
		MPI_Win_complete(win);
	} else if (rank != last) {
		MPI_Win_post(one, 0, win);
		MPI_Win_wait(win);
	}
	MPI_Group_free(&others);
	MPI_Group_free(&one);
	MPI_Group_free(&world);
}

/* Others wait for a value that it would put, by gets or by loads. */
static void with_poll(void)
{
	char value = 0;

	MPI_Win_lock_all(0, win);
	if (rank == last) {
		pause_ms(50);
		end();
		*buf = 42;
		for (victim = 0; victim < size; victim++)
			MPI_Put(buf, 1, MPI_CHAR, victim, 9, 1, MPI_CHAR, win);
	} else if (rank % 2) {
		for (; value != 42; MPI_Win_flush(rank, win))
			MPI_Get(&value, 1, MPI_CHAR, rank, 9, 1, MPI_CHAR, win);
	} else {
		while (((volatile char *)mem)[9] != 42)
			MPI_Win_sync(win);
	}
	MPI_Win_unlock_all(win);
}

/* It ends while others access its window, and it theirs. */
static void with_accesses(int accumulate)
{
	const int target = rank == last ? 0 : last;
	const double began = MPI_Wtime(), length = *how == 's' ? 0.3 : 20;
	int i;

	MPI_Win_lock_all(0, win);
	for (i = 0; MPI_Wtime() - began < length; i++) {
		if (i == 100)
			end();
		if (accumulate)
			MPI_Accumulate(buf, i % 2 ? 8 : BYTES / 8, MPI_DOUBLE, target, 0,
				       i % 2 ? 8 : BYTES / 8, MPI_DOUBLE, MPI_SUM, win);
		else
			MPI_Put(buf, BYTES, MPI_CHAR, target, 0, BYTES, MPI_CHAR, win);
		MPI_Win_flush(target, win);
	}
	MPI_Win_unlock_all(win);
}

static void with_window(int create)
{
	MPI_Win another = win;
	int cell;

	if (!create)
		MPI_Win_create(&cell, sizeof(cell), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &another);
	end();
	if (create)
		MPI_Win_create(&cell, sizeof(cell), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &another);
	MPI_Win_free(&another);
}

static void with_fence(void)
{
	MPI_Win_fence(0, win);
	MPI_Put(buf, 8, MPI_CHAR, last, 0, 8, MPI_CHAR, win);
	end();
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

/* The last rank's window is no memory any more. */
static void with_unmapped(void)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MPI_Win another;

	MPI_Win_create(at, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &another);
	munmap(at, BYTES);
	MPI_Win_lock_all(0, another);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		MPI_Put(buf, BYTES, MPI_CHAR, last, 0, BYTES, MPI_CHAR, another);
	MPI_Win_unlock_all(another);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void kill_self(int sig)
{
	(void)sig;
	raise(SIGKILL);
}

/* At a random moment, while all do all kinds of things to all */
static void at_random(uint64_t seed)
{
	struct itimerval soon = { .it_value.tv_usec = 1 + below(&seed, 30000) };
	uint64_t own = seed + rank;
	double old;
	int i, n, target;

	signal(SIGALRM, kill_self);
	if (rank == last)
		setitimer(ITIMER_REAL, &soon, NULL);
	for (i = 0;; i++) {
		target = below(&own, size);
		n = 1 << below(&own, 13);
		MPI_Win_lock(below(&own, 2) ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, win);
		MPI_Put(buf, n, MPI_DOUBLE, target, 0, n, MPI_DOUBLE, win);
		MPI_Get_accumulate(buf, 3, MPI_DOUBLE, buf + 64, 3, MPI_DOUBLE, target, 0, 3,
				   MPI_DOUBLE, MPI_SUM, win);
		MPI_Accumulate(buf, n, MPI_DOUBLE, target, 0, n, MPI_DOUBLE, MPI_SUM, win);
		MPI_Fetch_and_op(buf, &old, MPI_DOUBLE, target, 0, MPI_SUM, win);
		MPI_Win_unlock(target, win);
		if (i % 16)
			continue;
		MPI_Win_fence(0, win);
		MPI_Get(buf, n, MPI_DOUBLE, target, 0, n, MPI_DOUBLE, win);
		MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	}
}

static void all_states(void)
{
	if (!strcmp(state, "unmapped"))
		with_unmapped();
	else if (!strcmp(state, "exclusive"))
		with_lock(MPI_LOCK_EXCLUSIVE);
	else if (!strcmp(state, "shared"))
		with_lock(MPI_LOCK_SHARED);
	else if (!strcmp(state, "lock_all"))
		with_lock_all();
	else if (!strcmp(state, "fence"))
		with_fence();
	else if (!strcmp(state, "start") || !strcmp(state, "wait"))
		with_groups(*state == 's');
	else if (!strcmp(state, "free") || !strcmp(state, "create"))
		with_window(*state == 'c');
	else if (!strcmp(state, "poll"))
		with_poll();
	else
		with_accesses(*state == 'a');
}

int main(int argc, char **argv)
{
	how = argc > 2 ? argv[1] : "kill";
	state = argc > 2 ? argv[2] : "exclusive";
	begin(&argc, &argv);
	last = size - 1;
	victim = getpid();
	MPI_Bcast(&victim, 1, MPI_INT, last, MPI_COMM_WORLD);
	buf = calloc(BYTES, 1);
	MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	signal(SIGALRM, alarm_handler);
	if (!rank && *how == 's')
		alarm(1);
	MPI_Barrier(MPI_COMM_WORLD);
	if (atoi(state))
		at_random(atoi(state));
	all_states();
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_free(&win);
	free(buf);
	return finish();
}
