/* SPDX-License-Identifier: GPL-2.0-only */
/* Find the components for Open MPI. */
#ifndef PVASRUN_COMPONENT_H
#define PVASRUN_COMPONENT_H

#include <limits.h>
#include <stdbool.h>

#define COMPONENT_PATH	"OMPI_MCA_mca_base_component_path"

enum component {
	COMPONENT_NONE,		/* not built, not installed */
	COMPONENT_OWN_DIR,	/* in a directory that Open MPI does not search by default */
	COMPONENT_INSTALLED,	/* in Open MPI's own directory */
};

/* With COMPONENT_OWN_DIR, @dir has no links and only trusted users can change it. */
enum component component_find(char dir[static PATH_MAX]);

/* Likewise, the directory of the component that --pretend needs; Open MPI never searches it. */
bool component_find_pretend(char dir[static PATH_MAX]);

/*
 * Open a file that belongs to this program, relative to the program's directory in the
 * build tree or installed. An O_PATH descriptor, with the real path in @path; -ENOENT;
 * or -EPERM: there is a file at @path, but other users may have put it there.
 */
int companion_open(const char *built, const char *installed, char path[static PATH_MAX]);

#endif
