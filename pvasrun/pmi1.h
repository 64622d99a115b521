/* SPDX-License-Identifier: GPL-2.0 */
/* PMI-1, the line protocol by which MPICH and its relatives find their peers. */
#ifndef PVASRUN_PMI1_H
#define PVASRUN_PMI1_H

#include <stdbool.h>
#include <stdint.h>

#include "event.h"

#define PMI1_LINE 4096		/* theirs are up to 1024 */

struct mpi;
struct pmi1;

/* A rank's connection */
struct pmi1_rank {
	struct event event;
	struct pmi1 *pmi;
	struct pmi1_rank *next;
	int rank;		/* -1: it has not said which one it is */
	bool in_barrier;
	bool in_spawn;		/* of whose many lines we answer the last one */
	unsigned int used;
	char line[PMI1_LINE];
};

struct pmi1 {
	struct event event;
	struct mpi *mpi;
	struct pmi1_rank *ranks;
	int port;
	uint32_t first_id;	/* rank 0 shows this; not to be guessed */
	unsigned int waiting;	/* in the barrier */
	void *pairs;		/* "key": what ranks have put; see tsearch(3) */
	void *names;		/* published */
};

int pmi1_open(struct pmi1 *pmi, struct mpi *mpi);
int pmi1_serve(struct pmi1 *pmi);
void pmi1_close(struct pmi1 *pmi);

/* What ranks have said so far is taken notice of. */
void pmi1_read(struct pmi1 *pmi);

/* pmi1_store.c: texts by name. Returns false if there is no memory for it. */
bool pmi1_store(void **store, const char *key, const char *value);
const char *pmi1_find(void *const *store, const char *key);
bool pmi1_delete(void **store, const char *key);
void pmi1_delete_all(void **store);

#endif
