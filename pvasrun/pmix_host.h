/* SPDX-License-Identifier: GPL-2.0-only */
/* The PMIx server: a plugin that is loaded when the first rank connects. */
#ifndef PVASRUN_PMIX_HOST_H
#define PVASRUN_PMIX_HOST_H

#include "event.h"
#include "mpi_job.h"
#include "pmix/plugin.h"
#include "session_dir.h"
#include "texts.h"

#define PMIX_LOW_FDS 16

struct pmix_host {
	struct event event;	/* the server's reports */
	const struct mpi_job *job;
	bool started;
	int writer;		/* the server's end of that pipe */
	int low_fds[PMIX_LOW_FDS];	/* numbers kept free for it until it starts */
	struct session_dir tmp;
	const char *refusal;	/* a reason not to start, known before; NULL: none */
	pmix_flush_fn flush;
	struct texts texts;
	int text_fds[NR_TEXTS];
};

/* For pmix_host_close() in all cases */
void pmix_host_init(struct pmix_host *host, const struct mpi_job *job);

/* Before the tasks are started: keep low descriptor numbers for the server. */
void pmix_host_reserve_fds(struct pmix_host *host);

/* Also before: what writes the ranks' messages */
void pmix_host_open_texts(struct pmix_host *host);

/* After the tasks: wait for those messages, a limited time. */
void pmix_host_flush(struct pmix_host *host);

/* @host: void *, as pmix_proxy_open() wants it. 0, or -1 after the callback failed() */
int pmix_host_start(void *host);

/* Handle all that the server has reported so far. */
void pmix_host_read(struct pmix_host *host);
void pmix_host_close(struct pmix_host *host);

#endif
