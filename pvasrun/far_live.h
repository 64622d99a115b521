/* SPDX-License-Identifier: GPL-2.0-only */
/* Each second: what the pager does, for pvasps and on the terminal. */
#ifndef PVASRUN_FAR_LIVE_H
#define PVASRUN_FAR_LIVE_H

#include "event.h"

struct pvas_far_ops;
struct pvas_space;

/* 0 or -errno */
int far_live_begin(struct loop *loop, const struct pvas_far_ops *pager,
		   const struct pvas_space *space);

/* While the pager is there */
void far_live_end(void);

#endif
