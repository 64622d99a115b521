// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limits on changes that a task's calls make to the shared mm. The table has the
 * functions of mm/ through which all changes pass, made by system calls of any ABI, by
 * io_uring or by ioctls. doc/mm-routes.md lists these ways, and why the functions suffice.
 *
 * Advice, options and flags that are not listed here are refused.
 */
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/tcp.h>
#include <linux/uio.h>
#include <asm/prctl.h>
#include <asm/syscall.h>

#include "pvas.h"
#include "pvas_hook.h"

/* The first function that prctl() calls: without security modules, that of capabilities. */
#ifdef CONFIG_SECURITY
#define PVAS_FN_PRCTL "security_task_prctl"
#else
#define PVAS_FN_PRCTL "cap_task_prctl"
#endif

/* Not in the oldest supported headers. */
#define PVAS_PR_SET_MDWE		65
#define PVAS_PR_GET_MDWE		66
#define PVAS_PR_SET_MEMORY_MERGE	67
#define PVAS_PR_GET_MEMORY_MERGE	68
#define PVAS_PR_GET_AUXV		0x41555856
#define PVAS_ARCH_GET_UNTAG_MASK	0x4001
#define PVAS_ARCH_ENABLE_TAGGED_ADDR	0x4002
#define PVAS_ARCH_GET_MAX_TAG_BITS	0x4003
#define PVAS_ARCH_FORCE_TAGGED_SVA	0x4004
#define PVAS_ARCH_SHSTK_ENABLE		0x5001
#define PVAS_ARCH_SHSTK_STATUS		0x5005

/* ---- stubs that redirected calls go to ---- */

long pvas_stub_eperm(void)
{
	return -EPERM;
}

static long pvas_stub_einval(void)
{
	return -EINVAL;
}

static long pvas_stub_enosys(void)
{
	return -ENOSYS;
}

/* May sleep: the caller is a task, and its space holds the module. */
static asmlinkage long pvas_stub_brk(const struct pt_regs *regs)
{
	return pvas_mm_brk(pvas_task_partition(), regs->di);
}

/* As mlock_fixup() for an area with nothing to lock. */
static int pvas_stub_mlock_skip(PVAS_MLOCK_FIXUP_ARGS)
{
	*prev = vma;
	return 0;
}

/* ---- checks: the stub to go to, or NULL ---- */

void *pvas_within(const struct pvas_partition *part, unsigned long addr, unsigned long len)
{
	return pvas_mm_foreign(part, addr, len) ? pvas_stub_eperm : NULL;
}

static void *pvas_may_place(const struct pvas_partition *part, unsigned long addr,
			    unsigned long len)
{
	return pvas_mm_may_map(part, addr, len) ? NULL : pvas_stub_eperm;
}

static bool pvas_is_own_mm(const struct pvas_partition *part, unsigned long mm)
{
	return (struct mm_struct *)mm == part->space->mm;
}

/* (addr, len, ...) */
static void *pvas_check_range(const struct pvas_partition *part, struct pt_regs *regs)
{
	return pvas_within(part, regs->di, regs->si);
}

/* Of munmap */
static void *pvas_check_unmap(const struct pvas_partition *part, struct pt_regs *regs)
{
	unsigned long addr = PVAS_MUNMAP_ADDR(regs), len = PVAS_MUNMAP_LEN(regs);

	if (!pvas_is_own_mm(part, PVAS_MUNMAP_MM(regs)))
		return NULL;
	/* The function itself refuses a length that wraps around, with EINVAL. */
	if (len > -addr && !pvas_mm_foreign(part, addr, 0))
		return NULL;
	return pvas_within(part, addr, len);
}

static bool pvas_knows_advice(int advice)
{
	switch (advice) {
	case MADV_NORMAL ... MADV_DONTNEED:
	case MADV_FREE ... MADV_DOFORK:
	case MADV_MERGEABLE ... MADV_COLLAPSE:
		return true;
	default:
		/* Also MADV_HWPOISON and MADV_SOFT_OFFLINE: their signal goes to all of an mm. */
		return false;
	}
}

