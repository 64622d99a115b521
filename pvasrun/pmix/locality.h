/* SPDX-License-Identifier: GPL-2.0-only */
/* The locality string of a bound task, which MPI libraries compare with that of others. */
#ifndef PVASRUN_LOCALITY_H
#define PVASRUN_LOCALITY_H

#include <hwloc.h>

/* "SK0:L30:L20:L10:CR0:HT0-1:NM0": the objects of each type in @set. To be freed; or NULL */
char *locality_of(hwloc_topology_t topology, hwloc_const_cpuset_t set);

#endif
