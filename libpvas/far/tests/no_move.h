/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PVAS_FAR_NO_MOVE_H
#define PVAS_FAR_NO_MOVE_H

#include <stdbool.h>

/* Pretend that the kernel has no UFFDIO_MOVE. */
extern bool no_move;

#endif
