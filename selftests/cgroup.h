/* SPDX-License-Identifier: GPL-2.0-only */
/* A memory control group of the test's own, in a cgroup2 hierarchy that only the test sees. */
#ifndef CGROUP_H
#define CGROUP_H

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pvas_test.h"

/* Any directory will do: it is mounted in the test's own namespace, and gone with that. */
#define CG_ROOT "/mnt"

/* Mounts the hierarchy, and makes a group @name in it. */
static inline int make_cgroup(const char *name, char *path, size_t len)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", CG_ROOT, "cgroup2", 0, NULL))
		return -errno;
	snprintf(path, len, "%s/%s", CG_ROOT, name);
	return mkdir(path, 0755) && errno != EEXIST ? -errno : 0;
}

static inline const char *cg_file(const char *group, const char *file)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", group, file);
	return path;
}

static inline void remove_cgroup(const char *group)
{
	int tries = 100;

	while (rmdir(group) && tries--)
		usleep(20000);
}

static inline int enter_cgroup(void *arg)
{
	return pt_write_file(cg_file(arg, "cgroup.procs"), "0");
}

#endif /* CGROUP_H */
