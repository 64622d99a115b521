/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * The names that the headers of older systems lack, down to those of Linux 5.10 and glibc 2.31.
 * A kernel without such a call refuses it; its number is the same on x86-64 and aarch64.
 */
#ifndef PVAS_LINUX_NAMES_H
#define PVAS_LINUX_NAMES_H

#include <asm/unistd.h>

#ifndef __NR_epoll_pwait2
#define __NR_epoll_pwait2 441
#endif
#ifndef __NR_set_mempolicy_home_node
#define __NR_set_mempolicy_home_node 450
#endif

#ifndef __ASSEMBLER__

#include <linux/close_range.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>

#ifndef SYS_close_range
#define SYS_close_range __NR_close_range
#endif
#ifndef SYS_openat2
#define SYS_openat2 __NR_openat2
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF 0
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef PR_SPEC_L1D_FLUSH
#define PR_SPEC_L1D_FLUSH 2
#endif
#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#define PR_SCHED_CORE_GET 0
#endif
#ifndef PR_SCHED_CORE_SCOPE_THREAD
#define PR_SCHED_CORE_SCOPE_THREAD 0
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#if __has_include(<linux/ioprio.h>)
#include <linux/ioprio.h>
#else
#define IOPRIO_WHO_PROCESS 1
#endif

#endif /* __ASSEMBLER__ */

#endif /* PVAS_LINUX_NAMES_H */
