/* SPDX-License-Identifier: GPL-2.0-only */
/* Reading from an inherited descriptor without ever waiting: see outlet.h. */
#ifndef PVASRUN_INLET_H
#define PVASRUN_INLET_H

#include <stddef.h>
#include <sys/types.h>

#include "reopen.h"

struct inlet {
	int fd;
	struct reopened file;
};

void inlet_open(struct inlet *inlet, int fd);
void inlet_close(struct inlet *inlet);

/* As read(). -1 with EAGAIN: somebody else who reads the file was faster. */
ssize_t inlet_read(const struct inlet *inlet, char *bytes, size_t len);

#endif
