/* SPDX-License-Identifier: GPL-2.0-only */
/* A child reads a file or pipe in pvasrun's place: see file_child.h. It reads ahead a little. */
#ifndef PVASRUN_READER_H
#define PVASRUN_READER_H

#include <stddef.h>
#include <sys/types.h>

#include "file_child.h"

#define READER_MAX	16384

/* Returns 0 or -errno. */
int reader_begin(struct file_child *child, int fd);

/*
 * As read(), of READER_MAX bytes or more. -1 with EAGAIN: nothing has come yet. Not to be
 * called again after its end, or an error.
 */
ssize_t reader_read(const struct file_child *child, char *bytes, size_t len);

#endif
