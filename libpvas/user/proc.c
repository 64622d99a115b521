// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the files of a process or thread in /proc. By a descriptor: the launcher may
 * change its root, and whoever owns the new one could say anything there.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "private.h"
#include "rawsys.h"
#include "user.h"

#define LOOKS_AT (STATX_BASIC_STATS | STATX_MNT_ID)

/* Of the launcher, which has one space at a time, and in its workers' table of descriptors */
static int proc_fd = -1;
static struct stat proc_is;
static struct statx root_is;

/* Unless the application has closed it, and has another file with that number */
static int proc(void)
{
	struct stat st;

	return proc_fd >= 0 && !fstat(proc_fd, &st) && st.st_dev == proc_is.st_dev &&
	       st.st_ino == proc_is.st_ino ? proc_fd : -1;
}

int user_proc_begin(void)
{
	int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0)
		return pvas_fail(-errno, "user backend: can't open /proc: %s",
				 strerror(errno));
	if (fstatfs(fd, &fs) || fs.f_type != PROC_SUPER_MAGIC || fstat(fd, &proc_is)) {
		close(fd);
		return pvas_fail(-ENOSYS, "user backend: /proc is not the kernel's (mount it)");
	}
	if (statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, LOOKS_AT, &root_is))
		root_is.stx_mask = 0;
	proc_fd = pvas_fd_above_standard(fd);
	return proc_fd < 0 ? proc_fd : 0;
}

void user_proc_forget(void)
{
	proc_fd = -1;
}

void user_proc_end(void)
{
	if (proc() >= 0)
		close(proc_fd);
	proc_fd = -1;
}

int user_proc_fd(void)
{
	return proc_fd;
}

static int open_there(const char *path, int flags)
{
	int fd = openat(proc(), path, flags | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int user_proc_open(pid_t tid, const char *name, int flags)
{
	char path[48];

	snprintf(path, sizeof(path), "%d/%s", tid, name);
	return open_there(path, flags);
}

int user_proc_statx(pid_t tid, const char *name, struct statx *st)
{
	char path[48];

	snprintf(path, sizeof(path), "%d/%s", tid, name);
	return statx(proc(), path, AT_STATX_DONT_SYNC, LOOKS_AT, st) ? -errno : 0;
}

/* By the mount: the same directory can be mounted elsewhere without /proc. */
int user_proc_in_root(pid_t tid)
{
	struct statx st;

	return !user_proc_statx(tid, "root", &st) && (st.stx_mask & STATX_MNT_ID) &&
	       (root_is.stx_mask & STATX_MNT_ID) && st.stx_mnt_id == root_is.stx_mnt_id &&
	       st.stx_dev_major == root_is.stx_dev_major &&
	       st.stx_dev_minor == root_is.stx_dev_minor && st.stx_ino == root_is.stx_ino;
}

ssize_t user_proc_link(pid_t tid, const char *name, char *text, size_t size)
{
	char path[48];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/%s", tid, name);
	n = readlinkat(proc(), path, text, size - 1);
	text[n < 0 ? 0 : n] = 0;
	return n < 0 ? -errno : n;
}

int user_proc_own_maps(void)
{
	return open_there("thread-self/maps", O_RDONLY);
}

FILE *user_maps_open(void)
{
	int fd = user_proc_own_maps();
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd < 0)
		errno = -fd;
	else if (!maps)
		close(fd);
	return maps;
}

ssize_t user_proc_read(pid_t tid, const char *name, char *text, size_t size)
{
	int fd = user_proc_open(tid, name, O_RDONLY);
	ssize_t n, len = 0;

	*text = 0;
	if (fd < 0)
		return fd;
	while ((n = read(fd, text + len, size - 1 - len)) > 0)
		len += n;
	if (n < 0)
		len = -errno;
	text[len < 0 ? 0 : len] = 0;
	close(fd);
	return len;
}

int user_maps_next(FILE *maps, struct user_mapping *m)
{
	char line[512], prot[8];
	int found = 0;

	while (!found && fgets(line, sizeof(line), maps)) {
		found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64, &m->start, &m->end,
			       prot, &m->offset) == 4;
		m->writable = found && prot[1] == 'w';
		/* The rest of a long file name could look like a mapping. */
		while (!strchr(line, '\n') && fgets(line, sizeof(line), maps))
			;
	}
	return found;
}

/* Of Linux 6.11, if the headers are older. */
struct mapping_query {
	uint64_t size, flags, addr;
	uint64_t start, end;
	uint64_t rest[8];
};

#define QUERY_MAPPING	_IOWR('f', 17, struct mapping_query)
#define QUERY_OR_NEXT	0x10

int user_maps_query(int maps, uint64_t addr, uint64_t *start, uint64_t *end)
{
	struct mapping_query q = {
		.size = sizeof(q), .flags = QUERY_OR_NEXT, .addr = addr,
	};
	long err = pvas_raw3(__NR_ioctl, maps, QUERY_MAPPING, &q);

	*start = q.start;
	*end = q.end;
	return (int)err;
}

/* The first mapping of the caller's own that ends above @addr. Returns 0 if it can't be read. */
static int first_above(uint64_t addr, struct user_mapping *m)
{
	FILE *maps = user_maps_open();

	memset(m, 0, sizeof(*m));
	while (maps && m->end <= addr && user_maps_next(maps, m))
		;
	if (!maps)
		return 0;
	fclose(maps);
	return 1;
}

int user_maps_is_one(uint64_t addr, uint64_t len)
{
	struct user_mapping m;

	return first_above(addr, &m) && m.end > addr && m.start <= addr && len <= m.end - addr;
}

int user_maps_is_free(uint64_t from, uint64_t to)
{
	struct user_mapping m;

	return first_above(from, &m) && (m.end <= from || m.start >= to);
}
