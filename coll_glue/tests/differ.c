// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One rank has another count than all others, so that one of them passes the operation on and
 * another does not. The job must end.
 *
 *	differ OPERATION RANK COUNT [COUNT-OF-THE-OTHERS]
 */
#include "operations.h"

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "reduce";
	const int odd = argc > 2 ? atoi(argv[2]) : 0;
	const int odd_count = argc > 3 ? atoi(argv[3]) : 1, count = argc > 4 ? atoi(argv[4]) : 1;
	const int most = count > odd_count ? count : odd_count;
	double *s, *r;
	int i;

	MPI_Init(&argc, &argv);
	make_ring(MPI_COMM_WORLD);
	s = calloc((size_t)most * (size + 2), sizeof(*s));
	r = calloc((size_t)most * (size + 2), sizeof(*r));
	/* Lines have been used, and all ranks agree. */
	for (i = 0; i < 50; i++)
		operate(what, s, r, i % 2 ? count : odd_count, 0, MPI_COMM_WORLD);
	operate(what, s, r, rank == odd ? odd_count : count, 0, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	free(s);
	free(r);
	MPI_Finalize();
	return 0;
}
