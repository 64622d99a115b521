// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: properties of a caller: its memory and files.
 *
 * These calls are permitted on descendants, also with Yama's ptrace_scope 1.
 * Containers forbid some of them (kcmp, pidfd_getfd), and Yama does for a descendant
 * whose parent is gone; then /proc is used.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "child.h"
#include "rawsys.h"
#include "worker.h"

#define THREAD_PIDFD	O_EXCL	/* PIDFD_THREAD, 6.9 */

/* ---- memory ---- */

pid_t user_caller_self(void)
{
	return (pid_t)pvas_raw0(__NR_gettid);
}

/* Bytes to the end of the page: the next page may not be mapped. */
static size_t in_page(uint64_t at, size_t len)
{
	size_t left = PAGE - (at & (PAGE - 1));

	return len < left ? len : left;
}

/* Where a container forbids process_vm_readv() */
static ssize_t read_by_proc(uint64_t from, void *to, size_t len)
{
	int fd = user_proc_open(user_caller_self(), "mem", O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd == -EACCES || fd == -ENOENT ? -EPERM : 0;
	n = pread(fd, to, len, (off_t)from);
	close(fd);
	return n < 0 ? 0 : n;
}

/* Write to our own memory by a pipe: /proc/self/mem would write to read-only pages. */
static ssize_t store_by_pipe(uint64_t to, const void *from, size_t len)
{
	ssize_t n = -1;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	if (write(ends[1], from, len) == (ssize_t)len)
		n = pvas_raw3(__NR_read, ends[0], to, len);
	close(ends[0]);
	close(ends[1]);
	return n;
}

/* From or to our own memory, where the arguments of tasks are */
static ssize_t copy(int nr, uint64_t remote, void *local, size_t len)
{
	size_t done = 0;
	long n = 0;

	while (done < len) {
		struct iovec here = { (char *)local + done, in_page(remote + done, len - done) };
		struct iovec there = { (void *)(remote + done), here.iov_len };

		n = pvas_raw6(nr, user_caller_self(), (long)&here, 1, (long)&there, 1, 0);

		if ((n == -EPERM || n == -ENOSYS) && nr == __NR_process_vm_readv)
			n = read_by_proc(remote + done, here.iov_base, here.iov_len);
		else if (n == -EPERM || n == -ENOSYS)
			n = store_by_pipe(remote + done, here.iov_base, here.iov_len);
		if (n <= 0)
			break;
		done += n;
	}
	return !done && n == -EPERM ? -EPERM : (ssize_t)done;
}

ssize_t user_caller_read(pid_t tid, uint64_t from, void *to, size_t len)
{
	if (tid != user_caller_self())
		return user_reader_read(tid, from, to, len);
	return copy(__NR_process_vm_readv, from, to, len);
}

/* Of <linux/fs.h>: PROCMAP_QUERY, 6.11 */
struct map_query {
	uint64_t size, flags, addr, start, end, found_flags, rest[3];
	uint32_t numbers[4];
	uint64_t addresses[2];
};

#define MAP_QUERY	_IOWR('f', 17, struct map_query)
#define QUERY_WRITABLE	2

/* The end of the writable mapping at @at. 0: there is none; 1: this kernel has no such call. */
static uint64_t query_writable(int maps, uint64_t at)
{
	struct map_query q = { .size = sizeof(q), .flags = QUERY_WRITABLE, .addr = at };
	long err = pvas_raw3(__NR_ioctl, maps, MAP_QUERY, &q);

	return err ? err != -ENOENT : q.end;
}

#define LINES_MAX	4000	/* milliseconds; most programs have some hundred mappings */

/* The same, by reading */
static uint64_t find_writable(FILE *maps, uint64_t at)
{
	struct user_mapping m;
	int n = 0;

	rewind(maps);
	while (n++ < LINES_MAX && user_maps_next(maps, &m))
		if (m.end > at)
			return m.start <= at && m.writable ? m.end : 0;
	return 0;
}

/* Are all pages mapped writable? @fd is an open /proc/PID/maps, and closed. */
static int is_writable(int fd, uint64_t at, size_t len)
{
	FILE *maps = fdopen(fd, "r");
	uint64_t end = 1;

	while (maps && len && end) {
		end = query_writable(fd, at);
		if (end == 1)
			end = find_writable(maps, at);
		if (!end)
			break;
		len = end - at < len ? len - (end - at) : 0;
		at = end;
	}
	if (maps)
		fclose(maps);
	else
		close(fd);
	return !len;
}

/*
 * Such a write ignores page protection, so check that as well. Other threads of the process
 * may change mappings meanwhile; that harms the process only.
 */
static ssize_t write_checked(pid_t tid, uint64_t to, const void *from, size_t len)
{
	int maps = user_proc_open(tid, "maps", O_RDONLY);

	if (maps < 0 || !is_writable(maps, to, len))
		return -1;
	return user_reader_write(tid, to, from, len);
}

ssize_t user_caller_write(pid_t tid, uint64_t to, const void *from, size_t len)
{
	if (tid != user_caller_self())
		return write_checked(tid, to, from, len);
	return copy(__NR_process_vm_writev, to, (void *)from, len);
}

/* ---- identity ---- */

/*
 * The effective user. Not from a file: while one of those about its memory, or "status", is read,
 * the kernel holds that memory, and the reader of a process that is killed releases it, which can
 * wait for a file server of that process's. The directory itself has this owner whether or not
 * the process is dumpable. False: gone, or not to be seen
 */
static int user_of(pid_t tid, uid_t *user)
{
	struct statx st;

	if (user_proc_statx(tid, ".", &st) || !(st.stx_mask & STATX_UID))
		return 0;
	*user = st.stx_uid;
	return 1;
}

#define NO_NAMESPACES	1	/* the kernel has none: all are the same */

/*
 * Its user namespace. Two can map the same ids, as a sandbox does below a launcher that is in one.
 * 0: not known
 */
static uint64_t namespace_of(pid_t tid)
{
	struct statx st;
	int err = user_proc_statx(tid, "ns/user", &st);

	if (err == -ENOENT && user_proc_statx(tid, "ns", &st) == 0)
		return NO_NAMESPACES;
	return err ? 0 : st.stx_ino;
}

/* The launcher's. Are all its ids the same? */
static int own_user(uid_t *user)
{
	uid_t effective, saved, file;

	getresuid(user, &effective, &saved);
	file = (uid_t)pvas_raw1(__NR_setfsuid, -1);
	return *user == effective && *user == saved && *user == file;
}

void user_caller_know_own(struct user_space *u)
{
	u->has_user = own_user(&u->user);
	u->user_ns = namespace_of(user_caller_self());
}

int user_caller_is_own(const struct user_space *u, pid_t tid, int64_t *owner)
{
	uint64_t ns;
	uid_t user;

	if (!user_of(tid, &user))
		return -ESRCH;
	*owner = user;
	if (u->has_user && user != u->user)
		return 0;
	if (!u->has_user || !u->user_ns)
		return -ESRCH;
	ns = namespace_of(tid);
	if (ns == u->user_ns)
		return 1;
	/* A sandbox holds up none of its user's calls outside. One that hides, or can, is one. */
	*owner |= OWNER_SANDBOX;
	return ns ? 0 : -ESRCH;
}

/* ---- limits ---- */

/* For a process that has changed its user prlimit() needs a capability; this does not. */
static uint64_t data_limit_by_proc(pid_t pid)
{
	char text[2048], *line;

	user_proc_read(pid, "limits", text, sizeof(text));
	line = strstr(text, "\nMax data size");
	line = line ? line + strcspn(line, "0123456789u") : NULL;
	return line && *line != 'u' ? strtoull(line, NULL, 10) : RLIM_INFINITY;
}

uint64_t user_caller_data_limit(pid_t pid)
{
	struct rlimit limit;

	if (pvas_raw4(__NR_prlimit64, pid, RLIMIT_DATA, NULL, &limit))
		return data_limit_by_proc(pid);
	return limit.rlim_cur;
}

/* ---- files ---- */

/*
 * The list of the process's threads begins with the first one. Not from "status": see user_of() for
 * what can happen to its reader, and here a caller may choose the process.
 */
pid_t user_caller_process(pid_t tid)
{
	char buf[512] __attribute__((aligned(8)));
	int dir = user_proc_open(tid, "task", O_RDONLY | O_DIRECTORY);
	long n = dir < 0 ? 0 : pvas_raw3(__NR_getdents64, dir, buf, sizeof(buf)), at;
	pid_t pid = 0;

	for (at = 0; at < n && pid <= 0; at += ((struct dirent64 *)(buf + at))->len)
		pid = atoi(((struct dirent64 *)(buf + at))->name);
	if (dir >= 0)
		pvas_raw1(__NR_close, dir);
	return pid;
}

/* The descriptor's O_* flags, or -errno. */
static int flags_of(pid_t tid, int fd)
{
	char name[32], text[128], *line;
	ssize_t len;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	len = user_proc_read(tid, name, text, sizeof(text));
	if (len < 0)
		return len == -ENOENT ? -EBADF : (int)len;
	line = strstr(text, "flags:");
	return line ? (int)strtol(line + 6, NULL, 8) : -EACCES;
}

/*
 * To open the same file again. This is not the same open file description, but for a
 * mapping that makes no difference, unless a driver ties its state to it. A pipe is
 * not opened: that can block for ever, and pipes can't be mapped. The file is opened
 * with the launcher's rights, so for no more than the caller's descriptor permits.
 */
int user_caller_reopens(pid_t tid, int fd, int prot, int flags, int how[2])
{
	const int shared = (flags & MAP_TYPE) != MAP_PRIVATE;
	int has = flags_of(tid, fd), writes, reads, err;
	char name[32];
	struct statx st;

	if (has < 0)
		return has;
	if (has & O_PATH)
		return -EBADF;
	/* A shared mapping may be made writable later if the descriptor is writable. */
	writes = shared && (has & O_ACCMODE) == O_RDWR;
	reads = !(shared && (prot & PROT_WRITE));
	if ((has & O_ACCMODE) == O_WRONLY || (!writes && !reads))
		return -EACCES;
	snprintf(name, sizeof(name), "fd/%d", fd);
	err = user_proc_statx(tid, name, &st);
	if (err)
		return err == -ENOENT ? -EBADF : err;
	if (!S_ISREG(st.stx_mode) && !S_ISBLK(st.stx_mode) && !S_ISCHR(st.stx_mode))
		return -ENODEV;
	how[0] = (writes ? O_RDWR : O_RDONLY) | O_NOCTTY | O_NONBLOCK;
	how[1] = writes && reads ? O_RDONLY | O_NOCTTY | O_NONBLOCK : 0;
	return 0;
}

static int reopen(pid_t tid, int fd, int prot, int flags)
{
	char name[32];
	int how[2], ret = user_caller_reopens(tid, fd, prot, flags, how);

	if (ret)
		return ret;
	snprintf(name, sizeof(name), "fd/%d", fd);
	ret = user_proc_open(tid, name, how[0]);
	if (ret < 0 && how[1])
		ret = user_proc_open(tid, name, how[1]);
	return ret == -ENOENT ? -EBADF : ret;
}

/*
 * The descriptor table is the thread's: it may have unshared it, and a first thread
 * that has exited has none. Before Linux 6.9 there are pidfds of processes only,
 * which serve if the thread has the same table.
 */
static int open_pidfd(pid_t tid)
{
	int fd = (int)pvas_raw2(__NR_pidfd_open, tid, THREAD_PIDFD);
	pid_t pid;

	if (fd != -EINVAL)
		return fd;
	pid = user_caller_process(tid);
	if (pid != tid && pvas_raw4(__NR_kcmp, pid, tid, KCMP_FILES, 0))
		return -EINVAL;
	return (int)pvas_raw2(__NR_pidfd_open, pid, 0);
}

int user_caller_descriptor(pid_t tid, int fd)
{
	int pidfd = open_pidfd(tid);
	long ret;

	if (pidfd < 0)
		return pidfd;
	ret = pvas_raw3(__NR_pidfd_getfd, pidfd, fd, 0);
	close(pidfd);
	return (int)ret;
}

int user_caller_look(struct user_space *u, pid_t tid, int fd, struct user_look *look)
{
	char name[32];
	int err;

	if (fd < 0)
		return -EBADF;
	snprintf(name, sizeof(name), "fd/%d", fd);
	err = user_proc_statx(tid ? tid : user_caller_self(), name, &look->st);
	if (err == -ENOENT)
		return -EBADF;
	if (err)
		memset(look, 0, sizeof(*look));
	look->kind = user_mounts_kind(u, &look->st);
	return 0;
}

/*
 * Of the others a driver or the kernel itself has the calls. A message queue is a regular file of
 * an unknown mount: to close a copy here would end the launcher's request to be notified.
 */
int user_caller_can_hang(const struct user_look *look)
{
	return (S_ISREG(look->st.stx_mode) || !look->st.stx_mask) &&
	       look->kind != USER_MOUNT_LOCAL && look->kind != USER_MOUNT_SPECIAL;
}

/* Of another mount, or can't that be told? */
static int differs(int fd, const struct user_look *look, struct statx *st)
{
	st->stx_mask = 0;
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, st) ||
	       !(st->stx_mask & STATX_MNT_ID) || st->stx_mnt_id != look->st.stx_mnt_id;
}

int user_caller_differs(int fd, const struct user_look *look)
{
	struct statx st;

	return differs(fd, look, &st);
}

int user_caller_close(struct user_space *u, int fd, const struct user_look *look)
{
	struct user_look copy;

	if (differs(fd, look, &copy.st)) {
		copy.kind = user_mounts_kind(u, &copy.st);
		if (user_caller_can_hang(&copy))
			return -EBUSY;
	}
	close(fd);
	return 0;
}

int user_caller_file(pid_t tid, int fd, int prot, int flags)
{
	long ret;

	ret = user_caller_descriptor(tid, fd);
	if (ret == -EPERM || ret == -ENOSYS || ret == -EINVAL)
		ret = reopen(tid, fd, prot, flags);
	return (int)ret;
}
