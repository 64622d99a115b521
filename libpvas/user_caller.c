// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: what is a caller, its memory, its files.
 *
 * All of it by what a process may do to its descendants, under Yama's
 * ptrace_scope 1 as well. Containers forbid some of it (kcmp, pidfd_getfd), and
 * Yama does for a descendant whose parent is gone; then /proc is asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rawsys.h"
#include "user.h"

#define THREAD_PIDFD	O_EXCL	/* PIDFD_THREAD, 6.9 */

/* ---- memory ---- */

/* No longer than to the end of a page: what is beyond may not be there. */
static size_t in_page(uint64_t at, size_t len)
{
	size_t left = PAGE - (at & (PAGE - 1));

	return len < left ? len : left;
}

static int open_proc(pid_t tid, const char *name, int flags)
{
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Where a container forbids process_vm_readv and _writev. */
static ssize_t copy_by_proc(int nr, pid_t tid, uint64_t theirs, void *ours, size_t len)
{
	int fd = open_proc(tid, "mem", nr == __NR_process_vm_readv ? O_RDONLY : O_RDWR);
	ssize_t n;

	if (fd < 0)
		return 0;
	n = nr == __NR_process_vm_readv ? pread(fd, ours, len, (off_t)theirs)
					: pwrite(fd, ours, len, (off_t)theirs);
	close(fd);
	return n;
}

static ssize_t copy(int nr, pid_t tid, uint64_t theirs, void *ours, size_t len)
{
	size_t done = 0;

	while (done < len) {
		struct iovec here = { (char *)ours + done, in_page(theirs + done, len - done) };
		struct iovec there = { (void *)(theirs + done), here.iov_len };
		long n = pvas_raw6(nr, tid, (long)&here, 1, (long)&there, 1, 0);

		if (n == -EPERM || n == -ENOSYS)
			n = copy_by_proc(nr, tid, theirs + done, here.iov_base, here.iov_len);
		if (n <= 0)
			break;
		done += n;
	}
	return (ssize_t)done;
}

ssize_t user_caller_read(pid_t tid, uint64_t from, void *to, size_t len)
{
	return copy(__NR_process_vm_readv, tid, from, to, len);
}

/*
 * A number can be another process' by now. So take hold of the memory first,
 * then see that the request is still there: it was the caller's, then.
 */
static ssize_t write_checked(pid_t tid, uint64_t to, const void *from, size_t len)
{
	int fd = open_proc(tid, "mem", O_RDWR);
	ssize_t n = -1;

	if (user_request_valid())
		n = fd < 0 ? copy(__NR_process_vm_writev, tid, to, (void *)from, len)
			   : pwrite(fd, from, len, (off_t)to);
	if (fd >= 0)
		close(fd);
	return n;
}

ssize_t user_caller_write(pid_t tid, uint64_t to, const void *from, size_t len)
{
	if (tid != (pid_t)pvas_raw0(__NR_getpid))
		return write_checked(tid, to, from, len);
	return copy(__NR_process_vm_writev, tid, to, (void *)from, len);
}

/* ---- the same mm? ---- */

/* Is a variable of ours, that changes with each question, the same there? */
static int same_by_probe(pid_t tid)
{
	static __thread uint64_t probe;
	static uint64_t counter;
	uint64_t seen = 0;

	probe = __atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED) ^ 0x9e3779b97f4a7c15ULL;
	return user_caller_read(tid, (uint64_t)&probe, &seen, sizeof(seen)) == sizeof(seen) &&
	       __atomic_load_n(&probe, __ATOMIC_RELAXED) == seen;
}

int user_caller_inside(pid_t tid)
{
	long ret = pvas_raw4(__NR_kcmp, getpid(), tid, KCMP_VM, 0);

	if (ret >= 0)
		return ret == 0;
	return ret == -ESRCH ? 0 : same_by_probe(tid);
}

/* Has it an address space at all? Not when it ends, or as a first thread that has ended. */
int user_caller_has_memory(pid_t tid)
{
	int fd = open_proc(tid, "statm", O_RDONLY);
	char text[32] = "";
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && *text != '0';
}

/* ---- limits ---- */

/* For one that has changed its user, prlimit needs a capability; this does not. */
static uint64_t data_limit_by_proc(pid_t pid)
{
	int fd = open_proc(pid, "limits", O_RDONLY);
	char text[2048], *line;
	ssize_t n;

	if (fd < 0)
		return RLIM_INFINITY;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
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

pid_t user_caller_process(pid_t tid)
{
	int fd = open_proc(tid, "status", O_RDONLY);
	char text[512], *line;
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	line = strstr(text, "\nTgid:");
	return line ? atoi(line + 6) : 0;
}

/*
 * The same file opened anew: not the same open file description, but for a
 * mapping that makes no difference, unless a driver ties its state to it. A
 * pipe is not opened: that can wait for ever, and none can be mapped.
 */
static int reopen(pid_t tid, int fd, int prot, int flags)
{
	int shared = (flags & MAP_TYPE) != MAP_PRIVATE;
	char name[32], path[64];
	struct stat st;
	int ret = -EACCES;

	snprintf(name, sizeof(name), "fd/%d", fd);
	snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	if (stat(path, &st))
		return errno == ENOENT ? -EBADF : -errno;
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode) && !S_ISCHR(st.st_mode))
		return -ENODEV;
	/* What is mapped shared may be made writable later, if the file may be written. */
	if (shared)
		ret = open_proc(tid, name, O_RDWR | O_NOCTTY | O_NONBLOCK);
	if (ret < 0 && !(shared && (prot & PROT_WRITE)))
		ret = open_proc(tid, name, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	return ret == -ENOENT ? -EBADF : ret;
}

/*
 * Descriptors are a thread's: it may have left its process' table, and the
 * first thread has none when it has ended. Before Linux 6.9 there are pidfds of
 * processes only; they serve a thread that has the same table.
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

int user_caller_file(pid_t tid, int pidfd, int fd, int prot, int flags)
{
	int own = -1;
	long ret;

	if (fd < 0)
		return -EBADF;
	if (pidfd < 0)
		pidfd = own = open_pidfd(tid);
	ret = pidfd < 0 ? pidfd : pvas_raw3(__NR_pidfd_getfd, pidfd, fd, 0);
	if (own >= 0)
		close(own);
	if (ret == -EPERM || ret == -ENOSYS || ret == -EINVAL) {
		user_worker_slow(1);
		ret = reopen(tid, fd, prot, flags);
		user_worker_slow(-1);
	}
	return (int)ret;
}
