// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that finalized were in all partitions before this job's, as each rank's port says.
 * A rank that ends too early must be missed all the same. Run it with a queue_size of
 * PORT bytes: by that this program's mmap() knows the port.
 */
#include "../btl_pvas.h"

#include <mpi.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PORT 28672

static int prepared;

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *p = (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
	struct mca_btl_pvas_port *port = p;

	if (len == PORT && flags & MAP_ANONYMOUS && p != MAP_FAILED) {
		memset(port->finalized, 0xff, sizeof(port->finalized));
		prepared = 1;
	}
	return p;
}

int main(int argc, char **argv)
{
	int rank, size, i, in;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < size; i++)
		MPI_Sendrecv(&rank, 1, MPI_INT, i, 0, &in, 1, MPI_INT, i, 0, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!prepared)
		MPI_Abort(MPI_COMM_WORLD, 2);
	if (rank == size - 1)
		_exit(1);
	MPI_Recv(&in, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return 3;
}
