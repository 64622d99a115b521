/* SPDX-License-Identifier: GPL-2.0-only */
/* Connections for libpmix, which would listen on a TCP port otherwise. */
#ifndef PVASRUN_HANDOFF_H
#define PVASRUN_HANDOFF_H

#include <stdbool.h>
#include <stddef.h>

/* Before the library starts: what it listens on from now is not a socket. 0 or -errno */
int handoff_open(void);

/* Afterwards: has it done so? */
bool handoff_works(void);

/*
 * Let it accept a connection, in which the first @len bytes are there already: it
 * would block until they are. Returns our end of it, not blocking, or -errno.
 */
int handoff_connect(const char *first, size_t len);

#endif
