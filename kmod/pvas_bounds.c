// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bounds: the hooks in mm/, and their reasons.
 *
 *  - vm_unmapped_area: search for free addresses in the caller's partition
 *    only. All callers end there, hugetlbfs and shmat included;
 *  - [__]get_unmapped_area: drop a hint outside the partition or in its outermost
 *    pages, refuse a MAP_FIXED there (-ENOMEM), and MAP_GROWSDOWN, which would grow out;
 *  - functions that change mappings or settings of the mm: see pvas_calls.c;
 *  - userfaultfd_ioctl, handle_userfault: see pvas_uffd.c;
 *  - arch_set_user_pkey_access: whose each protection key is, see pvas_keys.c;
 *  - expand_downwards: no stack grows out of its partition, no matter which
 *    process touches it;
 *  - __oom_reap_task_mm: process_mrelease(2) frees no page of a living space;
 *  - __access_remote_vm: a space without processes does not grow;
 *  - copy_page_range: fork does not copy other partitions' page tables;
 *  - get_task_exe_file: /proc/PID/exe of a task is its own program;
 *  - with the parameter refuse_ia32, every ia32 system call: -EPERM in a task.
 */
#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "pvas.h"
#include "pvas_hook.h"
#include "pvas_layout.h"

bool pvas_refuse_ia32;
module_param_named(refuse_ia32, pvas_refuse_ia32, bool, 0444);
MODULE_PARM_DESC(refuse_ia32,
		 "refuse all ia32 system calls (int 0x80) in tasks, not only those that map (default N)");

/* ---- stubs that redirected calls go to ---- */

static long pvas_stub_enomem(void)
{
	return -ENOMEM;
}

static int pvas_stub_zero(void)
{
	return 0;
}

static bool pvas_stub_true(void)
{
	return true;
}

static int pvas_stub_copy_nothing(struct vm_area_struct *dst, struct vm_area_struct *src)
{
	return 0;
}

static struct file *pvas_stub_exe_file(struct task_struct *tsk)
{
	return pvas_task_exe_get(tsk);
}

/* ---- ftrace callbacks ---- */

/*
 * On every function that may serve an ia32 call. Some of them also serve 64-bit calls, or
 * take any arguments, so this does not look at the arguments.
 */
static void notrace pvas_on_ia32(unsigned long ip, unsigned long parent_ip,
				 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);

	if (in_ia32_syscall() && pvas_task_partition())
		pvas_redirect(regs, pvas_stub_eperm);
}

static void notrace pvas_on_search(unsigned long ip, unsigned long parent_ip,
				   struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pvas_partition *part = pvas_task_partition();

	if (part)
		pvas_mm_clamp(part, (struct vm_unmapped_area_info *)pvas_regs(fregs)->di);
}

static bool pvas_has_uprobes(const struct task_struct *tsk)
{
#ifdef CONFIG_UPROBES
	return tsk->utask;
#else
	return false;
#endif
}

/*
 * uprobes maps its page, which serves the whole mm, at the top of the address space. It is
 * not moved into a partition. The request comes from a breakpoint's exception, in which
 * orig_ax is -1, as in no system call.
 */
static bool pvas_is_uprobes_page(unsigned long addr, unsigned long len, unsigned long flags)
{
	return addr == TASK_SIZE_MAX - PAGE_SIZE && len == PAGE_SIZE && !flags &&
	       pvas_has_uprobes(current) && task_pt_regs(current)->orig_ax == -1UL;
}

/* Where the kernel would place what has that hint: hugetlbfs rounds it up to a huge page. */
static unsigned long pvas_hint(const struct file *file, unsigned long addr)
{
	const struct super_block *sb = file ? file_inode(file)->i_sb : NULL;

	return sb && sb->s_magic == HUGETLBFS_MAGIC ? ALIGN(addr, sb->s_blocksize) : addr;
}

