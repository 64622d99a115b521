/* SPDX-License-Identifier: GPL-2.0-only */
/* A TCP port on the loopback interface, for connections of the same user. */
#ifndef PVASRUN_LISTEN_H
#define PVASRUN_LISTEN_H

#include "peer_uid.h"

/* Returns a listening descriptor, and its port; or -errno. */
int listen_loopback(int *port);

/*
 * Accept up to @nr connections, with O_NONBLOCK and TCP_NODELAY. Connections of other
 * users are closed, and are -1 in @fds. Returns how many were accepted; -EAGAIN: none;
 * another -errno: accept() failed.
 */
int accept_same_user(int fd, struct peer_uid *peer_uid, int *fds, int nr);

/* Close with RST instead of FIN, which leaves no TIME_WAIT state in the kernel. */
void close_with_reset(int fd);

#endif
