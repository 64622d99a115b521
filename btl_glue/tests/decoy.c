// SPDX-License-Identifier: GPL-2.0-only
/*
 * A rank looks for a peer where it most likely is, before it searches the space: rank 0,
 * in the first partition, exports a useless entry under rank 2's name, and rank 1 must not
 * see it. Run it with a queue_size of PORT bytes: by that this program's mmap() knows when
 * the component is initialised, and before all ranks wait for each other.
 */
#include "../btl_pvas.h"

#include <mpi.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../libpvas/pvas.h"

#define PORT 28672

static struct mca_btl_pvas_modex decoy;
static int done;

static void put_decoy(void)
{
	const opal_process_name_t me = OPAL_PROC_MY_NAME;
	char name[64];

	done = 1;
	snprintf(name, sizeof(name), "btl pvas %x.%x", me.jobid, me.vpid + 2);
	if (!me.vpid && pvas_name_export(name, &decoy))
		_exit(2);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (len == PORT)
		put_decoy();
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

int main(int argc, char **argv)
{
	int rank, token = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!done)
		MPI_Abort(MPI_COMM_WORLD, 3);
	if (rank == 1)
		MPI_Send(&token, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);
	if (rank == 2)
		MPI_Recv(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Finalize();
	return 0;
}