/* (mm, addr, len, advice) */
static void *pvas_check_madvise(const struct pvas_partition *part, struct pt_regs *regs)
{
	if (!pvas_is_own_mm(part, regs->di))
		return NULL;
	return pvas_within(part, regs->si, regs->dx) ?:
	       pvas_knows_advice(regs->cx) ? NULL : pvas_stub_einval;
}

/* (mm, iterator, advice) of process_madvise(): its ranges have been copied from the caller. */
static void *pvas_check_vector_madvise(const struct pvas_partition *part, struct pt_regs *regs)
{
	const struct iov_iter *iter = (const struct iov_iter *)regs->si;
	const struct iovec *range = PVAS_ITER_RANGES(iter);
	void *stub = NULL;
	unsigned long i;

	if (!pvas_is_own_mm(part, regs->di))
		return NULL;
	for (i = 0; !stub && i < iter->nr_segs; i++)
		stub = pvas_within(part, (__force unsigned long)range[i].iov_base,
				   range[i].iov_len);
	return stub ?: pvas_knows_advice(regs->dx) ? NULL : pvas_stub_einval;
}

static void *pvas_check_move_vma(const struct pvas_partition *part, struct pt_regs *regs)
{
	const struct vm_area_struct *vma = PVAS_MOVE_VMA_VMA(regs);
	unsigned long to = PVAS_MOVE_VMA_TO(regs), len = PVAS_MOVE_VMA_NEW(regs);
	void *stub;

	/* A moved stack would grow towards the mapping below its new place. */
	if (vma->vm_flags & VM_GROWSDOWN)
		return pvas_stub_eperm;
	stub = pvas_within(part, PVAS_MOVE_VMA_FROM(regs), PVAS_MOVE_VMA_OLD(regs)) ?:
	       pvas_may_place(part, to, len);
	if (!stub)
		pvas_uffd_on_move(part->space, vma, to, len);
	return stub;
}

/* A system call with (addr, len, ...). No ia32 call can name an address in a partition. */
static void *pvas_check_syscall(const struct pvas_partition *part, struct pt_regs *regs)
{
	const struct pt_regs *args = (const struct pt_regs *)regs->di;

	return in_ia32_syscall() ? pvas_stub_eperm : pvas_within(part, args->di, args->si);
}

static void *pvas_check_brk(const struct pvas_partition *part, struct pt_regs *regs)
{
	return in_ia32_syscall() ? (void *)pvas_stub_eperm : pvas_stub_brk;
}

/* The system call: (old address, old length, new length, flags, new address) */
static void *pvas_check_mremap(const struct pvas_partition *part, struct pt_regs *regs)
{
	const struct pt_regs *args = (const struct pt_regs *)regs->di;
	void *stub = pvas_check_syscall(part, regs);

	if (!stub && (args->r10 & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)))
		stub = pvas_stub_einval;
	if (!stub && (args->r10 & MREMAP_FIXED))
		stub = pvas_may_place(part, args->r8, args->dx);
	return stub;
}

/*
 * (iterator, vma, mm, start, end, ...). shmdt() looks for the segment's areas in all of the
 * mm, from the given address upwards.
 */
static void *pvas_check_unmap_found(const struct pvas_partition *part, struct pt_regs *regs)
{
	return pvas_is_own_mm(part, regs->dx) ? pvas_within(part, regs->cx, regs->r8 - regs->cx) :
						NULL;
}

/* (addr) */
static void *pvas_check_shmdt(const struct pvas_partition *part, struct pt_regs *regs)
{
	return pvas_within(part, regs->di, 1);
}

/* The new object lives as long as the mm, and would outlive the task. */
static void *pvas_refuse_lasting(const struct pvas_partition *part, struct pt_regs *regs)
{
	return pvas_stub_enosys;
}