/* (file, addr, len, pgoff, flags, ...) */
static void notrace pvas_on_place(unsigned long ip, unsigned long parent_ip,
				  struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);
	struct pvas_partition *part = pvas_task_partition();
	unsigned long addr, at, len, flags;

	if (!part)
		return;
	addr = regs->si;
	len = regs->dx;
	flags = regs->r8;
	at = flags & MAP_FIXED ? addr : pvas_hint((const struct file *)regs->di, addr);
	/* For a length larger than the address space, the function returns -ENOMEM. */
	if (flags & MAP_GROWSDOWN)
		regs->dx = -PAGE_SIZE;
	else if (pvas_mm_may_map(part, at, len))
		return;
	else if (flags & MAP_FIXED)
		regs->dx = -PAGE_SIZE;
	else if (addr && !pvas_is_uprobes_page(addr, len, flags))
		regs->si = 0;
}

/* (dst_vma, src_vma) */
static void notrace pvas_on_copy(unsigned long ip, unsigned long parent_ip,
				 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);
	struct pvas_partition *part = pvas_task_partition();
	const struct vm_area_struct *vma;
	unsigned int index;

	if (!part)
		return;
	vma = (const struct vm_area_struct *)regs->si;
	/* For these it does more than copy, which the end of the child undoes. */
	if (vma->vm_flags & (VM_PFNMAP | VM_MIXEDMAP))
		return;
	index = pvas_index_of(part->space, vma->vm_start);
	if (index == part->index || index < part->space->first || index > part->space->last ||
	    test_bit(index, part->space->reserved))
		return;
	pvas_silence_copy((struct vm_area_struct *)regs->di);
	pvas_redirect(regs, pvas_stub_copy_nothing);
}

/*
 * (vma, address). The last area of the lower neighbour may be a stack, too, above which
 * the kernel requires no gap, so this keeps one. Peers and debuggers can make a stack
 * grow: the caller need not be the task.
 */
static void notrace pvas_on_expand(unsigned long ip, unsigned long parent_ip,
				   struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);
	const struct vm_area_struct *vma;
	unsigned long begin;
	u32 shift;

	vma = (const struct vm_area_struct *)regs->di;
	shift = pvas_space_shift_of(vma->vm_mm);
	if (!shift)
		return;
	begin = ALIGN_DOWN(vma->vm_end - 1, 1UL << shift);
	if (regs->si < begin + PVAS_LAYOUT_GAP_LOW)
		pvas_redirect(regs, pvas_stub_enomem);
}

/*
 * (mm). After an OOM kill the space ends, see pvas_oom.c. After process_mrelease() it does
 * not: all its present tasks may be dying, but others may enter.
 */
static void notrace pvas_on_reap(unsigned long ip, unsigned long parent_ip,
				 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);

	if (!(current->flags & PF_KTHREAD) &&
	    pvas_space_shift_of((struct mm_struct *)regs->di))
		pvas_redirect(regs, pvas_stub_true);
}

/* By a process that has /proc/PID/mem open */
static void notrace pvas_on_remote(unsigned long ip, unsigned long parent_ip,
				   struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);

	if (pvas_space_refuses((struct mm_struct *)PVAS_REMOTE_MM(regs),
			       PVAS_REMOTE_FLAGS(regs) & FOLL_WRITE))
		pvas_redirect(regs, pvas_stub_zero);
}

/*
 * (mm, start, number of pages, flags, ...): by a process that is in a call with memory of another
 * one, as process_vm_writev(2). One page at a time, or any number of callers could fill thousands
 * each after the last process has left the space; the caller goes on with the rest.
 */
static void notrace pvas_on_remote_pages(unsigned long ip, unsigned long parent_ip,
					 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);
	struct mm_struct *mm = (struct mm_struct *)regs->di;

	if (pvas_space_refuses(mm, regs->cx & FOLL_WRITE))
		pvas_redirect(regs, pvas_stub_enomem);
	else if (mm != current->mm && regs->dx > 1 && pvas_space_has_mm(mm))
		regs->dx = 1;
}

