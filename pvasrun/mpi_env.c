// SPDX-License-Identifier: GPL-2.0-only
/* What tasks that are MPI programs find in their environment. */
#include "mpi.h"

#include <sched.h>
#include <stdio.h>

#include "component.h"

/*
 * What mpirun, srun or mpiexec said to pvasrun, if one of them started it, is
 * not meant for pvasrun's own ranks. Settings of the user's stay.
 */
static void drop_others(struct env *env)
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

/*
 * As libpmix would itself say it, if it were running already. One version of
 * a client asks for one of these names, and this server speaks to all.
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

	snprintf(uri, sizeof(uri), "%s-server.0;tcp4://127.0.0.1:%d", mpi->name, mpi->gate.port);
	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !err; i++)
		err = env_set(env, names[i], uri);
	if (!err)
		err = env_set(env, "PMIX_NAMESPACE", mpi->name);
	if (!err)
		err = env_set_ranked(env, "PMIX_RANK", 0);
	if (!err)
		err = env_set(env, "PMIX_SECURITY_MODE", "native");
	if (!err)
		err = env_set(env, "PMIX_BFROP_BUFFER_TYPE", "PMIX_BFROP_BUFFER_NON_DESC");
	/* over the socket, not through files */
	if (!err)
		err = env_set(env, "PMIX_GDS_MODULE", "hash");
	/* the first rank may have to wait until the last one is started */
	if (!err)
		err = env_default(env, "PMIX_MCA_ptl_base_handshake_wait_time", "600");
	return err;
}

static int add_pmi1(const struct mpi *mpi, struct env *env)
{
	char text[16];
	int err;

	snprintf(text, sizeof(text), "%d", mpi->pmi.number);
	err = env_set(env, "PMI_FD", text);
	snprintf(text, sizeof(text), "%u", mpi->opt->tasks);
	if (!err)
		err = env_set(env, "PMI_SIZE", text);
	return err ? err : env_set_ranked(env, "PMI_RANK", 0);
}

/* More ranks than processors: who waits must let others run. */
static bool crowded(unsigned int tasks)
{
	cpu_set_t set;

	return !sched_getaffinity(0, sizeof(set), &set) && tasks > (unsigned int)CPU_COUNT(&set);
}

/* Files in shared memory that are left behind by whom we have killed we remove. */
static int add_directory(const struct mpi *mpi, struct env *env)
{
	int err;

	if (!mpi->shm.made)
		return 0;
	err = env_default(env, "OMPI_MCA_btl_vader_backing_directory", mpi->shm.path);
	return err ? err : env_default(env, "OMPI_MCA_osc_sm_backing_directory", mpi->shm.path);
}

/* May the programs find another Open MPI than the one our component was built for? */
static bool own_libraries(const struct mpi *mpi, const struct env *env)
{
	return mpi->own_paths || env_get(env, "LD_LIBRARY_PATH") || env_get(env, "LD_PRELOAD") ||
	       env_get(env, "OPAL_PREFIX");
}

/*
 * All ranks are in the space, so vader's segments would never be used, a network
 * card's own pml or osc would leave our component aside, and looking for cards is
 * a good part of a rank's start. So is tcp, which asks for every peer's address:
 * it is for an Open MPI that can't load the component.
 */
static int add_selection(const struct mpi *mpi, struct env *env)
{
	int err;

	err = env_default(env, "OMPI_MCA_btl",
			  own_libraries(mpi, env) ? "pvas,self,tcp" : "pvas,self");
	if (!err)
		err = env_default(env, "OMPI_MCA_pml", "ob1");
	return err ? err : env_default(env, "OMPI_MCA_osc", "^ucx");
}

static int add_component(const struct mpi *mpi, struct env *env)
{
	char dir[PATH_MAX], paths[PATH_MAX + 64];
	enum component where = component_find(dir);
	int err = 0;

	if (where == COMPONENT_NONE)
		return 0;
	if (where == COMPONENT_ASIDE) {
		if (env_get(env, COMPONENT_PATH))
			return 0;
		snprintf(paths, sizeof(paths), "%s:SYSTEM_DEFAULT:USER_DEFAULT", dir);
		err = env_set(env, COMPONENT_PATH, paths);
	}
	return err || !mpi->all_direct ? err : add_selection(mpi, env);
}

static int add_open_mpi(const struct mpi *mpi, struct env *env)
{
	char size[16];
	int err;

	snprintf(size, sizeof(size), "%u", mpi->opt->tasks);
	/* 4.1 takes itself for a program started alone if there is no daemon of its own. */
	err = env_set(env, "OMPI_MCA_orte_local_daemon_uri", "0.0;tcp://127.0.0.1:1");
	/* what scripts around MPI programs ask for */
	if (!err)
		err = env_set(env, "OMPI_COMM_WORLD_SIZE", size);
	if (!err)
		err = env_set(env, "OMPI_COMM_WORLD_LOCAL_SIZE", size);
	if (!err)
		err = env_set_ranked(env, "OMPI_COMM_WORLD_RANK", 0);
	if (!err)
		err = env_set_ranked(env, "OMPI_COMM_WORLD_LOCAL_RANK", 0);
	if (!err)
		err = add_directory(mpi, env);
	if (!err && crowded(mpi->opt->tasks))
		err = env_default(env, "OMPI_MCA_mpi_yield_when_idle", "1");
	return err || mpi->opt->no_btl ? err : add_component(mpi, env);
}

int mpi_env(const struct mpi *mpi, struct env *env)
{
	int err = 0;

	if (mpi->pmix || mpi->pmi1)
		drop_others(env);
	if (mpi->pmix)
		err = add_pmix(mpi, env);
	if (!err && mpi->pmix)
		err = add_open_mpi(mpi, env);
	if (!err && mpi->pmi1)
		err = add_pmi1(mpi, env);
	return err;
}
