/* SPDX-License-Identifier: GPL-2.0-only */
/* An inherited descriptor, to be used without ever waiting */
#ifndef PVASRUN_REOPEN_H
#define PVASRUN_REOPEN_H

#include <stdbool.h>
#include <sys/stat.h>

struct reopened {
	int own;	/* the same pipe or terminal, opened anew not to block; -1: none */
	int pipe[2];	/* where a pipe can't be: a private one for splice(); -1: none */
};

#define REOPENED_NONE	{ .own = -1, .pipe = { -1, -1 } }

/* Its type alone; 0: unknown. A file's server is not asked, as it is by fstat(2). */
mode_t descriptor_type(int fd);

/* Nor by this, as it is by isatty(3) */
bool is_terminal(int fd);

/*
 * Opens the pipe or terminal behind @fd anew with O_NONBLOCK and @access (O_RDONLY,
 * O_WRONLY): that flag belongs to the open file, which pvasrun shares with the user's
 * shell. It can't be if the file is another user's (after su), or perhaps on a file server. Others
 * are left alone.
 */
void reopen_nonblocking(struct reopened *r, int fd, int access);
void reopened_close(struct reopened *r);

#endif
