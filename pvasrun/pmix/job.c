// SPDX-License-Identifier: GPL-2.0-only
/* The description of the job that ranks can query. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An array that is filled in order */
struct infos {
	pmix_info_t *info;
	size_t nr;
	size_t room;
};

static void add(struct infos *to, const char *key, const void *value, pmix_data_type_t type)
{
	if (to->nr < to->room)
		PMIx_Info_load(&to->info[to->nr++], key, value, type);
}

static void add_u32(struct infos *to, const char *key, uint32_t value)
{
	add(to, key, &value, PMIX_UINT32);
}

static void add_text(struct infos *to, const char *key, const char *text)
{
	add(to, key, text, PMIX_STRING);
}

#define PROC_INFOS 9

static void add_rank(struct infos *to, const struct pmix_job *job, unsigned int rank)
{
	pmix_rank_t r = rank;
	uint16_t local = rank;
	pmix_data_array_t *array;
	struct infos of;

	PMIX_DATA_ARRAY_CREATE(array, PROC_INFOS, PMIX_INFO);
	of = (struct infos){ .info = array->array, .room = PROC_INFOS };
	add(&of, PMIX_RANK, &r, PMIX_PROC_RANK);
	add(&of, PMIX_LOCAL_RANK, &local, PMIX_UINT16);
	add(&of, PMIX_NODE_RANK, &local, PMIX_UINT16);
	add(&of, PMIX_GLOBAL_RANK, &r, PMIX_PROC_RANK);
	add_u32(&of, PMIX_NODEID, 0);
	add_u32(&of, PMIX_APPNUM, job->app_of[rank]);
	if (job->cpus && job->cpus[rank])
		add_text(&of, PMIX_CPUSET, job->cpus[rank]);
	if (job->localities && job->localities[rank])
		add_text(&of, PMIX_LOCALITY_STRING, job->localities[rank]);
	array->size = of.nr;
	add(to, PMIX_PROC_DATA, array, PMIX_DATA_ARRAY);
	PMIX_DATA_ARRAY_FREE(array);
}

/* "0,1,2,..." */
static char *all_ranks(unsigned int tasks)
{
	char *text = malloc(tasks * 11 + 1);
	size_t used = 0;
	unsigned int i;

	for (i = 0; text && i < tasks; i++)
		used += sprintf(text + used, "%s%u", i ? "," : "", i);
	return text;
}

/* One node with all ranks, in the notation of libpmix */
static pmix_status_t add_node(struct infos *to, unsigned int tasks)
{
	char host[256] = "localhost";
	char *nodes = NULL, *procs = NULL, *ranks = all_ranks(tasks);
	pmix_status_t rc = PMIX_ERR_NOMEM;

	if (!ranks)
		return rc;
	gethostname(host, sizeof(host) - 1);
	rc = PMIx_generate_regex(host, &nodes);
	if (rc == PMIX_SUCCESS)
		rc = PMIx_generate_ppn(ranks, &procs);
	if (rc == PMIX_SUCCESS) {
		add(to, PMIX_NODE_MAP, nodes, PMIX_REGEX);
		add(to, PMIX_PROC_MAP, procs, PMIX_REGEX);
		add_text(to, PMIX_LOCAL_PEERS, ranks);
	}
	free(nodes);
	free(procs);
	free(ranks);
	return rc;
}

/* Where Open MPI creates its session directories, and that it need not remove them */
static void add_directories(struct infos *to, const struct pmix_job *job)
{
	bool removed_by_us = true;

	add_text(to, PMIX_TMPDIR, job->tmpdir);
	add_text(to, PMIX_NSDIR, job->tmpdir);
	add(to, PMIX_TDIR_RMCLEAN, &removed_by_us, PMIX_BOOL);
}

#define JOB_INFOS 20

static pmix_status_t fill(struct infos *to, const struct pmix_job *job)
{
	static const char *const sizes[] = {
		PMIX_UNIV_SIZE, PMIX_JOB_SIZE, PMIX_MAX_PROCS, PMIX_LOCAL_SIZE, PMIX_NODE_SIZE,
	};
	pmix_rank_t leader = 0;
	pmix_status_t rc;
	unsigned int i;

	rc = add_node(to, job->tasks);
	if (rc != PMIX_SUCCESS)
		return rc;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		add_u32(to, sizes[i], job->tasks);
	add_u32(to, PMIX_NUM_NODES, 1);
	add_u32(to, PMIX_JOB_NUM_APPS, job->apps);
	add(to, PMIX_LOCALLDR, &leader, PMIX_PROC_RANK);
	add_text(to, PMIX_JOBID, job->nspace);
	if (job->topology)
		add_text(to, PMIX_HWLOC_XML_V2, job->topology);
	add_directories(to, job);
	for (i = 0; i < job->tasks; i++)
		add_rank(to, job, i);
	return PMIX_SUCCESS;
}

/* libpmix accepts no other clients. */
static pmix_status_t register_ranks(const struct pmix_job *job)
{
	pmix_status_t rc = PMIX_SUCCESS;
	pmix_proc_t proc;
	unsigned int i;

	for (i = 0; i < job->tasks && rc == PMIX_SUCCESS; i++) {
		PMIX_LOAD_PROCID(&proc, job->nspace, i);
		rc = pmix_wait(PMIx_server_register_client(&proc, getuid(), getgid(), NULL,
							   pmix_done, NULL));
	}
	return rc;
}

pmix_status_t pmix_register_job(const struct pmix_job *job)
{
	struct infos to = { .room = job->tasks + JOB_INFOS };
	pmix_nspace_t nspace;
	pmix_status_t rc;

	PMIX_INFO_CREATE(to.info, to.room);
	if (!to.info)
		return PMIX_ERR_NOMEM;
	PMIX_LOAD_NSPACE(nspace, job->nspace);
	rc = fill(&to, job);
	if (rc == PMIX_SUCCESS)
		rc = pmix_wait(PMIx_server_register_nspace(nspace, job->tasks, to.info, to.nr,
							   pmix_done, NULL));
	PMIX_INFO_FREE(to.info, to.room);
	return rc == PMIX_SUCCESS ? register_ranks(job) : rc;
}
