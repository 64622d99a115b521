/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only file that knows kernel versions. What differs between the kernels
 * we support is a pvas_x() here; the rest of the module calls that.
 */
#ifndef PVAS_COMPAT_H
#define PVAS_COMPAT_H

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/percpu_counter.h>
#include <linux/sched.h>
#include <linux/version.h>

/* The same range stands in dkms.conf and README.md; scripts/check-range compares. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0) || LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#error "pvas is tested with kernels 6.1 to 6.12 only"
#endif

/*
 * These don't deny writing to a running program, so that what we deny and allow
 * again would not add up.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 2)
#error "pvas does not work with kernels 6.11, 6.12.0 and 6.12.1: take a later 6.12"
#endif

#ifdef CONFIG_RANDSTRUCT
#error "pvas does not work with CONFIG_RANDSTRUCT: it counts on where a mount namespace begins"
#endif

#if !defined(CONFIG_X86_64) || !defined(CONFIG_DYNAMIC_FTRACE_WITH_REGS) || \
	!defined(CONFIG_MEMCG) || !defined(CONFIG_CGROUPS)
#error "pvas needs x86-64, CONFIG_DYNAMIC_FTRACE_WITH_REGS, CONFIG_MEMCG and CONFIG_CGROUPS"
#endif

/* Where every mmap, mremap and shmat asks for an address; 6.10 renamed it. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define PVAS_FN_GET_UNMAPPED_AREA "__get_unmapped_area"
#else
#define PVAS_FN_GET_UNMAPPED_AREA "get_unmapped_area"
#endif

/*
 * Threads that the kernel makes for itself inside a process (io_uring, and
 * vhost from 6.4 on): they pass through do_exit() but not through fork().
 */
static inline bool pvas_is_kernel_worker(const struct task_struct *tsk)
{
#ifdef PF_USER_WORKER
	return tsk->flags & (PF_IO_WORKER | PF_USER_WORKER);
#else
	return tsk->flags & PF_IO_WORKER;
#endif
}

/* Pages of one kind (MM_ANONPAGES, ...), exactly where the kernel can tell. */
static inline unsigned long pvas_mm_counted(struct mm_struct *mm, int kind)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
	return percpu_counter_sum_positive(&mm->rss_stat[kind]);
#else
	return get_mm_counter(mm, kind);
#endif
}

/*
 * Writing to a running program: kernels that let fanotify fill files on
 * access have a pair of helpers that exempts such files. Kbuild looks whether
 * this tree has it.
 */
static inline int pvas_deny_write(struct file *file)
{
#ifdef PVAS_HAVE_EXE_FILE_DENY
	return exe_file_deny_write_access(file);
#else
	return deny_write_access(file);
#endif
}

static inline void pvas_allow_write(struct file *file)
{
#ifdef PVAS_HAVE_EXE_FILE_DENY
	exe_file_allow_write_access(file);
#else
	allow_write_access(file);
#endif
}

#endif /* PVAS_COMPAT_H */
