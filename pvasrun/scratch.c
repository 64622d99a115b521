// SPDX-License-Identifier: GPL-2.0
/*
 * A job's directory. Its owner holds a lock on it, which goes with the process
 * however that ends: what can be locked belongs to nobody.
 */
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void scratch_name(struct scratch *scratch, const char *parent, const char *name)
{
	const char *tmp = getenv("TMPDIR");

	if (!parent)
		parent = tmp && *tmp ? tmp : "/tmp";
	scratch->parent = parent;
	scratch->made = false;
	scratch->lock = -1;
	snprintf(scratch->path, sizeof(scratch->path), "%s/pvasrun-%u-%s", parent, geteuid(), name);
}

static int lock(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	remove(path);
	return 0;
}

static void remove_all(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static int mine(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

static void sweep(const char *dir)
{
	char pattern[PATH_MAX];
	glob_t found;
	size_t i;
	int fd;

	snprintf(pattern, sizeof(pattern), "%s/pvasrun-%u-*", dir, geteuid());
	if (glob(pattern, GLOB_NOSORT, NULL, &found))
		return;
	for (i = 0; i < found.gl_pathc; i++) {
		fd = mine(found.gl_pathv[i]) ? lock(found.gl_pathv[i]) : -1;
		if (fd < 0)
			continue;
		remove_all(found.gl_pathv[i]);
		close(fd);
	}
	globfree(&found);
}

/* Somebody's sweep can come between making and locking it: then again. */
static int make_once(struct scratch *scratch)
{
	if (mkdir(scratch->path, 0700) < 0)
		return -errno;
	scratch->lock = lock(scratch->path);
	if (mine(scratch->path))
		return 0;
	if (scratch->lock >= 0)
		close(scratch->lock);
	/* Not swept away, but another's: so a preloaded library lies about ids. */
	rmdir(scratch->path);
	return -ESTALE;
}

int scratch_make(struct scratch *scratch, char *why, size_t len)
{
	int err, tries = 10;

	sweep(scratch->parent);
	do {
		err = make_once(scratch);
	} while (err == -ESTALE && --tries);
	scratch->made = !err;
	if (err)
		snprintf(why, len, "cannot make a directory for MPI in %s: %s (set TMPDIR)",
			 scratch->parent, strerror(-err));
	return err;
}

void scratch_remove(struct scratch *scratch)
{
	if (!scratch->made)
		return;
	remove_all(scratch->path);
	if (scratch->lock >= 0)
		close(scratch->lock);
	scratch->made = false;
}
