/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Linux 5.10, for compat.h: the names that it lacks, as later kernels define them, and the
 * registers that have the arguments of functions which differ there.
 */
#ifndef PVAS_COMPAT_5_10_H
#define PVAS_COMPAT_5_10_H

#include <linux/elf.h>
#include <linux/ftrace.h>
#include <linux/net.h>
#include <linux/pagemap.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/vmacache.h>
#include <asm/vdso.h>

/* ---- ftrace ---- */

/* A callback gets these registers, all of them, if it asks for that; else none. */
#define ftrace_regs		pt_regs
#define PVAS_OPS_MORE		(FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_RECURSION_SAFE)

/* One at a time, each of which patches the kernel's text. */
static inline int pvas_ftrace_stand(struct ftrace_ops *ops, unsigned long *ips, unsigned int n)
{
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < n; i++)
		err = ftrace_set_filter_ip(ops, ips[i], 0, !i);
	return err;
}

/* Hence longer, before they are taken off. */
#define PVAS_LINGER_MS		10000

/* Not registered any more. */
static inline void pvas_ftrace_free(struct ftrace_ops *ops)
{
	ftrace_set_filter(ops, NULL, 0, 1);
}

/* ---- functions that are hooked ---- */

/* (mm, addr, len, userfaultfds, ...) */
#define PVAS_FN_MUNMAP		"__do_munmap"
#define PVAS_MUNMAP_MM(regs)	((regs)->di)
#define PVAS_MUNMAP_ADDR(regs)	((regs)->si)
#define PVAS_MUNMAP_LEN(regs)	((regs)->dx)
#define PVAS_MUNMAP_UFFDS(regs)	((regs)->cx)

/*
 * The compiler has made the checks of their arguments a part of the callers in the same file, which
 * go on in these. A kernel whose compiler has not is refused: it does not have the names.
 */
#define PVAS_FN_MADVISE		"do_madvise.part.0"
#define PVAS_FN_MIGRATE		"do_migrate_pages.part.0"

/* Of mem_rw() the compiler has changed the arguments: (file, buffer, count, position) */
#define PVAS_FN_PROC_MEM	"mem_write"
#define PVAS_PROC_MEM_WRITES(regs) true

/* (task, mm, address, buffer, length, flags) */
#define PVAS_REMOTE_MM(regs)	((regs)->si)
#define PVAS_REMOTE_FLAGS(regs)	((regs)->r9)

#define PVAS_FN_SEND_SIGNAL	"__send_signal"

#define PVAS_HAVE_HOME_NODE	false
#define PVAS_HAVE_KTHREAD_COMM	0

/* ---- areas: a list, and a tree without iterators ---- */

struct pvas_vma_iterator {
	struct mm_struct *mm;
	unsigned long from;
};

#define VMA_ITERATOR(name, mm_, from_) struct pvas_vma_iterator name = { (mm_), (from_) }
#define for_each_vma(name, vma)							\
	for ((vma) = find_vma((name).mm, (name).from); (vma); (vma) = (vma)->vm_next)
#define for_each_vma_range(name, vma, end)					\
	for ((vma) = find_vma((name).mm, (name).from);				\
	     (vma) && (vma)->vm_start < (end); (vma) = (vma)->vm_next)

static inline struct vm_area_struct *vma_lookup(struct mm_struct *mm, unsigned long addr)
{
	struct vm_area_struct *vma = find_vma(mm, addr);

	return vma && vma->vm_start <= addr ? vma : NULL;
}

#define PAGE_ALIGN_DOWN(addr)	ALIGN_DOWN(addr, PAGE_SIZE)

/* ---- userfaultfd ---- */

#define __VM_UFFD_FLAGS		(VM_UFFD_MISSING | VM_UFFD_WP)
#define _UFFDIO_CONTINUE	0x07

/*
 * The compiler has left no function that puts one page: so a UFFDIO_COPY that has begun before the
 * space was made is not seen. It needs an area that is registered, and here the registration of
 * one, by a process that is not a task, can be stopped: userfaultfd_ioctl() looks the area up with
 *
 *	(mm, addr, previous)
 */
