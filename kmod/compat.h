/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only file that depends on the kernel version: each difference between the
 * supported kernels is a macro or function here, or in the files of compat/, which it includes.
 */
#ifndef PVAS_COMPAT_H
#define PVAS_COMPAT_H

#include <linux/version.h>
#include <linux/fs.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#include <linux/filelock.h>
#endif
#include <linux/mm.h>
#include <linux/percpu_counter.h>
#include <linux/proc_ns.h>
#include <linux/sched.h>
#include <linux/sched/coredump.h>
#include <linux/timer.h>
#include <linux/user_namespace.h>
#include <linux/userfaultfd_k.h>

/* dkms.conf and README.md have the same range; scripts/check-range compares them. */
#ifndef PVAS_UNTESTED
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0) || LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0)
#error "pvas is tested with kernels 6.1 to 6.12 and 7.2 only"
#endif
#endif

/* For developers. No kernel between this one and 6.1 has been looked at. */
#define PVAS_IS_5_10	(LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0))
#if defined(PVAS_UNTESTED) && (LINUX_VERSION_CODE < KERNEL_VERSION(5, 10, 162) || \
	(LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0) && !PVAS_IS_5_10))
#error "pvas does not work with kernels before 5.10.162, and with 5.11 to 6.0"
#endif
#if PVAS_IS_5_10
#include "compat/5.10.h"
#endif

/* No kernel between the two ranges has been looked at, so one macro has all differences. */
#define PVAS_IS_7_2	(LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0))
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#error "pvas does not work with kernels 6.13 to 7.1"
#endif
#if PVAS_IS_7_2
#include <linux/sched/exec_state.h>
#include <asm/vdso/vsyscall.h>
#endif

/*
 * These do not deny write access to a running program, so pvas_deny_write() and
 * pvas_allow_write() would not be balanced.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 2)
#error "pvas does not work with kernels 6.11, 6.12.0 and 6.12.1: take a later 6.12"
#endif

/* Kbuild tests whether it is there: since 6.1.129, 6.6.79 and 6.12.16 it is. */
#if !PVAS_IS_5_10 && !defined(PVAS_HAVE_KILL_SEQ)
#error "pvas needs a kernel that counts what cgroup.kill does: 6.1.129, 6.6.79, 6.12.16 or later"
#endif

/* Linux itself does not export it. Kbuild looks into the kernel's list of exported symbols. */
#ifdef PVAS_NO_TASK_WORK
#error "pvas needs a kernel that exports task_work_add, as Debian's kernels do"
#endif

#ifdef CONFIG_RANDSTRUCT
#error "pvas does not work with CONFIG_RANDSTRUCT: it counts on where a mount namespace begins"
#endif

/* In 5.10 it has another name. */
#if PVAS_IS_5_10 && defined(CONFIG_DYNAMIC_FTRACE_WITH_REGS)
#define PVAS_HAVE_FTRACE	1
#elif !PVAS_IS_5_10 && defined(CONFIG_DYNAMIC_FTRACE_WITH_ARGS)
#define PVAS_HAVE_FTRACE	1
#else
#define PVAS_HAVE_FTRACE	0
#endif

#if !defined(CONFIG_X86_64) || !PVAS_HAVE_FTRACE || \
	!defined(CONFIG_MEMCG) || !defined(CONFIG_CGROUPS)
#error "pvas needs x86-64, CONFIG_DYNAMIC_FTRACE_WITH_ARGS, CONFIG_MEMCG and CONFIG_CGROUPS"
#endif

/* dkms.conf and README.md have this, too. */
#if defined(CONFIG_PREEMPT_RT) && (LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0) || PVAS_IS_7_2)
#error "pvas is tested with CONFIG_PREEMPT_RT of kernel 6.12 only"
#endif

/* Tracepoint probes run with preemption off. With PREEMPT_RT, spinlocks sleep. */
#define PVAS_PROBES_MAY_LOCK	(!IS_ENABLED(CONFIG_PREEMPT_RT))

/* Around instructions that take spinlocks. */
static inline void pvas_preempt_disable_nort(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
}

static inline void pvas_preempt_enable_nort(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
}

/* Every mmap, mremap and shmat gets its address here; 6.10 renamed it. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define PVAS_FN_GET_UNMAPPED_AREA "__get_unmapped_area"
#else
#define PVAS_FN_GET_UNMAPPED_AREA "get_unmapped_area"
#endif

/* Every munmap, mremap and mmap over a mapping calls it. 5.10 has yet another name. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#define PVAS_FN_MUNMAP "do_vmi_munmap"
#elif !PVAS_IS_5_10
#define PVAS_FN_MUNMAP "do_mas_munmap"
#endif

/* shmdt() of 6.12 calls this function, and not that. Before, it is static in mm/mmap.c. */
#define PVAS_HAVE_ALIGN_MUNMAP (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0))

