/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the two process managers, PMI-1 and PMIx: the job, and what they report of it. */
#ifndef PVASRUN_MPI_JOB_H
#define PVASRUN_MPI_JOB_H

#include "bind.h"
#include "event.h"
#include "job.h"
#include "output.h"

#define MPI_NAME_LEN 64

/* Functions that a process manager calls, with @arg */
struct mpi_callbacks {
	void *arg;
	void (*initialized)(void *arg, unsigned int rank);
	void (*finalized)(void *arg, unsigned int rank);
	/* connection closed without finalize; all that the rank sent has been handled */
	void (*lost)(void *arg, unsigned int rank);
	void (*aborted)(void *arg, unsigned int rank, int code, const char *text);
	void (*spawn_refused)(void *arg, unsigned int rank, const char *program);
	void (*failed)(void *arg, const char *why);
};

struct mpi_job {
	const struct options *opt;
	struct loop *loop;
	const struct job *tasks;
	const struct places *places;
	struct output *output;
	char name[MPI_NAME_LEN];	/* secret, and unique to this job */
	struct mpi_callbacks callbacks;
};

static inline unsigned int mpi_job_app(const struct mpi_job *job, unsigned int rank)
{
	return job->tasks->tasks[rank].app - job->opt->apps;
}

#endif