#define PVAS_FN_UFFD_LOOKUP	"find_vma_prev"

static inline size_t fault_in_readable(const char __user *uaddr, size_t size)
{
	return fault_in_pages_readable(uaddr, size) ? size : 0;
}

/* Without writing to it, as fault_in_pages_writeable() does. */
static inline size_t fault_in_safe_writeable(const char __user *uaddr, size_t size)
{
	unsigned long at = (unsigned long)uaddr & PAGE_MASK, end = (unsigned long)uaddr + size;
	struct mm_struct *mm = current->mm;
	bool unlocked = false;
	int err = 0;

	if (!access_ok(uaddr, size))
		return size;
	mmap_read_lock(mm);
	for (; !err && at < end; at += PAGE_SIZE)
		err = fixup_user_fault(mm, at, FAULT_FLAG_WRITE, &unlocked);
	mmap_read_unlock(mm);
	return err ? size : 0;
}

/* ---- the change of an mm ---- */

/*
 * The scheduler of another processor can ask whether the caller, with PF_KTHREAD set, is bound to
 * one. It then reads that at the address in @set_child_tid, which has no other use after the start
 * of a process. A reader that has the old address, before it reads the flag, has interrupts off.
 */
static inline void pvas_before_switch(void)
{
	static unsigned long no_kthread[64];
	bool had = current->set_child_tid;

	WRITE_ONCE(current->set_child_tid, (int __force __user *)no_kthread);
	if (had)
		synchronize_rcu_expedited();
}

/* A cache of areas of the old mm, which has no reference to them. */
static inline void pvas_between_switch(void)
{
	vmacache_flush(current);
}

static inline void pvas_after_switch(void)
{
	WRITE_ONCE(current->set_child_tid, NULL);
}

/* There is no cgroup.kill. */
static inline unsigned int pvas_kill_seq(struct cgroup *cgrp)
{
	return 0;
}

/* ---- others ---- */

#define PVAS_DUMP_ENDS_SPACE	1

/* A mount namespace does not begin with its struct ns_common. */
static inline struct ns_common *pvas_mnt_ns_common(struct mnt_namespace *ns)
{
	struct { atomic_t count; struct ns_common ns; } *begin = (void *)ns;

	return &begin->ns;
}

/* The areas of a program deny write access to it, not the mm's exe_file. */
static inline int pvas_deny_exe(struct file *file)
{
	return 0;
}

static inline void pvas_allow_exe(struct file *file) { }

/* A partition takes over the mm's exe_file, or gives it back: only there, access is denied. */
static inline int pvas_exe_becomes_ours(struct file *file)
{
	return deny_write_access(file);
}

static inline void pvas_exe_was_ours(struct file *file)
{
	allow_write_access(file);
}

/* How many signals are queued for the user of a process. Under RCU. */
static inline unsigned long pvas_queued_signals(struct task_struct *t)
{
	return atomic_read(&__task_cred(t)->user->sigpending);
}

static inline struct socket *pvas_socket_of(struct file *file)
{
	int err;

	return sock_from_file(file, &err);
}

static inline int pvas_page_refs(struct page *page)
{
	if (PageCompound(page) || !PageLRU(page) || atomic_read(&page->_mapcount))
		return INT_MAX;
	return page_count(page) - !!PageSwapCache(page);
}

#define FUSE_SUPER_MAGIC	0x65735546
#define SECRETMEM_MAGIC		0x5345434d
#define MADV_COLLAPSE		25
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SCHED_CORE		62
#define PR_SET_VMA		0x53564d41
#define ARCH_GET_XCOMP_SUPP	0x1021
#define ARCH_REQ_XCOMP_GUEST_PERM 0x1025
#define AT_MINSIGSTKSZ		51
/* That a script's argv[0] is kept: no such flag */
#define BINPRM_FLAGS_PRESERVE_ARGV0 0
#define AT_FLAGS_PRESERVE_ARGV0	0

#endif /* PVAS_COMPAT_5_10_H */