/* Of arch_set_user_pkey_access(): the register that has the key, after the task before 7.2 */
#if PVAS_IS_7_2
#define PVAS_KEY_ARG(regs)	((regs)->di)
#else
#define PVAS_KEY_ARG(regs)	((regs)->si)
#endif

/* The arguments of mlock_fixup(), and the registers that have some of them. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#define PVAS_MLOCK_FIXUP_ARGS struct vma_iterator *vmi, struct vm_area_struct *vma, \
	struct vm_area_struct **prev
#define PVAS_MLOCK_FIXUP_START(regs) ((regs)->cx)
#define PVAS_MLOCK_FIXUP_END(regs) ((regs)->r8)
#else
#define PVAS_MLOCK_FIXUP_ARGS struct vm_area_struct *vma, struct vm_area_struct **prev
#define PVAS_MLOCK_FIXUP_START(regs) ((regs)->dx)
#define PVAS_MLOCK_FIXUP_END(regs) ((regs)->cx)
#endif

/*
 * Of move_vma(): the registers that have its arguments; in 7.2 one of them has the address of
 * this, which is private to mm/mremap.c. __x64_sys_mremap() has checked what this has.
 */
#if PVAS_IS_7_2
struct pvas_vma_remap {
	unsigned long addr;
	unsigned long old_len;
	unsigned long new_len;
	unsigned long flags;
	unsigned long new_addr;
	struct vm_userfaultfd_ctx *uf;
	struct list_head *uf_unmap_early;
	struct list_head *uf_unmap;
	struct vm_area_struct *vma;
};

#define PVAS_MOVE_VMA_ARG(regs)	  ((const struct pvas_vma_remap *)(regs)->di)
#define PVAS_MOVE_VMA_VMA(regs)	  (PVAS_MOVE_VMA_ARG(regs)->vma)
#define PVAS_MOVE_VMA_FROM(regs)  (PVAS_MOVE_VMA_ARG(regs)->addr)
#define PVAS_MOVE_VMA_OLD(regs)	  (PVAS_MOVE_VMA_ARG(regs)->old_len)
#define PVAS_MOVE_VMA_NEW(regs)	  (PVAS_MOVE_VMA_ARG(regs)->new_len)
#define PVAS_MOVE_VMA_TO(regs)	  (PVAS_MOVE_VMA_ARG(regs)->new_addr)
#else
#define PVAS_MOVE_VMA_VMA(regs)	  ((const struct vm_area_struct *)(regs)->di)
#define PVAS_MOVE_VMA_FROM(regs)  ((regs)->si)
#define PVAS_MOVE_VMA_OLD(regs)	  ((regs)->dx)
#define PVAS_MOVE_VMA_NEW(regs)	  ((regs)->cx)
#define PVAS_MOVE_VMA_TO(regs)	  ((regs)->r8)
#endif

/* Before, process_madvise() calls do_madvise() for each range. */
#define PVAS_HAVE_VECTOR_MADVISE PVAS_IS_7_2
#if PVAS_HAVE_VECTOR_MADVISE
#define PVAS_ITER_RANGES(iter)	 iter_iov(iter)
#else
#define PVAS_ITER_RANGES(iter)	 ((const struct iovec *)NULL)
#endif

/* 6.16 moved the tracepoint of exit to before exit_mm(). */
#define PVAS_EXIT_PROBE_IS_EARLY PVAS_IS_7_2

#define PVAS_HAVE_PAGEMAP_SCAN (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0))
#define PVAS_HAVE_SETSELFATTR (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0))
#define PVAS_HAVE_MSEAL	 (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0))
#if PVAS_HAVE_MSEAL
#define PVAS_VM_SEALED	 VM_SEALED
#else
#define PVAS_VM_SEALED	 VM_NONE
#endif

/* The functions behind userfaultfd's ioctls have other names since these versions. */
#define PVAS_NO_UFFD	 (!IS_ENABLED(CONFIG_USERFAULTFD))
#define PVAS_UFFD_CONTINUE (!PVAS_IS_5_10)
#define PVAS_UFFD_MFILL	 (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0))
#define PVAS_UFFD_POISON (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0))
#define PVAS_UFFD_MOVE	 (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0))
/*
 * The compiler of 7.2 has made move_pages() a part of its caller, and a variant of
 * mfill_atomic_poison() with other arguments: then these can't be checked, and tasks can't use
 * MOVE and POISON. Nor in 6.8, whose move_pages() has both a ctx and an mm, as no other kernel.
 */
