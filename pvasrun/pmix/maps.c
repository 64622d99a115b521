// SPDX-License-Identifier: GPL-2.0-only
/*
 * Maps of nodes and ranks, in the notation of libpmix. Its own generators take a list of
 * all names, and a time that grows with the square of their number.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HOST_LEN	256
#define RANGE_LEN	24	/* "1073741820-1073741823;" */
#define DIGITS		10	/* of a pretended node's name */

static void own_name(char host[static HOST_LEN])
{
	snprintf(host, HOST_LEN, "localhost");
	gethostname(host, HOST_LEN - 1);
	host[HOST_LEN - 1] = '\0';
}

/* Nodes that libpmix is told of: a list of all takes it a time that grows quadratically. */
static unsigned int described(const struct pmix_job *job)
{
	return job->full ? job->nodes : 1;
}

/* This node, and "pretended0000000001" and so on; to be freed */
char *pmix_node_map(const struct pmix_job *job)
{
	char host[HOST_LEN], *map = NULL;

	own_name(host);
	if (described(job) == 1)
		return PMIx_generate_regex(host, &map) == PMIX_SUCCESS ? map : NULL;
	if (asprintf(&map, "pmix[%s,pretended[%d:1-%u]]", host, DIGITS, job->nodes - 1) < 0)
		return NULL;
	return map;
}

/* "pmix[0-3;4-7;...]": the ranks of each node; to be freed */
static char *ranges(const struct pmix_job *job)
{
	unsigned int node, first, last;
	char *map = malloc((size_t)described(job) * RANGE_LEN + sizeof("pmix[]"));
	size_t used = 0;

	if (!map)
		return NULL;
	used += sprintf(map, "pmix[");
	for (node = 0; node < described(job); node++) {
		first = node * job->tasks;
		last = first + job->tasks - 1;
		used += sprintf(map + used, first == last ? "%s%u" : "%s%u-%u", node ? ";" : "",
				first, last);
	}
	sprintf(map + used, "]");
	return map;
}

/* "0,1,2,3;4,5,6,7;...", as libpmix writes it; to be freed */
static char *generated(const struct pmix_job *job)
{
	char *list = malloc((size_t)described(job) * job->tasks * 11 + 1), *map = NULL;
	unsigned int rank, ranks = described(job) * job->tasks;
	size_t used = 0;

	if (!list)
		return NULL;
	for (rank = 0; rank < ranks; rank++)
		used += sprintf(list + used, "%s%u",
				!rank ? "" : rank % job->tasks ? "," : ";", rank);
	if (PMIx_generate_ppn(list, &map) != PMIX_SUCCESS)
		map = NULL;
	free(list);
	return map;
}

/* The ranks of each node; to be freed */
char *pmix_proc_map(const struct pmix_job *job)
{
	return PMIX_READS_RANGES ? ranges(job) : generated(job);
}

/* "0,1,2,...": the ranks of this node; to be freed */
char *pmix_local_peers(const struct pmix_job *job)
{
	char *text = malloc(job->tasks * 11 + 1);
	size_t used = 0;
	unsigned int i;

	for (i = 0; text && i < job->tasks; i++)
		used += sprintf(text + used, "%s%u", i ? "," : "", i);
	return text;
}
