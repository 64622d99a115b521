// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How far apart the processors of two ranks are, and the limits that follow. Open MPI knows
 * what two bound ranks share, from hwloc's topology, as flags of the peer.
 *
 * bench/distance measures the crossovers, one row for each distance of a machine; README.md
 * has those that were measured. The others have the row of ranks that share an L3 cache. A
 * message of 1100 bytes is the longest of which two fit into a queue of one page: a longer
 * limit, which would suit ranks up to there, costs each rank two pages more.
 */
#include "distance.h"

#include "opal/mca/hwloc/hwloc-internal.h"

static const struct mca_btl_pvas_limits limits[] = {
	/* Two ranks that take turns on a core copy no faster than one does. */
	[MCA_BTL_PVAS_SAME_CORE] =	{ "same core",		1100, 0 },
	[MCA_BTL_PVAS_SAME_L2] =	{ "same L2 cache",	1100, 32 << 10 },
	[MCA_BTL_PVAS_SAME_L3] =	{ "same L3 cache",	1100, 32 << 10 },
	[MCA_BTL_PVAS_SAME_PACKAGE] =	{ "same package",	1100, 32 << 10 },
	[MCA_BTL_PVAS_FAR] =		{ "not known or far",	1100, 32 << 10 },
};

/* Ranks that are not bound share nothing that is known. */
enum mca_btl_pvas_distance mca_btl_pvas_distance(uint16_t locality)
{
	if (OPAL_PROC_ON_LOCAL_CORE(locality) || OPAL_PROC_ON_LOCAL_HWTHREAD(locality))
		return MCA_BTL_PVAS_SAME_CORE;
	if (OPAL_PROC_ON_LOCAL_L2CACHE(locality))
		return MCA_BTL_PVAS_SAME_L2;
	if (OPAL_PROC_ON_LOCAL_L3CACHE(locality))
		return MCA_BTL_PVAS_SAME_L3;
	if (OPAL_PROC_ON_LOCAL_SOCKET(locality))
		return MCA_BTL_PVAS_SAME_PACKAGE;
	return MCA_BTL_PVAS_FAR;
}

const struct mca_btl_pvas_limits *mca_btl_pvas_limits_of(enum mca_btl_pvas_distance distance)
{
	return &limits[distance];
}
