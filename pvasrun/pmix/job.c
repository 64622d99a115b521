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

/* @of has been filled */
static void add_proc(struct infos *to, pmix_data_array_t *array, const struct infos *of)
{
	array->size = of->nr;
	add(to, PMIX_PROC_DATA, array, PMIX_DATA_ARRAY);
	if (PMIX_LOAD_COPIES_ARRAYS)
		PMIX_DATA_ARRAY_FREE(array);
}

#define PROC_INFOS 9

static void add_rank(struct infos *to, const struct pmix_job *job, const struct pmix_topology *t,
		     unsigned int rank)
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
	if (t->localities && t->localities[rank])
		add_text(&of, PMIX_LOCALITY_STRING, t->localities[rank]);
	add_proc(to, array, &of);
}

#define PRETENDED_INFOS 4

/*
 * A rank that does not exist. libpmix 4.2 sends its clients no job data at all if the
 * last rank of the job has no entry (register_info() in gds_hash.c); others need none.
 */
static void add_pretended(struct infos *to, const struct pmix_job *job, unsigned int rank)
{
	pmix_rank_t r = rank;
	uint16_t local = rank % job->tasks;
	pmix_data_array_t *array;
	struct infos of;

	PMIX_DATA_ARRAY_CREATE(array, PRETENDED_INFOS, PMIX_INFO);
	of = (struct infos){ .info = array->array, .room = PRETENDED_INFOS };
	add(&of, PMIX_RANK, &r, PMIX_PROC_RANK);
	add(&of, PMIX_LOCAL_RANK, &local, PMIX_UINT16);
	add(&of, PMIX_NODE_RANK, &local, PMIX_UINT16);
	add_u32(&of, PMIX_NODEID, rank / job->tasks);
	add_proc(to, array, &of);
}

static pmix_status_t add_maps(struct infos *to, const struct pmix_job *job)
{
	char *nodes = pmix_node_map(job), *procs = pmix_proc_map(job);
	char *local = pmix_local_peers(job);
	bool made = nodes && procs && local;

	if (made) {
		add(to, PMIX_NODE_MAP, nodes, PMIX_REGEX);
		add(to, PMIX_PROC_MAP, procs, PMIX_REGEX);
		add_text(to, PMIX_LOCAL_PEERS, local);
	}
	free(nodes);
	free(procs);
	free(local);
	return made ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
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

static unsigned int all_ranks(const struct pmix_job *job)
{
	return job->nodes * job->tasks;
}

static unsigned int first_pretended(const struct pmix_job *job)
{
	return job->full || job->nodes == 1 ? job->tasks : all_ranks(job) - 1;
}

static void add_sizes(struct infos *to, const struct pmix_job *job)
{
	static const char *const of_job[] = { PMIX_UNIV_SIZE, PMIX_JOB_SIZE, PMIX_MAX_PROCS };
	static const char *const of_node[] = { PMIX_LOCAL_SIZE, PMIX_NODE_SIZE };
	unsigned int i;

	for (i = 0; i < sizeof(of_job) / sizeof(of_job[0]); i++)
		add_u32(to, of_job[i], all_ranks(job));
	for (i = 0; i < sizeof(of_node) / sizeof(of_node[0]); i++)
		add_u32(to, of_node[i], job->tasks);
	add_u32(to, PMIX_NUM_NODES, job->nodes);
	add_u32(to, PMIX_JOB_NUM_APPS, job->apps);
}

static pmix_status_t fill(struct infos *to, const struct pmix_job *job,
			  const struct pmix_topology *t)
{
	pmix_rank_t leader = 0;
	pmix_status_t rc;
	unsigned int i;

	rc = add_maps(to, job);
	if (rc != PMIX_SUCCESS)
		return rc;
	add_sizes(to, job);
	add(to, PMIX_LOCALLDR, &leader, PMIX_PROC_RANK);
	add_text(to, PMIX_JOBID, job->nspace);
	if (t->xml)
		add_text(to, PMIX_HWLOC_XML_V2, t->xml);
	add_directories(to, job);
	for (i = 0; i < job->tasks; i++)
		add_rank(to, job, t, i);
	for (i = first_pretended(job); i < all_ranks(job); i++)
		add_pretended(to, job, i);
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

pmix_status_t pmix_register_job(const struct pmix_job *job, const struct pmix_topology *t)
{
	struct infos to = {
		.room = JOB_INFOS + job->tasks + all_ranks(job) - first_pretended(job),
	};
	pmix_nspace_t nspace;
	pmix_status_t rc;

	PMIX_INFO_CREATE(to.info, to.room);
	if (!to.info)
		return PMIX_ERR_NOMEM;
	PMIX_LOAD_NSPACE(nspace, job->nspace);
	rc = fill(&to, job, t);
	if (rc == PMIX_SUCCESS)
		rc = pmix_wait(PMIx_server_register_nspace(nspace, job->tasks, to.info, to.nr,
							   pmix_done, NULL));
	PMIX_INFO_FREE(to.info, to.room);
	return rc == PMIX_SUCCESS ? register_ranks(job) : rc;
}