#define PVAS_UFFD_UNCHECKED \
	(PVAS_IS_7_2 || (PVAS_UFFD_MOVE && LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)))

/* Before 6.9 the structure was private to fs/userfaultfd.c: identical up to @mm. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
struct userfaultfd_ctx {
	wait_queue_head_t fault_pending_wqh;
	wait_queue_head_t fault_wqh;
	wait_queue_head_t fd_wqh;
	wait_queue_head_t event_wqh;
	seqcount_spinlock_t refile_seq;
	refcount_t refcount;
	unsigned int flags;
	unsigned int features;
	bool released;
#if PVAS_IS_5_10
	bool mmap_changing;
#else
	atomic_t mmap_changing;
#endif
	struct mm_struct *mm;
};
#endif

/* The first argument of those functions is the mm, later the ctx. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
#define PVAS_UFFD_FILL_MM(arg) (((const struct userfaultfd_ctx *)(arg))->mm)
#else
#define PVAS_UFFD_FILL_MM(arg) ((const struct mm_struct *)(arg))
#endif

/* The mm into which mfill_atomic_install_pte() puts a page */
#if PVAS_UFFD_MFILL
#define PVAS_INSTALL_MM(regs) (((const struct vm_area_struct *)(regs)->si)->vm_mm)
#else
#define PVAS_INSTALL_MM(regs) ((const struct mm_struct *)(regs)->di)
#endif

/* Of a struct file_lock: where it is in the list of its file, and whose it is */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
#define PVAS_LOCK_LIST		c.flc_list
#define PVAS_LOCK_OWNER(lock)	((lock)->c.flc_owner)
#else
#define PVAS_LOCK_LIST		fl_list
#define PVAS_LOCK_OWNER(lock)	((lock)->fl_owner)
#endif

/* Under mmap_lock for writing. */
static inline void pvas_change_flags(struct vm_area_struct *vma, unsigned long set,
				     unsigned long clear)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

/* Frees the pages of a part of an area. Under mmap_lock. */
static inline void pvas_zap(struct vm_area_struct *vma, unsigned long from, unsigned long end)
{
#if PVAS_IS_7_2
	zap_vma_range(vma, from, end - from);
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	zap_page_range_single(vma, from, end - from, NULL);
#else
	zap_page_range(vma, from, end - from);
#endif
}

/* Before 6.5, the functions that get pages have room for their areas, too. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define PVAS_NO_AREAS
#else
#define PVAS_NO_AREAS	, NULL
#endif

/* Pins one page of the caller's. Under mmap_lock, without waiting for a userfaultfd. */
static inline long pvas_pin(unsigned long addr, unsigned int flags, struct page **page)
{
	return pin_user_pages(addr, 1, flags, page PVAS_NO_AREAS);
}

/* Gets a reference to one page of the caller's. Under mmap_lock. */
static inline long pvas_get_page(unsigned long addr, unsigned int flags, struct page **page)
{
	return get_user_pages(addr, 1, flags, page PVAS_NO_AREAS);
}

/* Changes what faults see of an area, which need not take mmap_lock. Under it for writing. */
static inline void pvas_change_ops(struct vm_area_struct *vma,
				   const struct vm_operations_struct *ops)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	vma_start_write(vma);
#endif
	vma->vm_ops = ops;
}

static inline void pvas_timer_destroy_on_stack(struct timer_list *timer)
{
#if PVAS_IS_7_2
	timer_destroy_on_stack(timer);
#else
	destroy_timer_on_stack(timer);
#endif
}

/* Drops the lock that a page fault holds. Before 6.6, a userfault is under mmap_lock only. */
static inline void pvas_release_fault(struct vm_fault *vmf)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	release_fault_lock(vmf);
#else
	mmap_read_unlock(vmf->vma->vm_mm);
#endif
}

/* Ends the registration of an area. Under mmap_lock for writing. */
static inline void pvas_forget_uffd(struct vm_area_struct *vma)
{
	pvas_change_flags(vma, 0, __VM_UFFD_FLAGS);
	vma->vm_userfaultfd_ctx = NULL_VM_UFFD_CTX;
}

/* 7.2 has it in each task. */
static inline void pvas_mm_forget_user_ns(struct mm_struct *mm)
{
#if !PVAS_IS_7_2
	put_user_ns(xchg(&mm->user_ns, get_user_ns(&init_user_ns)));
#endif
}

