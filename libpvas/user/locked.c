// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: an execve() that stays keeps the task's record locks.
 *
 * To close any descriptor of a file releases the locks that fcntl() has given to the process on
 * that file. The kernel's execve() reads its files without descriptors, which a task can't. So
 * a program that has a file locked that would be opened leaves the space. Such a lock needs a
 * descriptor of the file, and that tells of it.
 *
 * In the task: raw system calls only.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "rawsys.h"
#include "child.h"

/* Without a word to a file server, which need not answer */
static int is_same_file(int fd, const struct stat *st)
{
	struct statx its = { .stx_ino = 0 };
	struct stat plain;
	long err;

	err = pvas_raw6(__NR_statx, fd, (long)"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO,
			(long)&its, 0);
	if (!err)
		return its.stx_ino == st->st_ino &&
		       makedev(its.stx_dev_major, its.stx_dev_minor) == st->st_dev;
	/* A sandbox may not know it. */
	return (err == -ENOSYS || err == -EPERM) && !pvas_raw2(__NR_fstat, fd, &plain) &&
	       plain.st_ino == st->st_ino && plain.st_dev == st->st_dev;
}

/*
 * A lock of an open file collides with those of all processes, and so with those of this one. That
 * another process has it as well can't be told from that.
 */
static int has_locks(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	long err = pvas_raw3(__NR_fcntl, fd, F_OFD_GETLK, &lock);

	/* EBADF: by O_PATH, which gives no locks */
	return err ? err != -EBADF : lock.l_type != F_UNLCK;
}

static int is_locked_by(const char *name, int list, const struct stat *st)
{
	int fd = user_child_number_of(name);

	return *name != '.' && fd != list && is_same_file(fd, st) && has_locks(fd);
}

int user_program_is_locked(const struct stat *st)
{
	int list = user_child_open_list(0), locked = 0;
	char buf[4096] __attribute__((aligned(8)));
	long n = -1, at;

	while (list >= 0 && !locked &&
	       (n = pvas_raw3(__NR_getdents64, list, buf, sizeof(buf))) > 0)
		for (at = 0; at < n; at += ((struct dirent64 *)(buf + at))->len)
			locked |= is_locked_by(((struct dirent64 *)(buf + at))->name, list, st);
	if (list >= 0)
		pvas_raw1(__NR_close, list);
	/* Nor is it known if they can't be listed. */
	return locked || n < 0;
}
