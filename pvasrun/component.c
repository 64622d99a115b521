// SPDX-License-Identifier: GPL-2.0-only
/* Where Open MPI's component pvas is. */
#include "component.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trusted.h"

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
int beside_us(const char *built, const char *installed, char path[static PATH_MAX])
{
	char program[PATH_MAX], dir[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	char *slash;

	if (len < 0)
		return -ENOENT;
	program[len] = '\0';
	strcpy(dir, program);
	slash = strrchr(dir, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	if (joined(path, dir, built) && trusted_path(path, program))
		return 0;
	if (joined(path, dir, installed))
		return trusted_path(path, program) ? 0 : -EPERM;
	return joined(path, dir, built) ? -EPERM : -ENOENT;
}

enum component component_find(char dir[static PATH_MAX])
{
	char path[PATH_MAX];

	if (!beside_us("../btl_glue/" COMPONENT, "../lib/pvas/openmpi/" COMPONENT, dir)) {
		*strrchr(dir, '/') = '\0';
		return COMPONENT_ASIDE;
	}
	if (OMPI_COMPONENTS[0] && joined(path, OMPI_COMPONENTS, COMPONENT))
		return COMPONENT_AT_HOME;
	return COMPONENT_NONE;
}
