// SPDX-License-Identifier: LGPL-2.1-or-later
/* The published description: of rank 0, in its memory. */
#include "gds_pvas.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../libpvas/pvas.h"

/*
 * Names that rank 0 exports, for its job alone: others may have tasks in the same space. The
 * first one tells that the other one, with the description, is to come.
 */
static char client_name[32], job_name[32];

/* How long to wait for rank 0 to be a client: it starts at the same time. */
#define WAIT_MS 5000

/* And then for the description, which the server sends to one rank after the other */
#define DESCRIPTION_MS 120000

/*
 * libpmix declares this in a header that it does not install: gds_hash.h. Weak, for another
 * version may lack it; the component is loaded then, but not used.
 */
struct hash_component {
	pmix_gds_base_component_t super;
	pmix_list_t sessions;
	pmix_list_t jobs;
};
extern struct hash_component pmix_mca_gds_hash_component __attribute__((weak));
#define own_jobs (&pmix_mca_gds_hash_component.jobs)

/**
 * struct description - what rank 0 publishes
 * @job:	an item of the component's list of jobs; NULL: rank 0 has failed
 * @ranks:	of the job, for the client's own record of it
 * @readers:	ranks that have found it, and have not called PMIx_Finalize
 */
struct description {
	char nspace[PMIX_MAX_NSLEN + 1];
	pmix_list_item_t *job;
	pmix_rank_t ranks;
	int readers;
};

static struct description own, *found;
static unsigned int from;	/* rank 0's partition */

static pmix_namespace_t *own_namespace(const char *nspace)
{
	pmix_namespace_t *ns;

	PMIX_LIST_FOREACH (ns, &pmix_globals.nspaces, pmix_namespace_t)
		if (!strcmp(ns->nspace, nspace))
			return ns;
	return NULL;
}

/* ---- rank 0 ---- */

/* The namespace is a secret of the job, which needs not be in a table. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = 14695981039346656037ULL;	/* FNV-1a */

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211ULL;
	return hash;
}

/* libpmix asks for components before it knows who it is. */
void gds_pvas_announce(void)
{
	const char *nspace = getenv("PMIX_NAMESPACE"), *rank = getenv("PMIX_RANK");

	if (!nspace || !rank)
		return;
	snprintf(client_name, sizeof(client_name), "pmix client %016jx", (uintmax_t)hash_of(nspace));
	snprintf(job_name, sizeof(job_name), "pmix job %016jx", (uintmax_t)hash_of(nspace));
	if (!strcmp(rank, "0"))
		pvas_name_export(client_name, NULL);
}

/* The component has stored the job, which is the last of its list. */
static void take_out(const pmix_namespace_t *ns)
{
	strncpy(own.nspace, ns->nspace, PMIX_MAX_NSLEN);
	own.job = pmix_list_get_last(own_jobs);
	own.ranks = ns->nprocs;
	pmix_list_remove_item(own_jobs, own.job);
}

/* Others wait for the name, also if there is nothing behind it. */
void gds_pvas_publish(const char *nspace, bool stored)
{
	pmix_namespace_t *ns = own_namespace(nspace);

	if (stored && ns && !pmix_list_is_empty(own_jobs))
		take_out(ns);
	if (!pvas_name_export(job_name, &own))
		found = own.job ? &own : NULL;
	else if (own.job)
		pmix_list_append(own_jobs, own.job);
}

/* Ranks call PMIx_Finalize at about the same time, or one of them has failed. */
#define WITHDRAW_MS 10000

static void withdraw_own(void)
{
	int ms;

	for (ms = 0; ms < WITHDRAW_MS && __atomic_load_n(&own.readers, __ATOMIC_ACQUIRE); ms++)
		usleep(1000);
	pvas_name_unexport(job_name);
}

/* ---- all ranks ---- */

/* After rank 0 has ended, its memory is gone. */
static bool is_there(void)
{
	void *at;

	return found == &own ||
	       (found && pvas_name_import(from, job_name, &at) >= 0 && at == found);
}

/*
 * Waits for rank 0, unless it can't be in the space: of a job on several nodes, it is on
 * another one. Partitions are given in the order of ranks, with gaps where one was taken.
 */
static void *find_description(void)
{
	int index = pvas_task_get_index();
	void *at;

	if (!*job_name || index <= (int64_t)pmix_globals.myid.rank)
		return NULL;
	index = pvas_name_import_wait(PVAS_ANY, client_name, WAIT_MS, &at);
	if (index < 0 || pvas_name_import_wait(index, job_name, DESCRIPTION_MS, &at) < 0)
		return NULL;
	from = index;
	return at;
}

bool gds_pvas_find(const char *nspace)
{
	struct description *there = find_description();
	pmix_namespace_t *ns;

	if (!there || !there->job || strncmp(there->nspace, nspace, PMIX_MAX_NSLEN))
		return false;
	found = there;
	__atomic_add_fetch(&found->readers, 1, __ATOMIC_RELEASE);
	ns = own_namespace(nspace);
	if (ns && !ns->nprocs)
		ns->nprocs = found->ranks;
	return true;
}

/* It stays in memory until the task ends. */
void gds_pvas_leave(void)
{
	pvas_name_unexport(client_name);
	if (found == &own)
		withdraw_own();
	else if (is_there())
		__atomic_sub_fetch(&found->readers, 1, __ATOMIC_RELEASE);
	found = NULL;
}

/*
 * The component finds a job by walking its list: rank 0's is the first of it meanwhile, so
 * that nothing of it is written, and nothing behind it is looked at. Only libpmix's own thread
 * calls this.
 */
pmix_status_t gds_pvas_fetch(const pmix_proc_t *proc, pmix_scope_t scope, bool copy,
			     const char *key, pmix_info_t info[], size_t ninfo,
			     pmix_list_t *values)
{
	volatile pmix_list_item_t *first = own_jobs->pmix_list_sentinel.pmix_list_next;
	pmix_status_t rc;

	if (!is_there() || strncmp(found->nspace, proc->nspace, PMIX_MAX_NSLEN))
		return PMIX_ERR_NOT_FOUND;
	own_jobs->pmix_list_sentinel.pmix_list_next = found->job;
	rc = gds_pvas_hash()->fetch(proc, scope, copy, key, info, ninfo, values);
	own_jobs->pmix_list_sentinel.pmix_list_next = first;
	return rc;
}
