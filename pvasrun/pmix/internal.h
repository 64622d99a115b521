/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the files of the plugin */
#ifndef PVASRUN_PMIX_INTERNAL_H
#define PVASRUN_PMIX_INTERNAL_H

#include <stdint.h>

#include "compat.h"
#include "plugin.h"

/**
 * struct pmix_topology - the machine, which otherwise each rank would find out from all of /sys
 * @xml:	hwloc's description, or NULL
 * @localities:	by rank: see locality.h, NULL: not bound; or NULL
 */
struct pmix_topology {
	char *xml;
	char **localities;
};

/* topology.c: before libpmix uses hwloc */
void pmix_topology_read(struct pmix_topology *t, const struct pmix_job *job);
void pmix_topology_free(struct pmix_topology *t, const struct pmix_job *job);

/* job.c: register the job with libpmix */
pmix_status_t pmix_register_job(const struct pmix_job *job, const struct pmix_topology *t);

/* maps.c: which rank is on which node, each to be freed; NULL if there is no memory */
char *pmix_node_map(const struct pmix_job *job);
char *pmix_proc_map(const struct pmix_job *job);
char *pmix_local_peers(const struct pmix_job *job);

/* wait.c: wait for an operation that was started with the callback pmix_done() */
void pmix_wait_init(void);
pmix_status_t pmix_wait(pmix_status_t started);
void pmix_done(pmix_status_t status, void *data);

/* defer.c: call @fn in libpmix's thread, after it has left the current callback */
void pmix_defer(pmix_op_cbfunc_t fn, void *data);
/* the same after @seconds; 0 or -errno */
int pmix_defer_for(unsigned int seconds, void (*fn)(uintptr_t arg), uintptr_t arg);

/* log.c */
void pmix_log_to(int out, int err);
void pmix_log(const pmix_proc_t *proc, const pmix_info_t data[], size_t nr,
	      const pmix_info_t directives[], size_t ndirectives, pmix_op_cbfunc_t done,
	      void *arg);

/* names.c: all are called in libpmix's thread */
pmix_status_t pmix_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t nr,
			   pmix_op_cbfunc_t done, void *data);
pmix_status_t pmix_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
			  size_t nr, pmix_lookup_cbfunc_t done, void *data);
pmix_status_t pmix_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
			     size_t nr, pmix_op_cbfunc_t done, void *data);

#endif
