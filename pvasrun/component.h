/* SPDX-License-Identifier: GPL-2.0-only */
/* Find the components for Open MPI. */
#ifndef PVASRUN_COMPONENT_H
#define PVASRUN_COMPONENT_H

#include <limits.h>
#include <stdbool.h>

/*
 * The variable's long name, which precedes the short one: Open MPI 5.0 also passes that
 * on to libpmix, which then looks for its own components there.
 */
#define COMPONENT_PATH	"OMPI_MCA_opal_mca_base_component_path"
#define COMPONENT_PATH_SHORT "OMPI_MCA_mca_base_component_path"
/* Directories with components of libpmix, besides its own */
#define PMIX_COMPONENT_PATH "PMIX_MCA_mca_base_component_path"

/*
 * Open MPI's btl/sm leaves messages of more than 256 bytes in place where it can map the
 * sender's memory. Up to this length, its eager limit, a copy has the lower latency.
 */
#define SM_INLINE	"OMPI_MCA_btl_sm_max_inline_send"
#define SM_INLINE_MAX	"4096"

enum component {
	COMPONENT_NONE,		/* not built, not installed */
	COMPONENT_OWN_DIR,	/* in a directory that Open MPI does not search by default */
	COMPONENT_INSTALLED,	/* in Open MPI's own directory */
};

/*
 * With COMPONENT_OWN_DIR, @dir has no links and only trusted users can change it. @btl
 * is the BTL that copies once with what was found: ours, or Open MPI's own.
 */
enum component component_find(char dir[static PATH_MAX], const char **btl);

/* Is pml/pvas beside what component_find() @found? Without a PML that is named, MPI_Init fails. */
bool component_has_pml(enum component found, const char *dir);

/* Likewise, the directory of the component that --pretend needs; Open MPI never searches it. */
bool component_find_pretend(char dir[static PATH_MAX]);
/* Likewise, the directory of the component of libpmix: see pmix/gds */
bool component_find_gds(char dir[static PATH_MAX]);
/* And the path of the library that MPICH's ranks preload */
bool component_find_pretend_mpich(char path[static PATH_MAX]);

/*
 * Open a file that belongs to this program, relative to the program's directory in the
 * build tree or installed. An O_PATH descriptor, with the real path in @path; -ENOENT;
 * or -EPERM: there is a file at @path, but other users may have put it there.
 */
int companion_open(const char *built, const char *installed, char path[static PATH_MAX]);
/* The same for the first of @installed, up to NULL, that is there: 0 or -errno */
int companion_find(const char *built, const char *const installed[], char path[static PATH_MAX]);

#endif
