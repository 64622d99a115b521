/* SPDX-License-Identifier: GPL-2.0 */
/* Where ranks of MPI programs call: TCP ports that only this machine reaches. */
#ifndef PVASRUN_LISTEN_H
#define PVASRUN_LISTEN_H

/* Returns a listening descriptor, and its port; or -errno. */
int listen_here(int *port);

/* The next caller of this user, not blocking and without delays; -1: none */
int accept_here(int fd);

/* Call such a port. Returns a descriptor of the same kind, or -errno. */
int call_here(int port);

#endif
