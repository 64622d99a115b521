/* SPDX-License-Identifier: GPL-2.0-only */
/* PMI-1, the line protocol by which MPICH and its relatives find their peers. */
#ifndef PVASRUN_PMI1_H
#define PVASRUN_PMI1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"
#include "late_close.h"
#include "mpi_job.h"

#define PMI1_LINE 4096		/* MPICH's lines have up to 1024 bytes */

struct pmi1;

/* Values by key, with a limit of their size in bytes */
struct pmi1_store {
	void *tree;		/* see tsearch(3) */
	size_t used, room;
};

/* A socket pair: pvasrun's end. The rank has the other one, as PMI_FD. */
struct pmi1_rank {
	struct event event;
	struct pmi1 *pmi;
	bool in_barrier;
	bool in_spawn;		/* between "mcmd=spawn" and "endcmd", which is answered */
	bool spawn_told;	/* the user knows that it is refused */
	bool handling;		/* a line of the buffer: its handler may come back to read more */
	unsigned int used;
	char line[PMI1_LINE];
};

struct pmi1 {
	struct loop loop;	/* of all ranks */
	struct late_close late;
	const struct mpi_job *job;
	struct pmi1_rank *ranks;
	int child_fd_number;	/* PMI_FD: the same in each rank, and free in pvasrun */
	int child_fd;		/* the end for the rank that is being started */
	unsigned int in_barrier;
	char name[32];		/* not the job's, which is a secret of its ranks */
	struct pmi1_store pairs;	/* from "put" */
	struct pmi1_store names;	/* from "publish_name" */
};

/* For pmi1_close() before pmi1_open() */
void pmi1_init(struct pmi1 *pmi, const struct mpi_job *job);
int pmi1_open(struct pmi1 *pmi);
int pmi1_serve(struct pmi1 *pmi);
void pmi1_close(struct pmi1 *pmi);

/* Before a rank is started; in the new process (async-signal-safe); after it is started */
int pmi1_prepare_rank(struct pmi1 *pmi, unsigned int rank);
int pmi1_setup_child(const struct pmi1 *pmi);
void pmi1_rank_started(struct pmi1 *pmi);

/* Process all input received from ranks so far, and all of @rank, which has exited. */
void pmi1_read(struct pmi1 *pmi, unsigned int rank);

/* pmi1_store.c: false if there is no room for it, or no memory */
bool pmi1_store(struct pmi1_store *store, const char *key, const char *value);
const char *pmi1_find(const struct pmi1_store *store, const char *key);
bool pmi1_delete(struct pmi1_store *store, const char *key);
void pmi1_delete_all(struct pmi1_store *store);

#endif
