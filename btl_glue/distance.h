/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How far apart two ranks are on their node; also for a test and for bench/distance.c. */
#ifndef BTL_PVAS_DISTANCE_H
#define BTL_PVAS_DISTANCE_H

#include "opal_config.h"

#include <stdint.h>

/* The nearest that two ranks share */
enum mca_btl_pvas_distance {
	MCA_BTL_PVAS_SAME_CORE,
	MCA_BTL_PVAS_SAME_L2,
	MCA_BTL_PVAS_SAME_L3,
	MCA_BTL_PVAS_SAME_PACKAGE,
	MCA_BTL_PVAS_FAR,
	MCA_BTL_PVAS_DISTANCES
};

/**
 * struct mca_btl_pvas_limits - the defaults for a distance
 * @copy:	longest message that is copied at once
 * @share:	shortest one that the sender helps to copy; 0: none
 */
struct mca_btl_pvas_limits {
	const char *name;
	unsigned int copy;
	unsigned int share;
};

/* @locality: Open MPI's flags of what is shared */
enum mca_btl_pvas_distance mca_btl_pvas_distance(uint16_t locality);
const struct mca_btl_pvas_limits *mca_btl_pvas_limits_of(enum mca_btl_pvas_distance distance);

#endif /* BTL_PVAS_DISTANCE_H */
