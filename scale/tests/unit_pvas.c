// SPDX-License-Identifier: GPL-2.0-only
/* The model of the BTL pvas, at sizes whose counters were read. */
#include "../command.h"
#include "unit.h"

void test_pvas(void)
{
	NUMBER(scale_pvas_bytes(1, 8), 0);
	NUMBER(scale_pvas_bytes(4, 8), 17384);
	NUMBER(scale_pvas_bytes(9, 8), 15872);
	NUMBER(scale_pvas_bytes(16, 8), 17720);
	NUMBER(scale_pvas_bytes(25, 8), 17632);
	NUMBER(scale_pvas_bytes(36, 8), 17624);
	NUMBER(scale_pvas_bytes(64, 8), 17496);
	NUMBER(scale_pvas_fast_peers(2, 8), 1);
	NUMBER(scale_pvas_fast_peers(4, 8), 3);
	NUMBER(scale_pvas_fast_peers(64, 1), 1);
	/* One is always allowed. */
	NUMBER(scale_pvas_fast_peers(4096, 8), 1);
	NUMBER(scale_pvas_fast_peers(1UL << 60, 8), 1);
	NUMBER(scale_pvas_bytes(1UL << 60, 8), SCALE_TOO_LARGE);
}
