// SPDX-License-Identifier: GPL-2.0
/* Where Open MPI's component pvas is. */
#include "component.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMPONENT "mca_btl_pvas.so"

/* As the build found it; empty if there was no Open MPI */
#ifndef OMPI_COMPONENTS
#define OMPI_COMPONENTS ""
#endif

static bool joined(char path[static PATH_MAX], const char *dir, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX && !access(path, R_OK);
}

/* Both are relative to this program's directory. */
bool beside_us(const char *built, const char *installed, char path[static PATH_MAX])
{
	char dir[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	char *slash;

	if (len < 0)
		return false;
	dir[len] = '\0';
	slash = strrchr(dir, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return joined(path, dir, built) || joined(path, dir, installed);
}

enum component component_find(char dir[static PATH_MAX])
{
	char path[PATH_MAX];

	if (beside_us("../btl_glue/" COMPONENT, "../lib/pvas/openmpi/" COMPONENT, dir)) {
		*strrchr(dir, '/') = '\0';
		return COMPONENT_ASIDE;
	}
	if (OMPI_COMPONENTS[0] && joined(path, OMPI_COMPONENTS, COMPONENT))
		return COMPONENT_AT_HOME;
	return COMPONENT_NONE;
}
