// SPDX-License-Identifier: GPL-2.0
/*
 * Bounds: the functions of mm/ that a task may call for its own partition only.
 *
 *  - vm_unmapped_area: search for free addresses in the caller's partition
 *    only. Every path ends there, hugetlbfs and shmat included;
 *  - [__]get_unmapped_area: drop a hint outside the partition, refuse a
 *    MAP_FIXED outside it (-ENOMEM), and MAP_GROWSDOWN, which would grow out;
 *  - system calls that change mappings at an address (munmap, mremap,
 *    mprotect, madvise, ...): -EPERM if it is outside the partition;
 *  - brk: redirected to the partition's own;
 *  - io_setup, mseal: refused (-ENOSYS), because what they make lives as long
 *    as the mm and would outlive the task;
 *  - copy_page_range: fork does not copy other partitions' page tables;
 *  - get_task_exe_file: /proc/PID/exe of a task is its own program;
 *  - with the parameter refuse_ia32, every ia32 system call: -EPERM in a task.
 */
#include <linux/ftrace.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "pvas.h"
#include "pvas_hook.h"

#define PVAS_NR_MSEAL	462

static bool pvas_refuse_ia32;
module_param_named(refuse_ia32, pvas_refuse_ia32, bool, 0444);
MODULE_PARM_DESC(refuse_ia32,
		 "refuse all ia32 system calls (int 0x80) in tasks, not only those that map (default N)");

/* ---- where a redirected call goes ---- */

static asmlinkage long pvas_stub_eperm(const struct pt_regs *regs)
{
	return -EPERM;
}

static asmlinkage long pvas_stub_enosys(const struct pt_regs *regs)
{
	return -ENOSYS;
}

/* May sleep: the caller is a task, whose space holds this module. */
static asmlinkage long pvas_stub_brk(const struct pt_regs *regs)
{
	return pvas_mm_brk(pvas_task_partition(), regs->di);
}

static int pvas_stub_copy_nothing(struct vm_area_struct *dst, struct vm_area_struct *src)
{
	return 0;
}

static struct file *pvas_stub_exe_file(struct task_struct *tsk)
{
	return pvas_task_exe_get(tsk);
}

/* ---- bounds of system calls ---- */

static bool pvas_range_foreign(const struct pvas_partition *part, unsigned long addr,
			       unsigned long len)
{
	/* What wraps around is for the call itself to refuse. */
	return addr + len >= addr && pvas_mm_foreign(part, addr, len);
}

static bool pvas_mremap_foreign(const struct pvas_partition *part, const struct pt_regs *regs)
{
	if (pvas_range_foreign(part, regs->di, regs->si))
		return true;
	return (regs->r10 & MREMAP_FIXED) && pvas_range_foreign(part, regs->r8, regs->dx);
}

/* Which stub a task's system call goes to; NULL: it may go on. */
static void *pvas_redirect(const struct pvas_partition *part, const struct pt_regs *regs)
{
	/* An ia32 call can name addresses below 4 GiB only: none is a task's. */
	if (in_ia32_syscall())
		return pvas_stub_eperm;

	switch (regs->orig_ax & ~__X32_SYSCALL_BIT) {
	case __NR_brk:
		return pvas_stub_brk;
	case __NR_io_setup:
	case PVAS_NR_MSEAL:
		return pvas_stub_enosys;
	case __NR_mremap:
		return pvas_mremap_foreign(part, regs) ? pvas_stub_eperm : NULL;
	case __NR_shmdt:
		return pvas_range_foreign(part, regs->di, 1) ? pvas_stub_eperm : NULL;
	default:
		/* The others take address and length first. */
		return pvas_range_foreign(part, regs->di, regs->si) ? pvas_stub_eperm : NULL;
	}
}

/* ---- ftrace callbacks ---- */

static void notrace pvas_on_syscall(unsigned long ip, unsigned long parent_ip,
				    struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);
	struct pvas_partition *part = pvas_task_partition();
	void *stub;

	if (!part || !regs)
		return;
	stub = pvas_redirect(part, (const struct pt_regs *)regs->di);
	if (stub)
		regs->ip = (unsigned long)stub;
}

/*
 * On every function that an ia32 call may go to. Some of them serve 64-bit calls
 * too, or are called with anything, so don't look at their arguments.
 */
static void notrace pvas_on_ia32(unsigned long ip, unsigned long parent_ip,
				 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);

	if (regs && in_ia32_syscall() && pvas_task_partition())
		regs->ip = (unsigned long)pvas_stub_eperm;
}

static void notrace pvas_on_search(unsigned long ip, unsigned long parent_ip,
				   struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);
	struct pvas_partition *part = pvas_task_partition();

	if (part && regs)
		pvas_mm_clamp(part, (struct vm_unmapped_area_info *)regs->di);
}

