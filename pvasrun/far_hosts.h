/* SPDX-License-Identifier: GPL-2.0-only */
/* The list of --far-start. */
#ifndef PVASRUN_FAR_HOSTS_H
#define PVASRUN_FAR_HOSTS_H

#include <netinet/in.h>
#include <stddef.h>

/* As many as there can be stores */
#define FAR_HOSTS_MAX	16

/* How a memory server is started there */
enum far_way { FAR_BY_SSH, FAR_BY_SRUN, FAR_LOCALLY };

struct far_host {
	enum far_way way;
	char name[256];		/* as ssh or srun know it */
	char address[INET6_ADDRSTRLEN + 2];	/* where the server listens; IPv6 in brackets */
};

/*
 * "[WAY:]HOST[=ADDRESS],...": WAY is ssh, srun or local. Without it, localhost is local, and
 * all others are reached by srun inside a job of Slurm's, else by ssh. How many there are, or
 * -1 with a line in @why.
 */
int far_hosts_parse(const char *text, struct far_host hosts[static FAR_HOSTS_MAX], char *why,
		    size_t len);

/* Find the addresses that were not given. 0, or -1 with a line in @why */
int far_hosts_resolve(struct far_host *hosts, unsigned int count, char *why, size_t len);

#endif
