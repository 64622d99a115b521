/* SPDX-License-Identifier: GPL-2.0-only */
/* Reading from an inherited descriptor without ever waiting: see outlet.h. */
#ifndef PVASRUN_INLET_H
#define PVASRUN_INLET_H

#include <stddef.h>
#include <sys/types.h>

#include "file_child.h"
#include "reopen.h"

struct inlet {
	int fd;
	struct reopened file;
	struct file_child reader;	/* of a pipe, or of a file whose server may not answer */
};

/* @fd, if it is a pipe, becomes /dev/null. Returns 0 or -errno. */
int inlet_open(struct inlet *inlet, int fd);
void inlet_close(struct inlet *inlet);

/* To be watched for input */
int inlet_watched(const struct inlet *inlet);

/* As read(), of READER_MAX bytes or more. -1 with EAGAIN: somebody else who reads it was faster. */
ssize_t inlet_read(const struct inlet *inlet, char *bytes, size_t len);

#endif
