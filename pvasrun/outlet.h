/* SPDX-License-Identifier: GPL-2.0-only */
/* Writing to an inherited descriptor without ever waiting for its reader. */
#ifndef PVASRUN_OUTLET_H
#define PVASRUN_OUTLET_H

#include <stddef.h>
#include <sys/types.h>

#include "reopen.h"

struct outlet {
	int fd;
	struct reopened file;
	enum { OUTLET_FILE, OUTLET_STREAM, OUTLET_SOCKET } kind;
};

#define OUTLET_NONE(descriptor) \
	((struct outlet){ .fd = (descriptor), .file = REOPENED_NONE })

void outlet_open(struct outlet *outlet, int fd);
void outlet_close(struct outlet *outlet);

/* As write(), of at most PIPE_BUF bytes. -1 with EAGAIN: there is no room now */
ssize_t outlet_write(const struct outlet *outlet, const char *bytes, size_t len);

#endif
