/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the public functions */
#ifndef PVAS_FAR_API_H
#define PVAS_FAR_API_H

#include <stddef.h>
#include <stdint.h>

/* May this process call? Clears the text of the last error. */
int far_check(void);

/* The pages that contain a range, @first to @end - 1; all must be allocated. With the lock. */
int far_range_get(const void *addr, size_t size, uint64_t *first, uint64_t *end);

/* Drop the contents of pages and leave them busy. With the lock, which it releases meanwhile. */
void far_range_empty(uint64_t first, uint64_t count);

#endif
