/* SPDX-License-Identifier: GPL-2.0-only */
/* PMI-1, the line protocol by which MPICH and its relatives find their peers. */
#ifndef PVASRUN_PMI1_H
#define PVASRUN_PMI1_H

#include <stdbool.h>
#include <stdint.h>

#include "event.h"

#include <stddef.h>

#define PMI1_LINE 4096		/* theirs are up to 1024 */

struct mpi;
struct pmi1;

/* Texts by name, and so many bytes of them at most */
struct pmi1_store {
	void *tree;		/* see tsearch(3) */
	size_t used, room;
};

/* A rank's end of a pair of sockets; the rank has the other one, as PMI_FD. */
struct pmi1_rank {
	struct event event;
	struct pmi1 *pmi;
	bool in_barrier;
	bool in_spawn;		/* of whose many lines we answer the last one */
	unsigned int used;
	char line[PMI1_LINE];
};

struct pmi1 {
	struct loop loop;	/* of all ranks */
	struct mpi *mpi;
	struct pmi1_rank *ranks;
	int number;		/* PMI_FD: the same one in each rank, and free in pvasrun */
	int theirs;		/* the end of the rank that is being started */
	unsigned int waiting;	/* in the barrier */
	struct pmi1_store pairs;	/* "key": what ranks have put */
	struct pmi1_store names;	/* published */
};

int pmi1_open(struct pmi1 *pmi, struct mpi *mpi);
int pmi1_serve(struct pmi1 *pmi);
void pmi1_close(struct pmi1 *pmi);

/* Before a rank is started; in the new process (async-signal-safe); and after it. */
int pmi1_give(struct pmi1 *pmi, unsigned int rank);
int pmi1_inherit(const struct pmi1 *pmi);
void pmi1_given(struct pmi1 *pmi);

/* Read what ranks have said so far, and all that @rank, which has ended, has said. */
void pmi1_read(struct pmi1 *pmi, unsigned int rank);

/* pmi1_store.c: false if there is no room for it, or no memory */
bool pmi1_store(struct pmi1_store *store, const char *key, const char *value);
const char *pmi1_find(const struct pmi1_store *store, const char *key);
bool pmi1_delete(struct pmi1_store *store, const char *key);
void pmi1_delete_all(struct pmi1_store *store);

#endif