/* uprobes wants its page, which serves the whole mm, at the very top: keep it out of partitions. */
static bool pvas_is_uprobes_page(unsigned long addr, unsigned long len, unsigned long flags)
{
	return addr == TASK_SIZE_MAX - PAGE_SIZE && len == PAGE_SIZE && !flags;
}

/* (file, addr, len, pgoff, flags, ...) */
static void notrace pvas_on_place(unsigned long ip, unsigned long parent_ip,
				  struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);
	struct pvas_partition *part = pvas_task_partition();
	unsigned long addr, len, flags;

	if (!part || !regs)
		return;
	addr = regs->si;
	len = regs->dx;
	flags = regs->r8;
	/* A length that no address space has: the function answers -ENOMEM. */
	if (flags & MAP_GROWSDOWN)
		regs->dx = -PAGE_SIZE;
	else if (!pvas_mm_foreign(part, addr, len))
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
	struct pt_regs *regs = ftrace_get_regs(fregs);
	struct pvas_partition *part = pvas_task_partition();
	const struct vm_area_struct *vma;
	unsigned int index;

	if (!part || !regs)
		return;
	vma = (const struct vm_area_struct *)regs->si;
	index = pvas_index_of(part->space, vma->vm_start);
	if (index != part->index && index >= part->space->first && index <= part->space->last &&
	    !test_bit(index, part->space->reserved))
		regs->ip = (unsigned long)pvas_stub_copy_nothing;
}

/* (task) */
static void notrace pvas_on_exe_file(unsigned long ip, unsigned long parent_ip,
				     struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);

	if (regs && pvas_task_has_exe((struct task_struct *)regs->di))
		regs->ip = (unsigned long)pvas_stub_exe_file;
}

/* ---- the hooks ---- */

static const char * const pvas_search_names[] = { "vm_unmapped_area", NULL };
static const char * const pvas_place_names[] = { PVAS_FN_GET_UNMAPPED_AREA, NULL };
static const char * const pvas_copy_names[] = { "copy_page_range", NULL };
static const char * const pvas_exe_names[] = { "get_task_exe_file", NULL };
static const char * const pvas_syscall_names[] = {
	"__x64_sys_brk", "__x64_sys_munmap", "__x64_sys_mremap", "__x64_sys_mprotect",
	"__x64_sys_pkey_mprotect", "__x64_sys_madvise", "__x64_sys_mlock", "__x64_sys_mlock2",
	"__x64_sys_munlock", "__x64_sys_mbind", "__x64_sys_remap_file_pages",
	"__x64_sys_set_mempolicy_home_node", "__x64_sys_shmdt", "__x64_sys_io_setup", NULL
};

/* Not in every kernel or configuration. */
static const char * const pvas_optional_names[] = { "__x64_sys_mseal", NULL };
static const char * const pvas_ia32_names[] = {
	"__ia32_sys_brk", "__ia32_sys_munmap", "__ia32_sys_mremap", "__ia32_sys_mprotect",
	"__ia32_sys_pkey_mprotect", "__ia32_sys_madvise", "__ia32_sys_mlock",
	"__ia32_sys_mlock2", "__ia32_sys_munlock", "__ia32_sys_mbind",
	"__ia32_sys_remap_file_pages", "__ia32_sys_set_mempolicy_home_node",
	"__ia32_sys_shmdt", "__ia32_compat_sys_io_setup", "__ia32_sys_mseal", NULL
};

/*
 * A call without arguments has one function for both ABIs, which goes by its
 * innermost name.
 */
static const char * const pvas_all_ia32_names[] = {
	"__ia32_*", "__do_sys_*", "__do_compat_sys_*", NULL
};

static struct pvas_hook pvas_bounds[] = {
	{ .names = pvas_search_names,
	  .ops = { .func = pvas_on_search, .flags = PVAS_OPS_FLAGS } },
	{ .names = pvas_place_names,
	  .ops = { .func = pvas_on_place, .flags = PVAS_OPS_FLAGS } },
	{ .names = pvas_syscall_names, .optional = pvas_optional_names,
	  .ops = { .func = pvas_on_syscall, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .optional = pvas_ia32_names, .only_if_not = &pvas_refuse_ia32,
	  .ops = { .func = pvas_on_syscall, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .optional = pvas_all_ia32_names, .only_if = &pvas_refuse_ia32,
	  .ops = { .func = pvas_on_ia32, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .names = pvas_copy_names,
	  .ops = { .func = pvas_on_copy, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .names = pvas_exe_names,
	  .ops = { .func = pvas_on_exe_file, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
};

const struct pvas_hook_set pvas_bounds_set = { pvas_bounds, ARRAY_SIZE(pvas_bounds) };
