/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The PMIx server is a plugin, loaded when the first rank connects: pvasrun does not
 * depend on libpmix, and jobs without MPI do not load it.
 */
#ifndef PVASRUN_PMIX_PLUGIN_H
#define PVASRUN_PMIX_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

/* Sent to pvasrun, each by one write() to a pipe */
enum rank_event_kind {
	RANK_INIT,
	RANK_FINALIZE,
	RANK_LOST,	/* disconnected without finalize; all it sent has been handled */
	RANK_ABORT,
	RANK_SPAWN,	/* a request for more processes was refused */
};

struct rank_event {
	enum rank_event_kind kind;
	unsigned int rank;
	int status;		/* with RANK_ABORT */
	char text[240];
};

/* The job, as the server describes it to its ranks */
struct pmix_job {
	const char *nspace;
	const char *tmpdir;	/* private to the job */
	unsigned int tasks;
	unsigned int nodes;	/* more than 1: of a pretended job, with as many ranks each */
	bool full;		/* describe all of its ranks and nodes */
	unsigned int apps;
	const unsigned int *app_of;	/* by rank */
	char *const *cpus;		/* by rank: "0-3", NULL: not bound; or NULL */
	int event_fd;			/* to write struct rank_event to */
	int out, err;			/* to write the text of PMIx_Log to, which may block */
	int library_err;		/* for messages of libpmix itself: does not block */
};

/*
 * Returns 0, or -1 with a line in @why. pvasrun replaces the listen() and accept() of
 * the library: see handoff.h.
 *
 * The server is never stopped: its connections end with the process, and pvasrun
 * removes @tmpdir with all its files. PMIx_server_finalize() would do no more, but
 * waits for the library's threads and locks: with libpmix 4.2.2 it was once seen to
 * hang, though not in 600 jobs that tried to provoke it (openpmix issue 1244 is a
 * similar bug).
 */
int pvasrun_pmix_start(const struct pmix_job *job, char *why, size_t len);

/* Wait until PMIx_Log output is written, at most @ms. False: it is not */
bool pvasrun_pmix_flush(unsigned int ms);

typedef bool (*pmix_flush_fn)(unsigned int ms);
typedef int (*pmix_start_fn)(const struct pmix_job *job, char *why, size_t len);

#endif
