// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A rank in MPI_Finalize loses its processor between the look whether a peer is there and the
 * one into its memory. Meanwhile the peer completes its MPI_Finalize, and ends.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define MESSAGES	200	/* enough for a fast box */

static volatile bool finalizing;

static bool is_component(const void *address)
{
	Dl_info info;

	return dladdr(address, &info) && info.dli_fname && strstr(info.dli_fname, "mca_btl_pvas");
}

/* The component takes a lock at that place: this comes before libc's function. */
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static int (*real)(pthread_mutex_t *mutex);

	if (!real)
		real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
	if (finalizing && is_component(__builtin_return_address(0))) {
		finalizing = false;
		sleep(3);
	}
	return real(mutex);
}

int main(int argc, char **argv)
{
	int rank, i, x = 0, level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (i = 0; i < MESSAGES; i++) {
		if (rank == 0)
			MPI_Send(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
		else
			MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (rank == 0)
		finalizing = true;
	else
		sleep(2);
	MPI_Finalize();
	return 0;
}
