/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A process that closes sockets in pvasrun's place, when pvasrun has ended the connection to it.
 *
 * The last close(2) of an AF_UNIX socket also closes the files that others have sent to it and
 * nobody has received, SCM_RIGHTS of unix(7). That can take as long as their sender likes: a TCP
 * connection with SO_LINGER for example, or a file whose server doesn't answer. So the last
 * close(2) must not be pvasrun's.
 */
#ifndef PVASRUN_LATE_CLOSE_H
#define PVASRUN_LATE_CLOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct late_close {
	int to;			/* -1: there is none */
	pid_t child;
};

/* To be called before there is much memory, of which the process has a copy. 0 or -errno. */
int late_close_begin(struct late_close *late);

/* From now on @fd's own close doesn't wait. 0 or -errno. */
int late_close_add(const struct late_close *late, int fd);

/* After the close of all that were added. A process that can't end is left to init. */
void late_close_end(struct late_close *late);

/*
 * As recv(2) with MSG_DONTWAIT, but never receives a file, which would have to be closed: an error
 * then, EPROTO. *@own, unless NULL: have the bytes been sent by a process of this user? That needs
 * SO_PASSCRED. One call never mixes two users' bytes.
 */
ssize_t receive_bytes(int fd, void *buf, size_t room, bool *own);

#endif
