// SPDX-License-Identifier: LGPL-2.1-or-later
/* The loader's system calls */
#include "sys.h"

#include <asm/stat.h>
#include <errno.h>
#include <linux/fcntl.h>
#include <linux/time_types.h>
#include "../rawsys.h"

#define S_IFMT_	0170000
#define S_IFREG_ 0100000

__u64 pvas_sys_mmap(__u64 addr, __u64 len, int prot, int flags, __u64 fd, __u64 off)
{
	return pvas_raw6(__NR_mmap, addr, len, prot, flags, fd, off);
}

int pvas_sys_munmap(__u64 addr, __u64 len)
{
	return pvas_raw2(__NR_munmap, addr, len);
}

int pvas_sys_mprotect(__u64 addr, __u64 len, int prot)
{
	return pvas_raw3(__NR_mprotect, addr, len, prot);
}

void pvas_sys_zero(__u64 addr, __u64 len)
{
	pvas_fill_bytes((void *)addr, 0, len);
}

long pvas_sys_pread(int fd, void *buf, __u64 len, __u64 off)
{
	return pvas_raw_pread(fd, buf, len, off);
}

long pvas_sys_size(int fd)
{
	struct stat st;
	long err;

	err = pvas_raw2(__NR_fstat, fd, &st);
	if (err)
		return err;
	if ((st.st_mode & S_IFMT_) != S_IFREG_)
		return -EACCES;
	return st.st_size;
}

int pvas_sys_open(const char *path)
{
	long fd;

	do {
		fd = pvas_raw4(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	} while (fd == -EINTR);
	return fd;
}

int pvas_sys_close(int fd)
{
	return pvas_raw1(__NR_close, fd);
}

void pvas_sys_pause(void)
{
	const struct __kernel_timespec ms = { .tv_nsec = 1000000 };

	pvas_raw2(__NR_nanosleep, &ms, 0);
}
