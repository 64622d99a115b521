// SPDX-License-Identifier: GPL-2.0-only
/*
 * The time of MPI_Neighbor_alltoall over several network devices: the last rank exchanges
 * messages with all others. With coll/pvas and without it in turns, in one job; a sample is the
 * time of the rank that takes longest. One line a size: neighbors, bytes, both medians in ms, and
 * their ratio.
 *
 *	devices SAMPLES BYTES...
 */
#include "../tests/own_net.h"

#include <mpi.h>

#define MOST 64

enum { OURS, OTHER, NR };

static int rank, size, degree;

static MPI_Comm make_star(const char *preference)
{
	int neighbors[MOST] = { size - 1 }, i;
	MPI_Comm star, chosen;
	MPI_Info info;

	for (i = 0; rank == size - 1 && i < degree; i++)
		neighbors[i] = i;
	/* Their numbers serve as weights. */
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, neighbors, neighbors, degree,
				       neighbors, neighbors, MPI_INFO_NULL, 0, &star);
	MPI_Info_create(&info);
	if (preference)
		MPI_Info_set(info, "ompi_comm_coll_preference", preference);
	MPI_Comm_dup_with_info(star, info, &chosen);
	MPI_Info_free(&info);
	MPI_Comm_free(&star);
	return chosen;
}

static double sample(MPI_Comm comm, char *s, char *r, int n)
{
	double begin, mine, longest;

	memset(s, 1, (size_t)n * degree);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	MPI_Neighbor_alltoall(s, n, MPI_CHAR, r, n, MPI_CHAR, comm);
	mine = MPI_Wtime() - begin;
	MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return 1e3 * longest;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void measure(const MPI_Comm comms[NR], int n, int samples)
{
	char *s = malloc((size_t)n * degree), *r = calloc(degree, n);
	const int middle = samples / 2;
	double *times[NR];
	int i, k;

	for (k = 0; k < NR; k++)
		times[k] = malloc(samples * sizeof(**times));
	for (i = -1; i < samples; i++)
		for (k = 0; k < NR; k++)
			times[k][i < 0 ? 0 : i] = sample(comms[k], s, r, n);
	for (k = 0; k < NR; k++)
		qsort(times[k], samples, sizeof(**times), compare);
	if (rank == 0)
		printf("%d %d %.2f %.2f %.2f\n", size - 1, n, times[OURS][middle],
		       times[OTHER][middle], times[OTHER][middle] / times[OURS][middle]);
	fflush(stdout);
	for (k = 0; k < NR; k++)
		free(times[k]);
	free(s);
	free(r);
}

int main(int argc, char **argv)
{
	MPI_Comm comms[NR];
	int i;

	own_net();
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	degree = rank == size - 1 ? size - 1 : 1;
	comms[OURS] = make_star(NULL);
	comms[OTHER] = make_star("^pvas");
	for (i = 2; i < argc && size <= MOST; i++)
		measure(comms, atoi(argv[i]), atoi(argv[1]));
	MPI_Finalize();
	return 0;
}
