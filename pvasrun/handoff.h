/* SPDX-License-Identifier: GPL-2.0-only */
/* Hand connections over to libpmix, which would otherwise listen on a TCP port. */
#ifndef PVASRUN_HANDOFF_H
#define PVASRUN_HANDOFF_H

#include <stdbool.h>
#include <stddef.h>

/* Before the library starts: a pipe replaces the socket of its next listen(). 0 or -errno */
int handoff_open(void);

/* Afterwards: did it call listen()? */
bool handoff_works(void);

/*
 * Let it accept a connection that already contains @first, since it would block to read
 * those bytes. Returns our end, with O_NONBLOCK, or -errno.
 */
int handoff_connect(const char *first, size_t len);

#endif