#if PVAS_IS_7_2
#define pvas_mm_has_flag(mm, flag)	mm_flags_test(flag, mm)
#define pvas_mm_set_flag(mm, flag)	mm_flags_set(flag, mm)
#else
#define pvas_mm_has_flag(mm, flag)	test_bit(flag, &(mm)->flags)
#define pvas_mm_set_flag(mm, flag)	set_bit(flag, &(mm)->flags)
#endif

/*
 * Whether a process is dumpable belongs to its mm; in 7.2, to each task that has made an exec,
 * and its threads. Both are asked: what a kernel does not have is dumpable. No function that
 * tells is exported there, but a task that is held has this until it is freed.
 */
static inline bool pvas_mm_is_dumpable(struct mm_struct *mm)
{
#if PVAS_IS_7_2
	return true;
#else
	return get_dumpable(mm) == SUID_DUMP_USER;
#endif
}

static inline bool pvas_task_is_dumpable(const struct task_struct *tsk)
{
#if PVAS_IS_7_2
	bool is;

	rcu_read_lock();
	is = READ_ONCE(rcu_dereference(tsk->exec_state)->dumpable) == TASK_DUMPABLE_OWNER;
	rcu_read_unlock();
	return is;
#else
	return true;
#endif
}

/* The first of the vdso's data pages, which come before its code. */
static inline unsigned long pvas_vdso_start(const struct mm_struct *mm)
{
	unsigned long vdso = (unsigned long)mm->context.vdso;

#if PVAS_IS_7_2
	return vdso - __VDSO_PAGES * PAGE_SIZE;
#else
	return vdso + mm->context.vdso_image->sym_vvar_start;
#endif
}

/*
 * Two words of security blobs that differ, after one that does not: since 6.15, Landlock has
 * behind the address of its domain a bit for each layer that came after the last exec, by which
 * it chooses what to log, and above these 16 one that is inherited. An exec clears the bits, and
 * no rights depend on them.
 */
static inline bool pvas_is_landlock_log(unsigned long before, unsigned long a, unsigned long b)
{
#if PVAS_IS_7_2
	return (long)before < 0 && !((a ^ b) >> 16) && !(a >> 17);
#else
	return false;
#endif
}

static inline unsigned int pvas_inode_state(struct inode *inode)
{
#if PVAS_IS_7_2
	return inode_state_read_once(inode);
#else
	return READ_ONCE(inode->i_state);
#endif
}

/*
 * The number of a mount namespace, which no other ever has; 0 if it is not found. The struct is
 * private to fs/. It begins with a struct ns_common, which has the number in 7.2. Before, it
 * differs between kernels: a few words later come:
 */
struct pvas_mnt_ns_part {
	struct user_namespace *user_ns;
	struct ucounts *ucounts;
	u64 seq;
};

#define PVAS_MNT_NS_WORDS	16

static inline u64 pvas_mnt_ns_id(struct ns_common *ns)
{
#if PVAS_IS_7_2
	return ns->ns_id;
#else
	const struct user_namespace *owner = ns->ops->owner(ns);
	const unsigned long *word = (const unsigned long *)(ns + 1);
	unsigned int i;

	for (i = 0; i < PVAS_MNT_NS_WORDS; i++, word++)
		if (*word == (unsigned long)owner)
			return ((const struct pvas_mnt_ns_part *)word)->seq;
	return 0;
#endif
}

/*
 * Threads that the kernel creates in a process (io_uring, and vhost from 6.4 on): the
 * exit tracepoint sees them, the fork tracepoint does not.
 */
static inline bool pvas_is_kernel_worker(const struct task_struct *tsk)
{
#ifdef PF_USER_WORKER
	return tsk->flags & (PF_IO_WORKER | PF_USER_WORKER);
#else
	return tsk->flags & PF_IO_WORKER;
#endif
}

/* Pages of one kind (MM_ANONPAGES, ...), exact if the kernel can count them. */
static inline unsigned long pvas_mm_counted(struct mm_struct *mm, int kind)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
	return percpu_counter_sum_positive(&mm->rss_stat[kind]);
#else
	return get_mm_counter(mm, kind);
#endif
}

/*
 * Write access to a running program: kernels in which fanotify can fill files on access
 * exempt such files in a pair of helpers. Kbuild tests whether this kernel has them.
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

#include "compat/cids.h"
#if !PVAS_IS_5_10
#include "compat/6.1.h"
#endif

#endif /* PVAS_COMPAT_H */
