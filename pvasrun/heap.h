/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PVASRUN_HEAP_H
#define PVASRUN_HEAP_H

#include <stddef.h>

/*
 * Bytes that this process has from malloc(3). Its resident memory would not do: with the user
 * backend the tasks' memory is its own.
 */
size_t heap_in_use(void);

#endif
