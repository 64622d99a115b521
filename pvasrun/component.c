// SPDX-License-Identifier: GPL-2.0-only
/* Find the components for Open MPI. */
#include "component.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trusted.h"

#define PRETEND "mca_coll_pretend.so"
#define GDS "pmix_mca_gds_pvas.so"
#define PRETEND_MPICH "pvas_pretend_mpich.so"

/* A build has those of one series of Open MPI: a BTL for 4.1; for 5.0 a part that btl/sm uses. */
static const struct {
	const char *built, *installed, *btl;
} components[] = {
#define COMPONENT(file, btl) { "../btl_glue/" file, "../lib/pvas/openmpi/" file, btl }
	COMPONENT("mca_smsc_pvas.so", "sm"),
	COMPONENT("mca_btl_pvas.so", "pvas"),
#undef COMPONENT
};
#define NR_COMPONENTS (sizeof(components) / sizeof(components[0]))

/* From the Makefile; empty if the build found no Open MPI */
#ifndef OMPI_COMPONENTS
#define OMPI_COMPONENTS ""
#endif

static bool joined(char path[static PATH_MAX], const char *dir, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX && !access(path, R_OK);
}

static int own_program(char program[static PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", program, PATH_MAX - 1);

	if (len < 0)
		return -ENOENT;
	program[len] = '\0';
	return strrchr(program, '/') ? 0 : -ENOENT;
}

int companion_open(const char *built, const char *installed, char path[static PATH_MAX])
{
	char program[PATH_MAX], dir[PATH_MAX], real[PATH_MAX];
	int fd;

	if (own_program(program))
		return -ENOENT;
	strcpy(dir, program);
	*strrchr(dir, '/') = '\0';
	fd = joined(path, dir, built) ? trusted_open(path, program, real) : -ENOENT;
	if (fd < 0 && joined(path, dir, installed))
		fd = trusted_open(path, program, real);
	else if (fd < 0)
		return joined(path, dir, built) ? -EPERM : -ENOENT;
	if (fd < 0)
		return -EPERM;
	strcpy(path, real);
	return fd;
}

int companion_find(const char *built, const char *const installed[], char path[static PATH_MAX])
{
	int fd = -ENOENT;

	for (; *installed && fd == -ENOENT; installed++)
		fd = companion_open(built, *installed, path);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Open MPI loads all components in that directory: other users must not add files. */
static bool find_in_own_dir(const char *built, const char *installed, char dir[static PATH_MAX])
{
	char program[PATH_MAX], real[PATH_MAX];
	int fd;

	fd = companion_open(built, installed, dir);
	if (fd < 0)
		return false;
	close(fd);
	*strrchr(dir, '/') = '\0';
	fd = own_program(program) ? -ENOENT : trusted_open(dir, program, real);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

bool component_find_pretend(char dir[static PATH_MAX])
{
	return find_in_own_dir("../pretend/" PRETEND, "../lib/pvas/pretend/" PRETEND, dir);
}

bool component_find_gds(char dir[static PATH_MAX])
{
	return find_in_own_dir("gds/" GDS, "../lib/pvas/gds/" GDS, dir);
}

bool component_find_pretend_mpich(char path[static PATH_MAX])
{
	int fd = companion_open("../pretend/" PRETEND_MPICH, "../lib/pvas/pretend/" PRETEND_MPICH,
				path);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool is_installed(unsigned int i)
{
	char path[PATH_MAX];

	return OMPI_COMPONENTS[0] &&
	       joined(path, OMPI_COMPONENTS, strrchr(components[i].built, '/') + 1);
}

enum component component_find(char dir[static PATH_MAX], const char **btl)
{
	unsigned int i;

	for (i = 0; i < 2 * NR_COMPONENTS; i++) {
		const unsigned int nr = i % NR_COMPONENTS;

		*btl = components[nr].btl;
		if (i < NR_COMPONENTS &&
		    find_in_own_dir(components[nr].built, components[nr].installed, dir))
			return COMPONENT_OWN_DIR;
		if (i >= NR_COMPONENTS && is_installed(nr))
			return COMPONENT_INSTALLED;
	}
	return COMPONENT_NONE;
}

bool component_has_pml(enum component found, const char *dir)
{
	char path[PATH_MAX];

	if (found == COMPONENT_INSTALLED)
		dir = OMPI_COMPONENTS;
	return found != COMPONENT_NONE && joined(path, dir, "mca_pml_pvas.so");
}