/* (task) */
static void notrace pvas_on_exe_file(unsigned long ip, unsigned long parent_ip,
				     struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);

	if (pvas_task_has_exe((struct task_struct *)regs->di))
		pvas_redirect(regs, pvas_stub_exe_file);
}

/* ---- the hooks ---- */

static const char * const pvas_search_names[] = { "vm_unmapped_area", NULL };
static const char * const pvas_place_names[] = { PVAS_FN_GET_UNMAPPED_AREA, NULL };
static const char * const pvas_copy_names[] = { "copy_page_range", NULL };
static const char * const pvas_exe_names[] = { "get_task_exe_file", NULL };
static const char * const pvas_expand_names[] = { "expand_downwards", NULL };
static const char * const pvas_reap_names[] = { "__oom_reap_task_mm", NULL };
static const char * const pvas_remote_names[] = { "__access_remote_vm", NULL };
static const char * const pvas_remote_pages_names[] = {
	"get_user_pages_remote", "pin_user_pages_remote", NULL
};
static const char * const pvas_unmap_names[] = { PVAS_FN_MUNMAP, NULL };
static const char * const pvas_install_page_names[] = { "mfill_atomic_install_pte", NULL };
static const char * const pvas_uffd_names[] = { "userfaultfd_ioctl", NULL };
#ifdef PVAS_FN_UFFD_LOOKUP
static const char * const pvas_uffd_lookup_names[] = { PVAS_FN_UFFD_LOOKUP, NULL };
#endif
static const char * const pvas_key_names[] = { "arch_set_user_pkey_access", NULL };
static const char * const pvas_userfault_names[] = { "handle_userfault", NULL };

/* A call without arguments has one function for both ABIs, with its innermost name. */
static const char * const pvas_all_ia32_names[] = {
	"__ia32_*", "__do_sys_*", "__do_compat_sys_*", NULL
};

static struct pvas_hook pvas_bounds[] = {
	{ .names = pvas_search_names,
	  .ops = { .func = pvas_on_search, .flags = PVAS_OPS_FLAGS } },
	{ .names = pvas_place_names,
	  .ops = { .func = pvas_on_place, .flags = PVAS_OPS_FLAGS } },
	{ .names = pvas_unmap_names,
	  .ops = { .func = pvas_on_unmap, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .bounds = pvas_call_bounds,
	  .ops = { .func = pvas_on_call, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .bounds = pvas_fill_bounds,
	  .ops = { .func = pvas_on_fill, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .optional = pvas_install_page_names,
	  .ops = { .func = pvas_on_install_page,
		   .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .optional = pvas_uffd_names,
	  .ops = { .func = pvas_on_uffd, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
#ifdef PVAS_FN_UFFD_LOOKUP
	{ .names = pvas_uffd_lookup_names,
	  .ops = { .func = pvas_on_uffd_lookup,
		   .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
#endif
	{ .optional = pvas_userfault_names,
	  .ops = { .func = pvas_on_userfault,
		   .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .optional = pvas_key_names,
	  .ops = { .func = pvas_on_key, .flags = PVAS_OPS_FLAGS } },
	{ .names = pvas_expand_names,
	  .ops = { .func = pvas_on_expand, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .names = pvas_reap_names,
	  .ops = { .func = pvas_on_reap, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .names = pvas_remote_names,
	  .ops = { .func = pvas_on_remote, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .names = pvas_remote_pages_names,
	  .ops = { .func = pvas_on_remote_pages,
		   .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .patterns = pvas_all_ia32_names, .only_if = &pvas_refuse_ia32,
	  .ops = { .func = pvas_on_ia32, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .names = pvas_copy_names,
	  .ops = { .func = pvas_on_copy, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .names = pvas_exe_names,
	  .ops = { .func = pvas_on_exe_file, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
};

const struct pvas_hook_set pvas_bounds_set = { pvas_bounds, ARRAY_SIZE(pvas_bounds) };