/* It changes a setting of the whole mm. */
static void *pvas_refuse_shared(const struct pvas_partition *part, struct pt_regs *regs)
{
	return pvas_stub_eperm;
}

/*
 * The system call: (flags). MCL_FUTURE would lock later mappings in every partition. Some
 * compilers inline the function behind it, or change what it is called with.
 */
static void *pvas_check_mlockall(const struct pvas_partition *part, struct pt_regs *regs)
{
	const struct pt_regs *args = (const struct pt_regs *)regs->di;
	unsigned long flags = in_ia32_syscall() ? args->bx : args->di;

	return flags & MCL_FUTURE ? pvas_stub_eperm : NULL;
}

/* mlockall() and munlockall() iterate over all areas of the mm: skip those of others. */
static void *pvas_check_mlock_fixup(const struct pvas_partition *part, struct pt_regs *regs)
{
	unsigned long start = PVAS_MLOCK_FIXUP_START(regs), end = PVAS_MLOCK_FIXUP_END(regs);

	return pvas_mm_foreign(part, start, end - start) ? pvas_stub_mlock_skip : NULL;
}

/* (addr, len, ...). After mlockall(), the range is the whole address space. */
static void *pvas_clip_populate(const struct pvas_partition *part, struct pt_regs *regs)
{
	unsigned long from = max(regs->di, part->base);
	unsigned long to = regs->di + regs->si < regs->di ? part->end :
			   min(regs->di + regs->si, part->end);

	regs->di = from;
	regs->si = to > from ? to - from : 0;
	return NULL;
}

/*
 * (pid, count, addresses, nodes, ...). The addresses are read later, and cannot be checked; and
 * until then, a process of any pid can have entered the space.
 */
static void *pvas_check_move_pages(const struct pvas_partition *part, struct pt_regs *regs)
{
	return regs->cx ? pvas_stub_eperm : NULL;
}

/* (mm, ...) */
static void *pvas_refuse_on_own_mm(const struct pvas_partition *part, struct pt_regs *regs)
{
	return pvas_is_own_mm(part, regs->di) ? pvas_stub_eperm : NULL;
}

/*
 * (file, buffer, count, position, ...) of /proc/PID/mem, which can write to read-only
 * mappings. Reads, and process_vm_writev(), can do no more than a load or store.
 */
static void *pvas_check_proc_mem(const struct pvas_partition *part, struct pt_regs *regs)
{
	const struct file *file = (const struct file *)regs->di;

	if (!PVAS_PROC_MEM_WRITES(regs) ||
	    !pvas_is_own_mm(part, (unsigned long)file->private_data))
		return NULL;
	return pvas_within(part, *(const loff_t *)regs->cx, regs->dx);
}

/* (file, command, ...): PAGEMAP_SCAN can write-protect areas with a userfaultfd. */
static void *pvas_check_pagemap(const struct pvas_partition *part, struct pt_regs *regs)
{
	const struct file *file = (const struct file *)regs->di;

	return pvas_is_own_mm(part, (unsigned long)file->private_data) ? pvas_stub_eperm : NULL;
}

/* (socket, struct, ...): maps received pages where the socket is mapped */
static void *pvas_check_tcp_receive(const struct pvas_partition *part, struct pt_regs *regs)
{
	const struct tcp_zerocopy_receive *zc = (const struct tcp_zerocopy_receive *)regs->si;

	return zc->address ? pvas_within(part, zc->address, zc->length) : NULL;
}

