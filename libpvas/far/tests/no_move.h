/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PVAS_FAR_NO_MOVE_H
#define PVAS_FAR_NO_MOVE_H

#include <stdbool.h>

/* Pretend that the kernel has no UFFDIO_MOVE. */
extern bool no_move;

/* Called before each ioctl() of the pager, in the thread that makes it; NULL: not */
extern void (*before_ioctl)(unsigned long request, void *arg);

#endif
