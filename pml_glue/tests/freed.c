// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPI_Request_free while another thread completes the request: its memory may be used again
 * only afterwards, or a receive would complete that no message came for.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "common.h"

#define ROUNDS 400
#define GAP_US 200

static volatile bool stop;
static volatile bool slow;
static MPI_Comm others;
static __thread bool progresses;

static void pause_us(long us)
{
	const struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&time, NULL);
}

/* The thread that completes requests loses its processor when it has released a lock. */
int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*real)(pthread_mutex_t *);
	int err;

	if (!real)
		real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	err = real(mutex);
	if (progresses && slow)
		pause_us(GAP_US);
	return err;
}

static void *progress(void *unused)
{
	int flag;

	(void)unused;
	progresses = true;
	while (!stop)
		MPI_Iprobe(MPI_ANY_SOURCE, 5, others, &flag, MPI_STATUS_IGNORE);
	return NULL;
}

static void free_one(void)
{
	static int out, in;
	MPI_Request send, receive;
	int flag;

	slow = true;
	MPI_Issend(&out, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &send);
	pause_us(rand() % (8 * GAP_US));
	MPI_Request_free(&send);
	MPI_Irecv(&in, 1, MPI_INT, 1, 99, MPI_COMM_WORLD, &receive);
	pause_us(2 * GAP_US);
	slow = false;
	MPI_Test(&receive, &flag, MPI_STATUS_IGNORE);
	check(!flag, "a receive completed without a message");
	MPI_Cancel(&receive);
	MPI_Wait(&receive, MPI_STATUS_IGNORE);
}

static void take_all(void)
{
	int i, in;

	for (i = 0; i < ROUNDS; i++)
		MPI_Recv(&in, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	int provided, i;
	pthread_t thread;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_dup(MPI_COMM_WORLD, &others);
	check(provided == MPI_THREAD_MULTIPLE, "no threads");
	if (rank) {
		take_all();
	} else {
		check(!pthread_create(&thread, NULL, progress, NULL), "no thread");
		for (i = 0; i < ROUNDS; i++)
			free_one();
		stop = true;
		pthread_join(thread, NULL);
	}
	return finish();
}
