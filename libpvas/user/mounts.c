// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: is a file on this machine, or does a server answer for it, perhaps never?
 *
 * By its mount, as statx(2) and /proc/PID/mountinfo number it: no question to the file system
 * itself, which may be the server's. The number is another mount's when the first one is gone. So
 * who asks has looked at the file before, and the table is read again if mounts have changed until
 * now: then a mount that is in it was there all the time.
 */
#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc.h"
#include "process.h"
#include "rawsys.h"
#include "user.h"

#define STEP	64

/* An overlay counts as what those who mount in our namespace have made it of. */
static const char *const local[] = {
	"ext4", "xfs", "btrfs", "tmpfs", "overlay", "ext3", "ext2", "f2fs", "bcachefs", "zfs",
	"jfs", "ramfs", "rootfs", "devtmpfs", "squashfs", "erofs", "iso9660", "udf", "vfat",
	"exfat", "ntfs3",
};
/* Of huge pages, or of drivers: as the memory of PCI devices, in regular files of sysfs */
static const char *const special[] = { "hugetlbfs", "sysfs", "proc", "debugfs" };

static int is_one_of(const char *type, size_t len, const char *const *types, size_t n)
{
	while (n--)
		if (!strncmp(types[n], type, len) && !types[n][len])
			return 1;
	return 0;
}

#define IS_ONE_OF(type, len, types) \
	is_one_of(type, len, types, sizeof(types) / sizeof((types)[0]))

static enum user_mount_kind kind_of(const char *type)
{
	const size_t len = strcspn(type, " ");

	if (IS_ONE_OF(type, len, local))
		return USER_MOUNT_LOCAL;
	if (IS_ONE_OF(type, len, special))
		return USER_MOUNT_SPECIAL;
	return strncmp(type, "fuse", 4) ? USER_MOUNT_SERVED : USER_MOUNT_FUSE;
}

static int add(struct user_mounts *m, uint64_t id, enum user_mount_kind kind)
{
	struct user_mount *more;

	if (m->count % STEP == 0) {
		more = realloc(m->all, (m->count + STEP) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		m->all = more;
	}
	m->all[m->count++] = (struct user_mount){ id, kind };
	return 0;
}

/* The kernel's own, which is in no table and never ends: of memfd_create(2) */
static void add_memory(struct user_mounts *m)
{
	const int fd = memfd_create("pvas", MFD_CLOEXEC);
	struct statx st;

	if (fd < 0)
		return;
	if (!statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) &&
	    (st.stx_mask & STATX_MNT_ID))
		add(m, st.stx_mnt_id, USER_MOUNT_LOCAL);
	close(fd);
}

static int compare(const void *a, const void *b)
{
	const struct user_mount *one = a, *other = b;

	return (one->id > other->id) - (one->id < other->id);
}

/* Spaces in it are escaped, so that the first lone dash is the one before the type. */
static void read_all(struct user_mounts *m)
{
	char *line = NULL, *dash;
	size_t room = 0;
	int err = 0;

	m->count = 0;
	rewind(m->file);
	while (!err && getline(&line, &room, m->file) > 0) {
		dash = strstr(line, " - ");
		if (dash)
			err = add(m, strtoull(line, NULL, 10), kind_of(dash + 3));
	}
	free(line);
	add_memory(m);
	qsort(m->all, m->count, sizeof(*m->all), compare);
}

/* Under the lock. With what can't be read all mounts are unknown. */
static void bring_up_to_date(struct user_mounts *m)
{
	struct pollfd change = { .events = POLLPRI };
	int fd;

	if (!m->file && !m->ended) {
		fd = user_proc_open((pid_t)pvas_raw0(__NR_gettid), "mountinfo", O_RDONLY);
		m->file = fd < 0 ? NULL : fdopen(fd, "r");
		if (!m->file)
			return;
		user_file_mark(fd);
		read_all(m);
	}
	if (m->file && !user_file_is_ours(fileno(m->file))) {
		m->count = 0;
		return;
	}
	change.fd = m->file ? fileno(m->file) : -1;
	if (m->file && poll(&change, 1, 0) > 0)
		read_all(m);
}

enum user_mount_kind user_mounts_kind(struct user_space *u, const struct statx *st)
{
	const struct user_mount wanted = { .id = st->stx_mnt_id };
	struct user_mounts *m = &u->mounts;
	const struct user_mount *found;
	enum user_mount_kind kind;

	if (!(st->stx_mask & STATX_MNT_ID))
		return USER_MOUNT_UNKNOWN;
	pthread_mutex_lock(&m->lock);
	bring_up_to_date(m);
	found = m->count ? bsearch(&wanted, m->all, m->count, sizeof(wanted), compare) : NULL;
	kind = found ? found->kind : USER_MOUNT_UNKNOWN;
	pthread_mutex_unlock(&m->lock);
	return kind;
}

void user_mounts_begin(struct user_space *u)
{
	pthread_mutex_lock(&u->mounts.lock);
	bring_up_to_date(&u->mounts);
	pthread_mutex_unlock(&u->mounts.lock);
}

void user_mounts_end(struct user_space *u)
{
	struct user_mounts *m = &u->mounts;

	pthread_mutex_lock(&m->lock);
	m->ended = 1;
	m->count = 0;
	if (m->file && user_file_is_ours(fileno(m->file)))
		fclose(m->file);
	m->file = NULL;
	free(m->all);
	m->all = NULL;
	pthread_mutex_unlock(&m->lock);
}
