// SPDX-License-Identifier: GPL-2.0-only
/*
 * Other users may be able to rename parts of the tree, or to replace a directory by a
 * symbolic link. So no path is used: each directory is opened by openat() in its
 * parent, without following links.
 *
 * A tree can be deeper than PATH_MAX, and deeper than there are descriptors. So it is
 * flattened: directories of the second level are moved to the first.
 */
#include "remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "open_here.h"

struct flat {
	int top;
	const char *keep;
	dev_t dev;
	unsigned int next;	/* number for the next directory that is moved */
	bool changed;		/* in this pass */
	int64_t until;
};

static bool stays(const struct flat *flat, int at, const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..") ||
	       (flat->keep && at == flat->top && !strcmp(name, flat->keep));
}

/* Through /proc: fchmod() refuses an O_PATH descriptor, and open() needs permissions. */
static void make_accessible(int path_fd)
{
	char path[40];
	struct stat st;

	if (fstat(path_fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 0700) == 0700)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	chmod(path, 0700);
}

int open_own_directory(int at, const char *name)
{
	int path_fd, fd;

	/* A rank may have mounted a file system there, whose server never answers. */
	path_fd = open_here(at, name);
	if (path_fd < 0)
		return path_fd;
	make_accessible(path_fd);
	fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(path_fd);
	return fd;
}

static void move_up(struct flat *flat, int from, const char *name)
{
	char moved[32];
	int tries = 100, fd;

	/* rename() of a directory needs write permission for the directory itself */
	fd = open_own_directory(from, name);
	if (fd >= 0)
		close(fd);
	do {
		snprintf(moved, sizeof(moved), ".pvasrun-%u", flat->next++);
		if (!renameat(from, name, flat->top, moved)) {
			flat->changed = true;
			return;
		}
	} while ((errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) && --tries);
}

/* Remove the entries of @fd, and call @directory for directories that are not empty. */
static void empty_level(struct flat *flat, int fd, void (*directory)(struct flat *flat, int at,
								     const char *name))
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	DIR *names;

	names = own < 0 ? NULL : fdopendir(own);
	if (!names) {
		if (own >= 0)
			close(own);
		return;
	}
	while (now_ms() < flat->until && (entry = readdir(names))) {
		if (stays(flat, fd, entry->d_name))
			continue;
		if (!unlinkat(fd, entry->d_name, 0) ||
		    !unlinkat(fd, entry->d_name, AT_REMOVEDIR))
			flat->changed = true;
		else
			directory(flat, fd, entry->d_name);
	}
	closedir(names);
}

static void empty_first(struct flat *flat, int at, const char *name)
{
	int fd = open_own_directory(at, name);
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_dev == flat->dev)
		empty_level(flat, fd, move_up);
	close(fd);
	if (!unlinkat(at, name, AT_REMOVEDIR))
		flat->changed = true;
}

void empty_directory(int top, const char *keep, int64_t until)
{
	struct flat flat = { .top = top, .keep = keep, .until = until };
	struct stat st;

	if (fstat(top, &st) < 0)
		return;
	flat.dev = st.st_dev;
	make_accessible(top);
	do {
		flat.changed = false;
		empty_level(&flat, top, empty_first);
	} while (flat.changed && now_ms() < until);
}

void remove_directory(int at, const char *name, int fd)
{
	if (is_here(at, name, fd))
		unlinkat(at, name, AT_REMOVEDIR);
}