/* (option, arg2, arg3, ...): before prctl() does anything */
static void *pvas_check_prctl(const struct pvas_partition *part, struct pt_regs *regs)
{
	switch ((int)regs->di) {
	case PR_SET_MM:
	case PR_SET_THP_DISABLE:
	case PVAS_PR_SET_MDWE:
	case PVAS_PR_SET_MEMORY_MERGE:
		return pvas_stub_eperm;
	case PR_SET_VMA:
		return pvas_within(part, regs->dx, regs->cx);
	/* 0 would take debuggers and core files from all, and close the space. */
	case PR_SET_DUMPABLE:
		return regs->si ? NULL : pvas_stub_eperm;
	/* These change a thread or a process, or nothing. */
	case PR_SET_PDEATHSIG ... PR_GET_DUMPABLE:
	case PR_GET_UNALIGN ... PR_MCE_KILL_GET:
	case PR_SET_CHILD_SUBREAPER ... PR_GET_TID_ADDRESS:
	case PR_GET_THP_DISABLE:
	case PR_CAP_AMBIENT:
	case PR_GET_SPECULATION_CTRL:
	case PR_SET_SPECULATION_CTRL:
	case PR_SET_IO_FLUSHER ... PR_SET_SYSCALL_USER_DISPATCH:
	case PR_SCHED_CORE:
	case PVAS_PR_GET_MDWE:
	case PVAS_PR_GET_MEMORY_MERGE:
	case PVAS_PR_GET_AUXV:
	case PR_SET_PTRACER:
		return NULL;
	default:
		return pvas_stub_einval;
	}
}

/* (task, option, ...) */
static void *pvas_check_arch_prctl(const struct pvas_partition *part, struct pt_regs *regs)
{
	switch ((int)regs->si) {
	case ARCH_SET_GS ... ARCH_GET_GS:
	case ARCH_GET_CPUID ... ARCH_SET_CPUID:
	case ARCH_GET_XCOMP_SUPP ... ARCH_REQ_XCOMP_GUEST_PERM:
	case PVAS_ARCH_GET_UNTAG_MASK:
	case PVAS_ARCH_GET_MAX_TAG_BITS:
	case PVAS_ARCH_SHSTK_ENABLE ... PVAS_ARCH_SHSTK_STATUS:
		return NULL;
	case ARCH_MAP_VDSO_X32 ... ARCH_MAP_VDSO_64:
	case PVAS_ARCH_ENABLE_TAGGED_ADDR:
	case PVAS_ARCH_FORCE_TAGGED_SVA:
		return pvas_stub_eperm;
	default:
		return pvas_stub_einval;
	}
}

/* ---- the table ---- */

