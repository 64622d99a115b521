// SPDX-License-Identifier: GPL-2.0-only
/* The environment of tasks that are MPI programs. */
#include "mpi.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "component.h"
#include "pretend.h"

/*
 * If mpirun, srun or mpiexec started pvasrun itself, their variables describe another
 * job. Settings that the user made stay.
 */
static void drop_outer_job(struct env *env)
{
	static const char *const prefixes[] = {
		"OMPI_COMM_WORLD_", "OMPI_MCA_ess", "OMPI_MCA_orte_", "OMPI_MCA_pmix",
		"OMPI_MCA_initial_wdir", "OMPI_UNIVERSE_SIZE", "OMPI_APP_CTX_NUM_PROCS",
		"OMPI_FIRST_RANKS", "OMPI_NUM_APP_CTX", "OMPI_COMMAND", "OMPI_ARGV",
		"OMPI_FILE_LOCATION", "PMI_", "HYDI_", "MPI_LOCAL",
	};
	size_t i;

	env_drop(env, "PMIX_", "PMIX_MCA_");
	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		env_drop(env, prefixes[i], NULL);
}

/* libpmix looks there for components, besides its own: it shares what the server tells it. */
static int add_gds(struct env *env)
{
	char dir[PATH_MAX];

	return component_find_gds(dir) ? env_default(env, PMIX_COMPONENT_PATH, dir) : 0;
}

/*
 * The same variables as PMIx_server_setup_fork() sets, before any server runs. Each
 * version of a client reads one of the names, and the server understands all versions.
 */
static int add_pmix(const struct mpi *mpi, struct env *env)
{
	static const char *const names[] = {
		"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21",
		"PMIX_SERVER_URI2",
	};
	char uri[MPI_NAME_LEN + 64];
	int err = 0;
	size_t i;

	/* errors of libpmix print the server's name: it is not the secret one */
	snprintf(uri, sizeof(uri), "pvasrun-%d-server.0;tcp4://127.0.0.1:%d", getpid(),
		 mpi->proxy.port);
	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !err; i++)
		err = env_set(env, names[i], uri);
	if (!err)
		err = env_set(env, "PMIX_NAMESPACE", mpi->common.name);
	if (!err)
		err = env_set_ranked(env, "PMIX_RANK", 0);
	if (!err)
		err = env_set(env, "PMIX_SECURITY_MODE", "native");
	if (!err)
		err = env_set(env, "PMIX_BFROP_BUFFER_TYPE", "PMIX_BFROP_BUFFER_NON_DESC");
	/* data through the socket, not through shared files */
	if (!err)
		err = env_set(env, "PMIX_GDS_MODULE", "hash");
	/* ranks are served once the last of them is started */
	if (!err)
		err = env_default(env, "PMIX_MCA_ptl_base_handshake_wait_time", "600");
	/* these stores of a server, such as a task's mpirun, need addresses outside partitions */
	if (!err)
		err = env_default(env, "PMIX_MCA_gds", "^shmem,shmem2,shmem3");
	return err ? err : add_gds(env);
}

