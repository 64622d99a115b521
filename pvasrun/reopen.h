/* SPDX-License-Identifier: GPL-2.0-only */
/* An inherited descriptor, to be used without ever waiting */
#ifndef PVASRUN_REOPEN_H
#define PVASRUN_REOPEN_H

/*
 * The pipe or terminal behind @fd, opened anew with O_NONBLOCK and @access (O_RDONLY,
 * O_WRONLY): that flag belongs to the open file, which pvasrun shares with the user's
 * shell. -1 where it can't be: the file is another user's (after su), or is neither.
 */
int reopen_nonblocking(int fd, int access);

#endif
