/* SPDX-License-Identifier: GPL-2.0-only */
/* Packets with descriptors, SCM_RIGHTS of unix(7), to pvasrun's children: SOCK_SEQPACKET */
#ifndef PVASRUN_PASS_H
#define PVASRUN_PASS_H

#include <stddef.h>
#include <sys/types.h>

#define PASS_MAX	2	/* descriptors of a packet */

/* Waits for room for some seconds. Returns 0 or -errno. */
int pass_send(int to, const void *bytes, size_t len, const int *fds, unsigned int n);

/*
 * As recv(2) with MSG_DONTWAIT, of a whole packet. @fds, of PASS_MAX, are -1 beyond those that have
 * come; all that have come are the caller's.
 */
ssize_t pass_receive(int from, void *bytes, size_t len, int fds[static PASS_MAX]);

#endif
