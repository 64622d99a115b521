/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The component "gds pvas" of libpmix 4.2: the description of the job, which libpmix keeps
 * in each of its clients, is there once for the ranks of a space.
 *
 * Rank 0 has libpmix's own component "hash" store it as usual, and then takes it out of
 * that component's list and publishes its address in the space: nothing changes it any more.
 * All ranks, rank 0 too, put it at the beginning of their own list while they look something
 * up. All else, such as data that ranks publish for each other, stays with the component "hash"
 * of each rank.
 */
#ifndef GDS_PVAS_H
#define GDS_PVAS_H

#include <pmix_common.h>

#include "src/include/pmix_config.h"

#include "src/class/pmix_list.h"
#include "src/include/pmix_globals.h"
#include "src/mca/gds/base/base.h"
#include "src/mca/gds/gds.h"

#include <stdbool.h>

/* share.c: at the beginning, a rank says that it is a client of PMIx. */
void gds_pvas_announce(void);
/* Rank 0, after libpmix's own component has @stored the description, or has failed */
void gds_pvas_publish(const char *nspace, bool stored);
/* Another rank: false if there is none, and then that component has it all */
bool gds_pvas_find(const char *nspace);

/* Look up in the published description. */
pmix_status_t gds_pvas_fetch(const pmix_proc_t *proc, pmix_scope_t scope, bool copy,
			     const char *key, pmix_info_t info[], size_t ninfo,
			     pmix_list_t *values);

/* At the end: rank 0 waits until no other rank looks it up any more. */
void gds_pvas_leave(void);

/* component.c: that of libpmix */
pmix_gds_base_module_t *gds_pvas_hash(void);

#endif
