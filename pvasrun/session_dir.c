// SPDX-License-Identifier: GPL-2.0-only
/*
 * pvasrun holds a lock on the directory. The kernel releases it when the process ends,
 * however it ends: a directory that can be locked is stale.
 *
 * The name alone does not make a directory pvasrun's: where the parent has no sticky bit,
 * others can rename a directory that they can neither enter nor remove. So it contains its
 * own random name in a file, which only this user can have put into a directory of mode 0700.
 * And the node's name: where $TMPDIR is on a network file system, locks of directories are
 * not seen from other nodes.
 */
#include "session_dir.h"

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
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "open_here.h"
#include "remove_tree.h"

/* After this time, in which signals wait, the rest is left to the next job. */
#define SWEEP_MS	300
#define REMOVE_MS	30000

#define UNFINISHED_S	60

#define OWNER_FILE	".pvasrun"
#define OWNER_TEXT	400
#define RANDOM_DIGITS	32

static int lock(int at, const char *name, int *fd)
{
	int path_fd = open_here(at, name), err;

	if (path_fd < 0)
		return path_fd;
	*fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = *fd < 0 || flock(*fd, LOCK_EX | LOCK_NB) ? -errno : 0;
	close(path_fd);
	if (err && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	return err;
}

/* Of the directory @name of this node. The length, which is below @size */
static size_t owner_text(char *text, size_t size, const char *name)
{
	struct utsname node;

	if (uname(&node) < 0)
		node.nodename[0] = '\0';
	return snprintf(text, size, "%.255s %s\n", name, node.nodename);
}

static int write_owner_file(int dir, const char *name)
{
	char text[OWNER_TEXT];
	size_t len = owner_text(text, sizeof(text), name);
	ssize_t n;
	int fd;

	fd = openat(dir, OWNER_FILE, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	close(fd);
	if (n == (ssize_t)len)
		return 0;
	unlinkat(dir, OWNER_FILE, 0);
	return -ENOSPC;
}

/* -ENOENT: there is none, or it is another directory's. -EAGAIN: only its beginning is there. */
static int read_owner_file(int dir, const char *name, struct stat *st)
{
	int fd = openat(dir, OWNER_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char found[OWNER_TEXT] = "", text[OWNER_TEXT];
	size_t len = owner_text(text, sizeof(text), name);
	ssize_t n = -1;

	if (fd < 0)
		return -ENOENT;
	if (!fstat(fd, st) && S_ISREG(st->st_mode))
		n = read(fd, found, sizeof(found));
	close(fd);
	if (n < 0 || n > (ssize_t)len || memcmp(found, text, n))
		return -ENOENT;
	return n == (ssize_t)len ? 0 : -EAGAIN;
}

static bool has_only_owner_file(int dir)
{
	int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = own < 0 ? NULL : fdopendir(own);
	struct dirent *entry;
	unsigned int others = 0;

	if (!names) {
		if (own >= 0)
			close(own);
		return false;
	}
	while (!others && (entry = readdir(names)))
		others = strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
			 strcmp(entry->d_name, OWNER_FILE);
	closedir(names);
	return !others;
}

/*
 * The file goes last: what is left without it, because the time was over, would belong
 * to no job for ever.
 */
static void remove_with_owner_file(int at, const char *name, int fd)
{
	if (has_only_owner_file(fd))
		unlinkat(fd, OWNER_FILE, 0);
	remove_directory(at, name, fd);
}

static bool lock_stale(int dir)
{
	struct stat st;

	return !fstat(dir, &st) && st.st_uid == geteuid() && (st.st_mode & 0777) == 0700 &&
	       !flock(dir, LOCK_EX | LOCK_NB);
}

/*
 * One without its file is removed if empty, or if there is only a part of that: the job was
 * killed before it wrote it. Not at once, for on another node it may be writing.
 */
static void sweep_one(int at, const char *name, int fd, int64_t until)
{
	struct stat file;
	int err;

	if (!lock_stale(fd))
		return;
	err = read_owner_file(fd, name, &file);
	if (!err)
		empty_directory(fd, OWNER_FILE, until);
	if (!err || (err == -EAGAIN && time(NULL) - file.st_mtime >= UNFINISHED_S))
		remove_with_owner_file(at, name, fd);
	else
		remove_directory(at, name, fd);
}

/* pvasrun-UID-PID-RANDOM */
static bool is_session_name(const char *name)
{
	char prefix[32];
	const char *p;

	snprintf(prefix, sizeof(prefix), "pvasrun-%u-", geteuid());
	if (strncmp(name, prefix, strlen(prefix)))
		return false;
	p = name + strlen(prefix);
	p += strspn(p, "0123456789");
	return *p == '-' && strlen(p + 1) == RANDOM_DIGITS &&
	       strspn(p + 1, "0123456789abcdef") == RANDOM_DIGITS;
}

static bool may_be_own(const struct dirent *entry)
{
	return (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
	       is_session_name(entry->d_name);
}

/*
 * Remove @name, if it is the directory of a killed job. Another user may have made it, and
 * thousands more, or may replace it at any time: so first see whose it is, by a descriptor.
 */
static void sweep_name(int at, const char *name, int64_t until)
{
	int path_fd = open_here(at, name), fd;
	struct stat st;

	if (path_fd < 0)
		return;
	if (!fstat(path_fd, &st) && st.st_uid == geteuid()) {
		fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0) {
			sweep_one(at, name, fd, until);
			close(fd);
		}
	}
	close(path_fd);
}

static void sweep(const char *dir)
{
	int64_t until = now_ms() + SWEEP_MS;
	struct dirent *entry;
	DIR *names;

	names = opendir(dir);
	if (!names)
		return;
	while (now_ms() < until && (entry = readdir(names)))
		if (may_be_own(entry))
			sweep_name(dirfd(names), entry->d_name, until);
	closedir(names);
}

/* The prefix may be known to other users; the rest can not be guessed. */
static int make_name(struct session_dir *dir, const char *parent)
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	if (snprintf(dir->path, sizeof(dir->path), "%s/pvasrun-%u-%d-%016jx%016jx", parent,
		     geteuid(), getpid(), (uintmax_t)random[0], (uintmax_t)random[1]) >=
	    (int)sizeof(dir->path))
		return -ENAMETOOLONG;
	return 0;
}

static const char *name_of(const struct session_dir *dir)
{
	return strrchr(dir->path, '/') + 1;
}

/* Is the locked directory the one at the path, and private to this user? */
static bool is_in_place(const struct session_dir *dir, int at)
{
	struct stat locked;

	return !fstat(dir->lock, &locked) && locked.st_uid == geteuid() &&
	       (locked.st_mode & 0777) == 0700 && is_here(at, name_of(dir), dir->lock);
}

/* -ESTALE: another pvasrun of this user removed it before it was locked, so try again. */
static int create_once(struct session_dir *dir, const char *parent, int at)
{
	int err = make_name(dir, parent);

	if (err)
		return err;
	if (mkdirat(at, name_of(dir), 0700) < 0)
		return errno == EEXIST ? -ESTALE : -errno;
	err = lock(at, name_of(dir), &dir->lock);
	if (err)
		err = err == -EWOULDBLOCK || err == -ENOENT ? -ESTALE : err;
	else if (!is_in_place(dir, at))
		err = -ESTALE;
	else
		err = write_owner_file(dir->lock, name_of(dir));
	if (!err)
		return 0;
	if (dir->lock >= 0)
		close(dir->lock);
	dir->lock = -1;
	/* it can also look like another user's: fakeroot(1) and the like change ids */
	unlinkat(at, name_of(dir), AT_REMOVEDIR);
	return err;
}

static int create_in(struct session_dir *dir, const char *parent)
{
	int at = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int err, tries = 100;

	if (at < 0)
		return -errno;
	sweep(parent);
	do {
		err = create_once(dir, parent, at);
	} while (err == -ESTALE && --tries);
	close(at);
	return err;
}

int session_dir_create(struct session_dir *dir, const char *parent, char *why, size_t len)
{
	const char *tmp = getenv("TMPDIR");
	char real[PATH_MAX];
	int err;

	if (!parent)
		parent = tmp && *tmp ? tmp : "/tmp";
	dir->lock = -1;
	/* ranks may run in another directory */
	err = realpath(parent, real) ? create_in(dir, real) : -errno;
	dir->created = !err;
	if (err)
		snprintf(why, len, "cannot make a directory for MPI in %s: %s%s", parent,
			 strerror(-err), tmp == parent || !strcmp(parent, "/tmp") ?
			 " (set TMPDIR)" : " (or say --mpi none)");
	return err;
}

/* Of the directory that contains it; or -1 */
static int open_parent(const struct session_dir *dir)
{
	char parent[PATH_MAX];

	/* with the slash, for it may be the root */
	snprintf(parent, sizeof(parent), "%.*s", (int)(name_of(dir) - dir->path), dir->path);
	return open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void session_dir_remove(struct session_dir *dir)
{
	int at;

	if (!dir->created)
		return;
	/* by descriptor: the path may lead to another directory by now */
	empty_directory(dir->lock, OWNER_FILE, now_ms() + REMOVE_MS);
	at = open_parent(dir);
	if (at >= 0) {
		remove_with_owner_file(at, name_of(dir), dir->lock);
		close(at);
	}
	close(dir->lock);
	dir->created = false;
}