static int add_pmi1(const struct mpi *mpi, struct env *env)
{
	char text[16];
	int err;

	snprintf(text, sizeof(text), "%d", mpi->pmi.child_fd_number);
	err = env_set(env, "PMI_FD", text);
	snprintf(text, sizeof(text), "%u", options_world_size(mpi->common.opt));
	if (!err)
		err = env_set(env, "PMI_SIZE", text);
	/* MPICH 5 refuses to choose between PMI-1 and PMIx. */
	if (!err)
		err = env_default(env, "MPIR_CVAR_PMI_VERSION", "1");
	/* MPICH 3.4 looks up the host's name for an address that no rank of this node needs. */
	if (!err)
		err = env_default(env, "MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "127.0.0.1");
	return err ? err : env_set_ranked(env, "PMI_RANK", 0);
}

/* Have shared-memory files created where pvasrun removes them, if it kills ranks. */
static int add_directory(const struct mpi *mpi, struct env *env)
{
	int err;

	if (!mpi->shm.created)
		return 0;
	err = env_default(env, "OMPI_MCA_btl_vader_backing_directory", mpi->shm.path);
	return err ? err : env_default(env, "OMPI_MCA_osc_sm_backing_directory", mpi->shm.path);
}

/* May the programs load another Open MPI than the one our component was built for? */
static bool own_libraries(const struct mpi *mpi, const struct env *env)
{
	return mpi->own_paths || env_get(env, "LD_LIBRARY_PATH") || env_get(env, "LD_PRELOAD") ||
	       env_get(env, "OPAL_PREFIX");
}

/*
 * All ranks are in the space, so with our @btl vader's segments would not be used. A pml
 * or osc for network cards would bypass our component, and probing for cards takes a good
 * part of a rank's start. So does tcp, which asks for the address of each peer: it is only
 * for an Open MPI that can't load the component.
 */
static int add_selection(const struct mpi *mpi, struct env *env, const char *btl, bool pml)
{
	const bool own = own_libraries(mpi, env);
	char btls[32];
	int err;

	snprintf(btls, sizeof(btls), "%s,self%s", btl, own ? ",tcp" : "");
	err = env_default(env, "OMPI_MCA_btl", btls);
	if (!err)
		err = env_default(env, SM_INLINE, SM_INLINE_MAX);
	if (!err)
		err = env_default(env, "OMPI_MCA_pml", pml && !own ? "ob1,pvas" : "ob1");
	return err ? err : env_default(env, "OMPI_MCA_osc", "^ucx");
}

static int add_component(const struct mpi *mpi, struct env *env)
{
	char dir[PATH_MAX], paths[PATH_MAX + 64];
	const char *btl;
	enum component found = component_find(dir, &btl);
	int err = 0;

	if (found == COMPONENT_NONE)
		return 0;
	if (found == COMPONENT_OWN_DIR) {
		if (env_get(env, COMPONENT_PATH) || env_get(env, COMPONENT_PATH_SHORT))
			return 0;
		snprintf(paths, sizeof(paths), "%s:SYSTEM_DEFAULT:USER_DEFAULT", dir);
		err = env_set(env, COMPONENT_PATH, paths);
	}
	if (err || !mpi->all_direct)
		return err;
	return add_selection(mpi, env, btl, component_has_pml(found, dir));
}

static int add_open_mpi(const struct mpi *mpi, struct env *env)
{
	char size[16];
	int err;

	snprintf(size, sizeof(size), "%u", options_world_size(mpi->common.opt));
	/* without this, 4.1 runs as a singleton; it never connects to the address */
	err = env_set(env, "OMPI_MCA_orte_local_daemon_uri", "0.0;tcp://127.0.0.1:1");
	/* for scripts that wrap MPI programs */
	if (!err)
		err = env_set(env, "OMPI_COMM_WORLD_SIZE", size);
	snprintf(size, sizeof(size), "%u", mpi->common.opt->tasks);
	if (!err)
		err = env_set(env, "OMPI_COMM_WORLD_LOCAL_SIZE", size);
	if (!err)
		err = env_set_ranked(env, "OMPI_COMM_WORLD_RANK", 0);
	if (!err)
		err = env_set_ranked(env, "OMPI_COMM_WORLD_LOCAL_RANK", 0);
	if (!err)
		err = add_directory(mpi, env);
	if (!err && places_oversubscribed(mpi->common.opt->tasks))
		err = env_default(env, "OMPI_MCA_mpi_yield_when_idle", "1");
	if (!err && !mpi->common.opt->no_btl)
		err = add_component(mpi, env);
	return err;
}

int mpi_env(const struct mpi *mpi, struct env *env)
{
	int err = 0;

	if (mpi->pmix || mpi->pmi1)
		drop_outer_job(env);
	if (mpi->pmix)
		err = add_pmix(mpi, env);
	if (!err && mpi->pmix)
		err = add_open_mpi(mpi, env);
	if (!err && mpi->pmi1)
		err = add_pmi1(mpi, env);
	return err ? err : pretend_env(mpi->common.opt, env);
}
