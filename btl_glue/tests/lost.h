/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A rank becomes another program, which no launcher reports, while all others wait for it on a
 * machine where each call of the progress function costs a time slice: sched_yield() takes 10 ms.
 * They must notice within a number of these, which does not depend on the number of ranks.
 */
#ifndef PVAS_TEST_LOST_H
#define PVAS_TEST_LOST_H

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_YIELDS 60

static int lost_counting, lost_yields;

/* Called by Open MPI and its components */
int sched_yield(void)
{
	if (!lost_counting)
		return syscall(SYS_sched_yield);
	usleep(10000);
	if (++lost_yields > MOST_YIELDS) {
		fprintf(stderr, "not noticed while %d time slices went by\n", MOST_YIELDS);
		_exit(2);
	}
	return 0;
}

static int lost_is_asleep(int pid)
{
	char path[40], name[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "r");
	if (f && !fgets(name, sizeof(name), f))
		*name = '\0';
	if (f)
		fclose(f);
	return !strcmp(name, "sleep\n");
}

/* Returns in the others once rank @lost is another program. */
static void lose(int lost)
{
	int rank, pid = getpid();

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Bcast(&pid, 1, MPI_INT, lost, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == lost) {
		execl("/bin/sleep", "sleep", "60", NULL);
		perror("execl");
		_exit(3);
	}
	while (!lost_is_asleep(pid))
		usleep(1000);
	lost_counting = 1;
}

#endif /* PVAS_TEST_LOST_H */
