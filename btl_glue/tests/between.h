/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The distance between two processors, by Open MPI's comparison of the strings that pvasrun
 * gives it.
 */
#ifndef BTL_PVAS_BETWEEN_H
#define BTL_PVAS_BETWEEN_H

#include <hwloc.h>
#include <stdlib.h>

#include "opal_config.h"
#include "opal/mca/hwloc/base/base.h"

#include "../../pvasrun/pmix/locality.h"
#include "../distance.h"

static inline enum mca_btl_pvas_distance between(hwloc_topology_t t, hwloc_obj_t a, hwloc_obj_t b)
{
	char *one = locality_of(t, a->cpuset), *other = locality_of(t, b->cpuset);
	uint16_t shared = opal_hwloc_compute_relative_locality(one, other);

	free(one);
	free(other);
	return mca_btl_pvas_distance(shared);
}

#endif
