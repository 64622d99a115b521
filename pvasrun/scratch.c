// SPDX-License-Identifier: GPL-2.0-only
/*
 * A job's directory. Its owner holds a lock on it, which goes with the process
 * however that ends: what can be locked belongs to nobody.
 */
#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "empty.h"

/* The rest is the next job's. */
#define SWEEP_MS	10000
#define REMOVE_MS	30000

static int lock(const char *path, int *fd)
{
	int err;

	*fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	if (!flock(*fd, LOCK_EX | LOCK_NB))
		return 0;
	err = -errno;
	close(*fd);
	*fd = -1;
	return err;
}

/*
 * Leftovers of a killed job. Others can exchange a name at any moment: only the
 * directory that was opened and is this user's counts.
 */
static void sweep_one(int at, const char *name, int64_t until)
{
	int fd = open_own_directory(at, name);
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB)) {
		empty_directory(fd, until);
		remove_directory(at, name, fd);
	}
	close(fd);
}

static void sweep(const char *dir)
{
	int64_t until = now_ms() + SWEEP_MS;
	struct dirent *entry;
	char prefix[32];
	DIR *names;

	names = opendir(dir);
	if (!names)
		return;
	snprintf(prefix, sizeof(prefix), "pvasrun-%u-", geteuid());
	while (now_ms() < until && (entry = readdir(names)))
		if (!strncmp(entry->d_name, prefix, strlen(prefix)) && entry->d_type != DT_REG)
			sweep_one(dirfd(names), entry->d_name, until);
	closedir(names);
}

/* Which job's it is, others may know; but not where it will be. */
static int make_name(struct scratch *scratch, const char *parent)
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	if (snprintf(scratch->path, sizeof(scratch->path), "%s/pvasrun-%u-%d-%016jx%016jx", parent,
		     geteuid(), getpid(), (uintmax_t)random[0], (uintmax_t)random[1]) >=
	    (int)sizeof(scratch->path))
		return -ENAMETOOLONG;
	return 0;
}

/* Is what is locked what was made, for this user only, and still there? */
static bool is_kept(const struct scratch *scratch)
{
	struct stat locked, there;

	return !fstat(scratch->lock, &locked) && !lstat(scratch->path, &there) &&
	       S_ISDIR(there.st_mode) && there.st_dev == locked.st_dev &&
	       there.st_ino == locked.st_ino && there.st_uid == geteuid() &&
	       (there.st_mode & 0777) == 0700;
}

/* Somebody's sweep can come between making and locking it: then again. */
static int make_once(struct scratch *scratch, const char *parent)
{
	int err = make_name(scratch, parent);

	if (err)
		return err;
	if (mkdir(scratch->path, 0700) < 0)
		return errno == EEXIST ? -ESTALE : -errno;
	err = lock(scratch->path, &scratch->lock);
	if (err)
		err = err == -EWOULDBLOCK || err == -ENOENT ? -ESTALE : err;
	else if (!is_kept(scratch))
		err = -ESTALE;
	if (!err)
		return 0;
	if (scratch->lock >= 0)
		close(scratch->lock);
	/* Or it is another's: so a preloaded library lies about ids. */
	rmdir(scratch->path);
	return err;
}

int scratch_make(struct scratch *scratch, const char *parent, char *why, size_t len)
{
	const char *tmp = getenv("TMPDIR");
	int err, tries = 100;

	if (!parent)
		parent = tmp && *tmp ? tmp : "/tmp";
	scratch->lock = -1;
	sweep(parent);
	do {
		err = make_once(scratch, parent);
	} while (err == -ESTALE && --tries);
	scratch->made = !err;
	if (err)
		snprintf(why, len, "cannot make a directory for MPI in %s: %s%s", parent,
			 strerror(-err), tmp == parent || !strcmp(parent, "/tmp") ?
			 " (set TMPDIR)" : " (or say --mpi none)");
	return err;
}

void scratch_remove(struct scratch *scratch)
{
	if (!scratch->made)
		return;
	/* that directory itself: its name may be another's by now */
	empty_directory(scratch->lock, now_ms() + REMOVE_MS);
	remove_directory(AT_FDCWD, scratch->path, scratch->lock);
	close(scratch->lock);
	scratch->made = false;
}
