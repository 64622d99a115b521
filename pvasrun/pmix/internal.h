/* SPDX-License-Identifier: GPL-2.0-only */
/* Within the plugin. */
#ifndef PVASRUN_PMIX_INTERNAL_H
#define PVASRUN_PMIX_INTERNAL_H

#include <pmix_server.h>
#include <stdint.h>

#include "plugin.h"

/* job.c: tell the library about the job; PMIX_SUCCESS or its error */
pmix_status_t pmix_register_job(const struct pmix_job *job);

/* Waits for an operation of the library: its status */
pmix_status_t pmix_wait(pmix_status_t started);
void pmix_done(pmix_status_t status, void *data);

/* later.c, in the library's own thread: when it has come back from what it does now */
void pmix_soon(pmix_op_cbfunc_t fn, void *data);
/* and after so many seconds; 0 or -errno */
int pmix_later(unsigned int seconds, void (*fn)(uintptr_t arg), uintptr_t arg);

/* log.c */
void pmix_log(const pmix_proc_t *proc, const pmix_info_t data[], size_t nr,
	      const pmix_info_t directives[], size_t ndirectives, pmix_op_cbfunc_t done,
	      void *arg);

/* names.c: in the library's own thread, all of them */
pmix_status_t pmix_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t nr,
			   pmix_op_cbfunc_t done, void *data);
pmix_status_t pmix_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
			  size_t nr, pmix_lookup_cbfunc_t done, void *data);
pmix_status_t pmix_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
			     size_t nr, pmix_op_cbfunc_t done, void *data);

#endif
