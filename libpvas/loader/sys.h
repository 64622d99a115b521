/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The system calls of the loader: functions and not inlines, so that the fuzzer can
 * simulate the kernel.
 *
 * All return the kernel's result or -errno.
 */
#ifndef PVAS_LOADER_SYS_H
#define PVAS_LOADER_SYS_H

#include <linux/types.h>

#define PVAS_IS_ERR(v)	((__u64)(v) >= (__u64)-4095)

__u64 pvas_sys_mmap(__u64 addr, __u64 len, int prot, int flags, __u64 fd, __u64 off);
int pvas_sys_munmap(__u64 addr, __u64 len);
int pvas_sys_mprotect(__u64 addr, __u64 len, int prot);
void pvas_sys_zero(__u64 addr, __u64 len);
long pvas_sys_pread(int fd, void *buf, __u64 len, __u64 off);
long pvas_sys_size(int fd);
int pvas_sys_open(const char *path);
int pvas_sys_close(int fd);
void pvas_sys_pause(void);	/* about a millisecond */

#endif /* PVAS_LOADER_SYS_H */
