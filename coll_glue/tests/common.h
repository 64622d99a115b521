/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Random numbers that all ranks have in common, or their own; and a communicator of coll/basic. */
#ifndef PVAS_TEST_COLL_COMMON_H
#define PVAS_TEST_COLL_COMMON_H

#include <mpi.h>
#include <mpi-ext.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In Open MPI 4.1 they are extensions. */
#if OMPI_MAJOR_VERSION >= 5
#define PERSISTENT(Name) MPI_##Name##_init
#else
#define PERSISTENT(Name) MPIX_##Name##_init
#endif

static int rank, size;

static inline uint64_t mix(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static inline int below(uint64_t *state, int n)
{
	return n > 0 ? (int)(mix(state) % (unsigned int)n) : 0;
}

/* Ranks as in @comm, but without coll/pvas and coll/tuned */
static inline MPI_Comm basic_comm(MPI_Comm comm)
{
	MPI_Comm basic;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "ompi_comm_coll_preference", "basic,libnbc,^pvas,tuned,sm,han,adapt");
	MPI_Comm_dup_with_info(comm, info, &basic);
	MPI_Info_free(&info);
	return basic;
}

#endif /* PVAS_TEST_COLL_COMMON_H */
