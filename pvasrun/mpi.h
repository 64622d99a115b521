/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * MPI programs as tasks: how ranks find each other, and what happens to the job when
 * one of them aborts or exits without MPI_Finalize.
 */
#ifndef PVASRUN_MPI_H
#define PVASRUN_MPI_H

#include "env.h"
#include "mpi_job.h"
#include "pmi1.h"
#include "pmix_host.h"
#include "pmix_proxy.h"
#include "session_dir.h"

enum rank_state { RANK_NOT_INITIALIZED, RANK_INITIALIZED, RANK_FINALIZED };

struct mpi {
	struct mpi_job common;		/* what PMI-1 and PMIx know of the job */
	struct job *job;
	enum rank_state *states;	/* of each rank; NULL: MPI is not used */
	bool any_rank;			/* one has called MPI_Init */
	bool aborting;			/* one has called MPI_Abort */
	bool pmix, pmi1;		/* the protocols in use */
	struct pmix_proxy proxy;
	struct pmix_host host;
	struct pmi1 pmi;
	bool all_direct;		/* each program is itself linked with MPI */
	bool any_direct;		/* one of them is */
	bool own_paths;			/* one of them has a DT_RPATH or DT_RUNPATH */
	struct session_dir shm;		/* in /dev/shm, if there is one */
	char shm_error[256];
};

/*
 * Prepare, for a job that may have MPI ranks. -errno if that fails and --mpi asked for it, or
 * a program is linked with MPI
 */
int mpi_open(struct mpi *mpi, const struct options *opt, struct loop *loop, struct job *job,
	     const struct places *places, struct output *output);

/*
 * The descriptor that a rank inherits: created before the rank is started, moved to its
 * number in the new process (async-signal-safe), and closed here afterwards. 0 or -errno
 */
int mpi_prepare_rank(struct mpi *mpi, unsigned int rank);
int mpi_setup_child(const struct mpi *mpi);

/* Its number there, or -1 */
int mpi_child_fd(const struct mpi *mpi);
void mpi_rank_started(struct mpi *mpi);

/* mpi_env.c: set the variables that a program's tasks need. */
int mpi_env(const struct mpi *mpi, struct env *env);

/* Messages that ranks have pvasrun print: see texts_wait() */
bool mpi_texts_wait(struct mpi *mpi);

/* After the tasks: wait for the last of these, a limited time. */
void mpi_flush(struct mpi *mpi);

/* After all tasks are started: serve their connections. */
void mpi_serve(struct mpi *mpi);
void mpi_close(struct mpi *mpi);

#endif
