/* SPDX-License-Identifier: GPL-2.0-only */
/* Write to an inherited descriptor without blocking. */
#ifndef PVASRUN_OUTLET_H
#define PVASRUN_OUTLET_H

#include <stddef.h>
#include <sys/types.h>

struct outlet {
	int fd;
	int own;	/* the same pipe or terminal, reopened with O_NONBLOCK; -1: none */
	enum { OUTLET_FILE, OUTLET_STREAM, OUTLET_SOCKET } kind;
};

void outlet_open(struct outlet *outlet, int fd);
void outlet_close(struct outlet *outlet);

/* Like write(), for at most PIPE_BUF bytes. -1 with EAGAIN: it would block. */
ssize_t outlet_write(const struct outlet *outlet, const char *bytes, size_t len);

#endif
