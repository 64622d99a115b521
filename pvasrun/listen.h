/* SPDX-License-Identifier: GPL-2.0-only */
/* Where ranks of MPI programs call: a TCP port that only this machine reaches. */
#ifndef PVASRUN_LISTEN_H
#define PVASRUN_LISTEN_H

#include "caller.h"

/* Returns a listening descriptor, and its port; or -errno. */
int listen_here(int *port);

/*
 * The next callers, @nr at most, not blocking and without delays. Those that are
 * not this user's are hung up on, and stand as -1 in @taken. Returns how many there
 * were; -EAGAIN: none; else it can't be said who there is.
 */
int accept_here(int fd, struct callers *callers, int *taken, int nr);

/* Close it at once, and leave no state of it behind in the kernel. */
void hang_up_at_once(int fd);

#endif
