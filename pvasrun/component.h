/* SPDX-License-Identifier: GPL-2.0-only */
/* Where Open MPI's component pvas is. */
#ifndef PVASRUN_COMPONENT_H
#define PVASRUN_COMPONENT_H

#include <limits.h>
#include <stdbool.h>

#define COMPONENT_PATH	"OMPI_MCA_mca_base_component_path"

enum component {
	COMPONENT_NONE,		/* not built, not installed */
	COMPONENT_ASIDE,	/* in a place that Open MPI must be told of */
	COMPONENT_AT_HOME,	/* among Open MPI's own */
};

/* @dir is filled in if it is aside: without links, and only trusted users can change it. */
enum component component_find(char dir[static PATH_MAX]);

/*
 * A file that belongs to this program, from where it was built or installed: an
 * O_PATH descriptor of it, and its real path. -ENOENT, or -EPERM: there is one at
 * @path, but other users may have put it there.
 */
int beside_us(const char *built, const char *installed, char path[static PATH_MAX]);

#endif
