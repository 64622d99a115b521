/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a task is bound to, in a text that MPI libraries compare with another task's. */
#ifndef PVASRUN_LOCALITY_H
#define PVASRUN_LOCALITY_H

#include <hwloc.h>

/* "SK0:L30:L20:L10:CR0:HT0-1:NM0": what of each kind the set touches. To be freed; or NULL */
char *locality_of(hwloc_topology_t topology, hwloc_const_cpuset_t set);

#endif
