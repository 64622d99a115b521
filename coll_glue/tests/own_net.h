/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A rank with a network namespace of its own, which two-nets has asked for */
#ifndef PVAS_TEST_OWN_NET_H
#define PVAS_TEST_OWN_NET_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void own_net_fail(const char *what)
{
	perror(what);
	exit(1);
}

/*
 * Before MPI_Init(): rank TWO_NETS_RANK gets its namespace, and all wait until it has devices.
 * By the program itself, because unshare(1) leaves the space.
 */
static inline void own_net(void)
{
	const char *rank = getenv("TWO_NETS_RANK"), *mine = getenv("PMIX_RANK");
	const char *server = getenv("PMIX_SERVER_URI4");
	FILE *f;

	if (!rank || !mine || !server)
		return;
	if (!strcmp(rank, mine)) {
		if (unshare(CLONE_NEWNET))
			own_net_fail("unshare");
		f = fopen("/run/new", "w");
		if (!f || fprintf(f, "%d %s\n", getpid(), strrchr(server, ':') + 1) < 0 ||
		    fclose(f) || rename("/run/new", "/run/pid"))
			own_net_fail("/run/pid");
	}
	while (access("/run/ready", F_OK)) {
		if (!access("/run/failed", F_OK))
			exit(77);
		usleep(10000);
	}
}

#endif /* PVAS_TEST_OWN_NET_H */
