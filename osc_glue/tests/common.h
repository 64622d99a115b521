/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The beginning and the end of all tests. */
#ifndef PVAS_TEST_OSC_COMMON_H
#define PVAS_TEST_OSC_COMMON_H

#include "../../coll_glue/tests/common.h"

#define COUNTER_PREFIX "osc_pvas_"
#include "../../btl_glue/tests/counter.h"

static int errors;

#define expect(condition, ...)						\
	do {								\
		if (!(condition) && errors++ < 10) {			\
			fprintf(stderr, "rank %d: ", rank);		\
			fprintf(stderr, __VA_ARGS__);			\
			fputc('\n', stderr);				\
		}							\
	} while (0)

static inline void begin(int *argc, char ***argv)
{
	int provided;

	MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static inline int finish(void)
{
	int sum = 1;

	MPI_Allreduce(&errors, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return sum != 0;
}

/* The class of an error code */
static inline int class_of(int code)
{
	int class;

	MPI_Error_class(code, &class);
	return class;
}

#endif /* PVAS_TEST_OSC_COMMON_H */
