/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * MPI programs as tasks: what they need to find each other, and what becomes
 * of a job of theirs when one of them aborts, or ends while others count on it.
 */
#ifndef PVASRUN_MPI_H
#define PVASRUN_MPI_H

#include <limits.h>

#include "bind.h"
#include "env.h"
#include "event.h"
#include "gate.h"
#include "job.h"
#include "pmi1.h"
#include "scratch.h"

#define MPI_NAME_LEN 64
#define LOW_NUMBERS 16

struct mpi {
	const struct options *opt;
	struct loop *loop;
	struct job *job;
	const struct places *places;
	char name[MPI_NAME_LEN];	/* of this job: no other has it */
	char *state;		/* of each rank: not seen, inside, left */
	bool seen;		/* a rank has called */
	bool pmix;		/* which ways there are */
	bool pmi1;
	struct gate gate;
	struct pmi1 pmi;
	bool all_direct;	/* each task is an MPI program itself */
	bool own_paths;		/* one of them says where its libraries are */
	struct scratch tmp, shm;	/* of the second only if there is a /dev/shm */
	char no_shm[256];	/* there is one, but no place in it: why */
	struct pmix_host *host;	/* once the PMIx server runs */
	int low[LOW_NUMBERS];	/* descriptors that are kept free for it, until then */
};

/* Prepare, for a job that may turn out to be one. -errno: not possible, but asked for */
int mpi_open(struct mpi *mpi, const struct options *opt, struct loop *loop, struct job *job,
	     const struct places *places);

/*
 * What a rank inherits: made before it is started, put into its place in the new
 * process (async-signal-safe), and closed here afterwards. 0 or -errno
 */
int mpi_give(struct mpi *mpi, unsigned int rank);
int mpi_inherit(const struct mpi *mpi);
void mpi_given(struct mpi *mpi);

/* mpi_env.c: what the tasks of a program find in their environment */
int mpi_env(const struct mpi *mpi, struct env *env);

/* All tasks are started: answer their calls. */
void mpi_serve(struct mpi *mpi);
void mpi_close(struct mpi *mpi);

/* What a rank says of itself, whatever the protocol */
void mpi_entered(struct mpi *mpi, unsigned int rank);
void mpi_left(struct mpi *mpi, unsigned int rank);
void mpi_lost(struct mpi *mpi, unsigned int rank);	/* its connection has gone without that */
void mpi_aborted(struct mpi *mpi, unsigned int rank, int code, const char *text);
void mpi_spawn_refused(struct mpi *mpi, unsigned int rank, const char *program);

/* needs.c: is the program linked with an MPI library, does it say where libraries are? */
enum needs { NEEDS_MPI = 1, NEEDS_OWN_PATH = 2 };
unsigned int needs(const char *path);

/* The server of PMI-1 or PMIx can't do its work. */
void mpi_failed(struct mpi *mpi, const char *why);

/* pmix_host.c: the PMIx server, a plugin. Returns 0, -1: it is said why not. */
void pmix_host_reserve(struct mpi *mpi);
int pmix_host_start(void *mpi);
/* What it has told so far is taken notice of. */
void pmix_host_read(struct mpi *mpi);
void pmix_host_stop(struct mpi *mpi);

#endif
