/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The PMIx server is a shared object of its own, loaded when the first rank
 * asks for it: pvasrun needs no libpmix, and jobs without MPI don't pay for it.
 */
#ifndef PVASRUN_PMIX_PLUGIN_H
#define PVASRUN_PMIX_PLUGIN_H

#include <stddef.h>

/* What a rank did, as the server tells pvasrun: one write() to a pipe each */
enum pmix_news_kind {
	NEWS_INIT,
	NEWS_FINALIZE,
	NEWS_LOST,	/* it has gone without that, and all it said is known */
	NEWS_ABORT,
	NEWS_SPAWN,	/* it wanted more processes, and was refused */
};

struct pmix_news {
	enum pmix_news_kind kind;
	unsigned int rank;
	int status;		/* of NEWS_ABORT */
	char text[240];
};

/* The job, as the server describes it to its ranks */
struct pmix_job {
	const char *nspace;
	const char *tmpdir;	/* private to the job */
	unsigned int tasks;
	unsigned int apps;
	const unsigned int *app_of;	/* of each rank */
	const char *topology;		/* hwloc's XML, or NULL */
	char *const *cpus;		/* of each rank: "0-3", NULL: not bound; or NULL */
	char *const *localities;	/* of each rank: see locality.h; likewise */
	int news;			/* where to write struct pmix_news */
};

/*
 * Returns 0, or -1 with a line in @why. What the library calls listen() with, and
 * accepts from, is pvasrun's: see handoff.h.
 *
 * It ends with the process, which closes its connections, and it has no
 * files but those in @tmpdir, which pvasrun removes. PMIx_server_finalize() would
 * do no more, and waits for the library's threads and their locks: with libpmix
 * 4.2.2 it was once seen to wait for ever, though not in 600 jobs made for that
 * (3 and 12 ranks that ended well, early, by MPI_Abort or a signal). Upstream
 * had such faults before (openpmix issue 1244).
 */
int pvasrun_pmix_start(const struct pmix_job *job, char *why, size_t len);

/* What ranks wanted to be written is: wait for that, but no longer than @ms. */
void pvasrun_pmix_flush(unsigned int ms);

typedef void (*pmix_flush_fn)(unsigned int ms);
typedef int (*pmix_start_fn)(const struct pmix_job *job, char *why, size_t len);

#endif
