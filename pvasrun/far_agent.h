/* SPDX-License-Identifier: GPL-2.0-only */
/* The process that starts a memory server, and watches that it ends. */
#ifndef PVASRUN_FAR_AGENT_H
#define PVASRUN_FAR_AGENT_H

#include <stdint.h>
#include <sys/types.h>

#include "far_hosts.h"

struct far_agent {
	pid_t pid;	/* a child that only __WALL finds; 0: none */
	int in;		/* the server's standard input: at its end, the server ends */
	int out;	/* all that it prints */
};

/* Start @memd there, with so many bytes. 0 or -errno. The descriptors are close-on-exec. */
int far_agent_start(struct far_agent *agent, const struct far_host *host, const char *memd,
		    uint64_t ram);

#endif
