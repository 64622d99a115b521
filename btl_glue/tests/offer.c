// SPDX-License-Identifier: GPL-2.0-only
/*
 * A peer requests a fast box and is killed while we allocate it: we go on. Rank 1 is killed
 * in rank 0's mmap(), which this program provides.
 */
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BOX 8192		/* btl_pvas_fbox_size */
#define MESSAGES 60
#define MS 5000

struct victim {
	pid_t pid;
	void *page;
};

static struct victim victim;
static int killed;

/* The memory of a task is freed when it ends. */
static int is_mapped(void *page)
{
	unsigned char resident;

	return !mincore(page, 4096, &resident) || errno != ENOMEM;
}

static void kill_victim(void)
{
	int ms;

	kill(victim.pid, SIGKILL);
	for (ms = 0; is_mapped(victim.page) && ms < MS; ms++)
		usleep(1000);
	killed = ms < MS;
	victim.pid = 0;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (victim.pid && len == BOX)
		kill_victim();
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

static void victim_main(void)
{
	static _Alignas(4096) char page[4096];
	struct victim me = { getpid(), page };
	int i;

	MPI_Send(&me, sizeof(me), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	for (i = 0; i < MESSAGES; i++)
		MPI_Send(&i, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	struct victim got;
	int rank, flag;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1)
		victim_main();
	MPI_Recv(&got, sizeof(got), MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	victim = got;
	while (victim.pid)
		MPI_Iprobe(1, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	puts(killed ? "the peer was killed, and we go on" : "the peer was not killed");
	fflush(stdout);
	_exit(!killed);
}
