/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Places in the stores, for the pages of a job. Far parts have many more addresses than the
 * stores have room, so a page gets a place when it is mapped: neighbours where possible.
 */
#ifndef PVAS_FAR_PLACES_H
#define PVAS_FAR_PLACES_H

#include <stdint.h>

int far_places_open(uint64_t count);
void far_places_close(void);

/* With the pager's lock. The caller knows that there is a free one. */
uint32_t far_place_take(void);
void far_place_give(uint32_t place);

#endif
