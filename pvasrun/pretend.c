// SPDX-License-Identifier: GPL-2.0-only
/*
 * MPI libraries create communicators by operations of all ranks, most of which do not exist
 * here. For Open MPI there is a component, and for MPICH a library that is preloaded: see
 * coll_glue/pretend.
 */
#include "pretend.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "component.h"
#include "elf_needed.h"
#include "job.h"
#include "report.h"

/*
 * MPICH 4.0 computes the size of its table of addresses, 4096 bytes for each rank, in an
 * int: MPIDU_bc_table_create() in src/mpid/common/bc/mpidu_bc.c.
 */
#define MPICH_MAX_RANKS (INT_MAX / 4096)

static bool any_mpich(const struct options *opt)
{
	unsigned int i;

	for (i = 0; i < opt->nr_apps; i++)
		if (opt->apps[i].elf & ELF_NEEDS_MPICH)
			return true;
	return false;
}

/* ---- checks ---- */

/* The preloaded library relies on an algorithm in which all ranks have the same part. */
static int check_mpich(const struct options *opt)
{
	unsigned int ranks = options_world_size(opt);
	char path[PATH_MAX];

	if (ranks > MPICH_MAX_RANKS)
		report_error("--pretend: %u ranks: MPICH 4.0 has at most %u (its table of addresses has 2 GiB)",
			     ranks, MPICH_MAX_RANKS);
	else if (ranks & (ranks - 1))
		report_error("--pretend: %u ranks: with MPICH, NODES and PPN must be powers of two",
			     ranks);
	else if (!component_find_pretend_mpich(path))
		report_error("--pretend: pvas_pretend_mpich.so is missing (install package openmpi-pvas; in the source tree: make coll_glue)");
	else
		return 0;
	return STATUS_FAILED;
}

static int check_open_mpi(void)
{
	char dir[PATH_MAX];

	if (component_find_pretend(dir))
		return 0;
	report_error("--pretend: mca_coll_pretend.so for Open MPI is missing (install package openmpi-pvas; in the source tree: make coll_glue)");
	return STATUS_FAILED;
}

int pretend_check(const struct options *opt)
{
	if (!opt->pretend.nodes)
		return 0;
	return any_mpich(opt) ? check_mpich(opt) : check_open_mpi();
}

/* ---- environment ---- */

static int prepend(struct env *env, const char *name, const char *first, const char *others)
{
	char text[3 * PATH_MAX];

	if (others && snprintf(text, sizeof(text), "%s:%s", first, others) >= (int)sizeof(text))
		return -ENAMETOOLONG;
	return env_set(env, name, others ? text : first);
}

static int add_open_mpi(const char *tasks, struct env *env)
{
	const char *others = env_get(env, COMPONENT_PATH);
	char dir[PATH_MAX];
	int err;

	if (!component_find_pretend(dir))
		return -ENOENT;
	err = prepend(env, COMPONENT_PATH, dir, others ? others : "SYSTEM_DEFAULT:USER_DEFAULT");
	/* MiB: the description of a job of millions of ranks is longer than libpmix's 16 */
	if (!err)
		err = env_default(env, "PMIX_MCA_ptl_base_max_msg_size", "1024");
	return err ? err : env_set(env, "OMPI_MCA_coll_pretend_ranks", tasks);
}

/* The algorithms, and that each rank has the address of each other: see mpich/ucx.c */
static int add_mpich(const struct options *opt, const char *tasks, struct env *env)
{
	static const char *const settings[][2] = {
		{ "MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM", "recursive_doubling" },
		{ "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "recursive_doubling" },
		{ "MPIR_CVAR_BARRIER_INTRA_ALGORITHM", "smp" },
		{ "MPIR_CVAR_CH4_ROOTS_ONLY_PMI", "0" },
	};
	char path[PATH_MAX];
	int err = component_find_pretend_mpich(path) ? 0 : -ENOENT;
	size_t i;

	for (i = 0; i < sizeof(settings) / sizeof(settings[0]) && !err; i++)
		err = env_set(env, settings[i][0], settings[i][1]);
	if (!err)
		err = env_set(env, "PVAS_PRETEND_RANKS", tasks);
	if (!err)
		err = env_set(env, "PVAS_PRETEND_FULL", opt->pretend.full ? "1" : "0");
	return err ? err : prepend(env, "LD_PRELOAD", path, env_get(env, "LD_PRELOAD"));
}

int pretend_env(const struct options *opt, struct env *env)
{
	char tasks[16];

	if (!opt->pretend.nodes)
		return 0;
	snprintf(tasks, sizeof(tasks), "%u", opt->tasks);
	return any_mpich(opt) ? add_mpich(opt, tasks, env) : add_open_mpi(tasks, env);
}
