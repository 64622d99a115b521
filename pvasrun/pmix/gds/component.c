// SPDX-License-Identifier: LGPL-2.1-or-later
/* The component, and its functions in place of those of libpmix's component "hash". */
#include "gds_pvas.h"

#include <pmix.h>
#include <pmix_version.h>
#include <stdio.h>
#include <string.h>

#include "../libpvas/pvas.h"

/* It has copies of declarations that are libpmix's own. */
#if PMIX_NUMERIC_VERSION < 0x00040202 || PMIX_NUMERIC_VERSION >= 0x00040300
#error "for libpmix 4.2.2 and later versions of 4.2"
#endif

static pmix_gds_base_module_t *hash;

pmix_gds_base_module_t *gds_pvas_hash(void)
{
	return hash;
}

/* libpmix's component, whose functions are used for all that is not here */
static pmix_gds_base_module_t *find_hash(const pmix_gds_base_module_t *except)
{
	pmix_gds_base_active_module_t *active;

	PMIX_LIST_FOREACH (active, &pmix_gds_globals.actives, pmix_gds_base_active_module_t)
		if (active->module != except && !strcmp(active->module->name, "hash"))
			return active->module;
	return NULL;
}

/* ---- functions with a part of their own ---- */

static pmix_status_t store_job_info(const char *nspace, pmix_buffer_t *buf)
{
	bool ours = !strcmp(nspace, pmix_globals.myid.nspace);
	pmix_status_t rc;

	if (ours && pmix_globals.myid.rank != 0 && gds_pvas_find(nspace))
		return PMIX_SUCCESS;
	rc = hash->store_job_info(nspace, buf);
	if (ours && pmix_globals.myid.rank == 0)
		gds_pvas_publish(nspace, rc == PMIX_SUCCESS);
	return rc;
}

static pmix_status_t fetch(const pmix_proc_t *proc, pmix_scope_t scope, bool copy, const char *key,
			   pmix_info_t info[], size_t ninfo, pmix_list_t *values)
{
	pmix_status_t rc = gds_pvas_fetch(proc, scope, copy, key, info, ninfo, values), own;

	/* All of a rank or of the job is in both places. */
	if (rc == PMIX_SUCCESS && key)
		return rc;
	own = hash->fetch(proc, scope, copy, key, info, ninfo, values);
	return rc == PMIX_SUCCESS ? rc : own;
}

/* ---- functions of libpmix's component ---- */

static pmix_status_t cache_job_info(struct pmix_namespace_t *ns, pmix_info_t info[], size_t ninfo)
{
	return hash->cache_job_info(ns, info, ninfo);
}

static pmix_status_t register_job_info(struct pmix_peer_t *peer, pmix_buffer_t *reply)
{
	return hash->register_job_info(peer, reply);
}

static pmix_status_t store(const pmix_proc_t *proc, pmix_scope_t scope, pmix_kval_t *value)
{
	return hash->store(proc, scope, value);
}

static pmix_status_t store_modex(struct pmix_namespace_t *ns, pmix_buffer_t *buf, void *data)
{
	return hash->store_modex(ns, buf, data);
}

static pmix_status_t assemb_kvs_req(const pmix_proc_t *proc, pmix_list_t *values,
				    pmix_buffer_t *buf, void *data)
{
	return hash->assemb_kvs_req(proc, values, buf, data);
}

static pmix_status_t accept_kvs_resp(pmix_buffer_t *buf)
{
	return hash->accept_kvs_resp(buf);
}

static pmix_status_t fetch_arrays(struct pmix_peer_t *peer, pmix_buffer_t *reply)
{
	return hash->fetch_arrays(peer, reply);
}

/* ---- selection ---- */

static pmix_gds_base_module_t module;

/*
 * Before "hash", also for those who ask for that by its name; but not in a task that is a
 * server of ranks of its own, such as mpirun.
 */
static pmix_status_t assign_module(pmix_info_t *info, size_t ninfo, int *priority)
{
	(void)info;
	(void)ninfo;
	if (!PMIX_PEER_IS_SERVER(pmix_globals.mypeer))
		hash = find_hash(&module);
	*priority = hash ? 200 : 0;
	return PMIX_SUCCESS;
}

/* The name is what the server is told, whose component is "hash". */
static pmix_gds_base_module_t module = {
	.name = "hash",
	.is_tsafe = false,
	.finalize = gds_pvas_leave,
	.assign_module = assign_module,
	.cache_job_info = cache_job_info,
	.register_job_info = register_job_info,
	.store_job_info = store_job_info,
	.store = store,
	.store_modex = store_modex,
	.fetch = fetch,
	.assemb_kvs_req = assemb_kvs_req,
	.accept_kvs_resp = accept_kvs_resp,
	.fetch_arrays = fetch_arrays,
};

/* Is libpmix of the very version that this was built for? */
static bool fits(void)
{
	char version[32];

	snprintf(version, sizeof(version), " %d.%d.%d", (int)PMIX_VERSION_MAJOR,
		 (int)PMIX_VERSION_MINOR, (int)PMIX_VERSION_RELEASE);
	return strstr(PMIx_Get_version(), version);
}

/* Only in tasks of a space */
static int query(pmix_mca_base_module_t **found, int *priority)
{
	bool used = fits() && pvas_task_get_index() >= 0;

	if (used)
		gds_pvas_announce();
	*found = used ? (pmix_mca_base_module_t *)&module : NULL;
	*priority = used ? 5 : -1;
	return used ? PMIX_SUCCESS : PMIX_ERR_NOT_AVAILABLE;
}

__attribute__((visibility("default")))
pmix_gds_base_component_t pmix_mca_gds_pvas_component = {
	.base = {
		PMIX_GDS_BASE_VERSION_1_0_0,
		.pmix_mca_component_name = "pvas",
		PMIX_MCA_BASE_MAKE_VERSION(component, PMIX_MAJOR_VERSION, PMIX_MINOR_VERSION,
					   PMIX_RELEASE_VERSION),
		.pmix_mca_query_component = query,
	},
	.data.param_field = PMIX_MCA_BASE_METADATA_PARAM_CHECKPOINT,
	.priority = 5,
};