/* The most frequent come first. */
const struct pvas_bound pvas_call_bounds[] = {
	{ "do_vmi_align_munmap", pvas_check_unmap_found, .absent = !PVAS_HAVE_ALIGN_MUNMAP },
	{ PVAS_FN_MADVISE, pvas_check_madvise },
	{ "vector_madvise", pvas_check_vector_madvise, .absent = !PVAS_HAVE_VECTOR_MADVISE },
	{ "do_mprotect_pkey", pvas_check_range },
	{ "apply_vma_lock_flags", pvas_check_range },
	{ "mlock_fixup", pvas_check_mlock_fixup },
	{ "__mm_populate", pvas_clip_populate },
	{ "move_vma", pvas_check_move_vma },
	{ "ksys_shmdt", pvas_check_shmdt, .absent = !IS_ENABLED(CONFIG_SYSVIPC) },
	{ "do_mbind", pvas_check_range, .absent = !IS_ENABLED(CONFIG_NUMA) },
	{ PVAS_FN_PRCTL, pvas_check_prctl },
	{ "do_arch_prctl_64", pvas_check_arch_prctl },
	{ "ioctx_alloc", pvas_refuse_lasting, .absent = !IS_ENABLED(CONFIG_AIO) },
	{ "do_mseal", pvas_refuse_lasting, .absent = !PVAS_HAVE_MSEAL },
	{ "write_ldt", pvas_refuse_lasting, .absent = !IS_ENABLED(CONFIG_MODIFY_LDT_SYSCALL) },
	{ "kernel_move_pages", pvas_check_move_pages, .absent = !IS_ENABLED(CONFIG_NUMA) },
	{ PVAS_FN_MIGRATE, pvas_refuse_on_own_mm, .absent = !IS_ENABLED(CONFIG_NUMA) },
	{ PVAS_FN_PROC_MEM, pvas_check_proc_mem },
	{ "clear_refs_write", pvas_refuse_shared, .absent = !IS_ENABLED(CONFIG_PROC_PAGE_MONITOR) },
	{ "proc_coredump_filter_write", pvas_refuse_shared,
	  .absent = !IS_ENABLED(CONFIG_ELF_CORE) },
	{ "do_pagemap_cmd", pvas_check_pagemap,
	  .absent = !PVAS_HAVE_PAGEMAP_SCAN || !IS_ENABLED(CONFIG_PROC_PAGE_MONITOR) },
	{ "tcp_zerocopy_receive", pvas_check_tcp_receive, .absent = !IS_ENABLED(CONFIG_INET) },
	/* Changes that only one system call makes. */
	{ "__x64_sys_brk", pvas_check_brk },
	{ "__x64_sys_mlockall", pvas_check_mlockall },
	{ "__x64_sys_mremap", pvas_check_mremap },
	{ "__x64_sys_remap_file_pages", pvas_check_syscall },
	{ "__x64_sys_set_mempolicy_home_node", pvas_check_syscall,
	  .absent = !PVAS_HAVE_HOME_NODE },
	{ "__ia32_sys_brk", pvas_check_brk, .ia32 = true },
	{ "__ia32_sys_mlockall", pvas_check_mlockall, .ia32 = true },
	{ "__ia32_sys_mremap", pvas_check_mremap, .ia32 = true },
	{ "__ia32_sys_remap_file_pages", pvas_check_syscall, .ia32 = true },
	{ "__ia32_sys_set_mempolicy_home_node", pvas_check_syscall, .ia32 = true,
	  .absent = !PVAS_HAVE_HOME_NODE },
	{ }
};

/* ---- from the address of a function to its entry ---- */

static unsigned long pvas_call_at[ARRAY_SIZE(pvas_call_bounds)];

/* ftrace passes an address: the first call of each function is matched by its name. */
static const struct pvas_bound *pvas_learn_bound(const struct pvas_bound *bounds,
						 unsigned long *at, unsigned long ip)
{
	char name[KSYM_SYMBOL_LEN];
	unsigned int i;

	sprint_symbol_no_offset(name, ip);
	for (i = 0; bounds[i].name; i++) {
		if (strcmp(bounds[i].name, name))
			continue;
		WRITE_ONCE(at[i], ip);
		return &bounds[i];
	}
	return NULL;
}

const struct pvas_bound *pvas_find_bound(const struct pvas_bound *bounds, unsigned long *at,
					 unsigned int n, unsigned long ip)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (READ_ONCE(at[i]) == ip)
			return &bounds[i];
	return pvas_learn_bound(bounds, at, ip);
}

/* Not in the table, since it is the most frequent one. */
void notrace pvas_on_unmap(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			   struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);
	struct pvas_partition *part;
	void *stub;

	if (!pvas_mm_may_be_space(current->mm))
		return;
	part = pvas_find_partition();
	stub = part ? pvas_check_unmap(part, regs) : pvas_check_worker_unmap(regs);
	if (stub)
		pvas_redirect(regs, stub);
}

void notrace pvas_on_call(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			  struct ftrace_regs *fregs)
{
	struct pvas_partition *part = pvas_task_partition();
	struct pt_regs *regs = pvas_regs(fregs);
	const struct pvas_bound *bound;
	void *stub;

	if (!part)
		return;
	bound = pvas_find_bound(pvas_call_bounds, pvas_call_at, ARRAY_SIZE(pvas_call_at), ip);
	stub = bound ? bound->check(part, regs) : pvas_stub_eperm;
	if (stub)
		pvas_redirect(regs, stub);
}
