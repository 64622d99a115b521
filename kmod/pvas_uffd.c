// SPDX-License-Identifier: GPL-2.0-only
/*
 * userfaultfds of a space. A task registers and fills its own partition. Another process
 * that holds the descriptor, such as a task's fork child, may read it and wake, but not
 * change anything, because it is not in the space.
 *
 * Filling (COPY, ZEROPAGE, MOVE, ...) is checked in the functions that do it, see
 * pvas_fill.c. REGISTER and UNREGISTER have no such function: their argument is read in
 * the middle of them, and a peer can change it after a check. So one task of a space does
 * this at a time, and what it has changed outside its partition is undone afterwards.
 * Except for what looks as if its owner had extended or moved it meanwhile by mremap(),
 * which can't be made to wait.
 *
 * A REGISTER of another process that has begun before the space was made meets no check, and
 * can go on at any later time. Then neither the end of a task or space waits for its monitor, see
 * pvas_check_worker_unmap(), nor an access to partition 0, where nobody may register anything, see
 * pvas_on_userfault(). A COPY or the like that goes on later has no effect, see pvas_on_fill()
 * and pvas_on_install_page().
 */
#include <linux/ftrace.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/userfaultfd_k.h>
#include <linux/wait.h>

#include "pvas.h"
#include "pvas_hook.h"

/* From 6.6 and 6.8. */
#define PVAS_UFFD_NR_MOVE	0x05
#define PVAS_UFFD_NR_POISON	0x08

#define PVAS_UFFD_TRIES		100

#ifdef CONFIG_USERFAULTFD

/* Does unmapping the area wait until a monitor has read the event? */
bool pvas_uffd_waits(const struct vm_area_struct *vma)
{
	const struct userfaultfd_ctx *ctx = vma->vm_userfaultfd_ctx.ctx;

	return ctx && READ_ONCE(ctx->features) & UFFD_FEATURE_EVENT_UNMAP;
}

static bool pvas_uffd_is_foreign(const struct pvas_partition *part,
				 const struct vm_area_struct *vma)
{
	return vma->vm_userfaultfd_ctx.ctx &&
	       pvas_mm_foreign(part, vma->vm_start, vma->vm_end - vma->vm_start);
}

/**
 * struct pvas_uffd_ranges - what one userfaultfd has registered outside a partition
 * @n:		ranges
 * @max:	ranges that @at has room for
 * @at:		in the order of addresses; those of the same mode that touch are one
 */
struct pvas_uffd_ranges {
	unsigned int n;
	unsigned int max;
	struct pvas_uffd_range {
		unsigned long start;
		unsigned long end;
		unsigned long mode;
	} *at;
};

static unsigned long pvas_uffd_mode(const struct vm_area_struct *vma)
{
	return vma->vm_flags & __VM_UFFD_FLAGS;
}

/* Adds an area; or, without room for it, counts it. */
static void pvas_uffd_add(struct pvas_uffd_ranges *ranges, const struct vm_area_struct *vma)
{
	struct pvas_uffd_range *at = ranges->at;
	unsigned int n = ranges->n;

	if (n && n <= ranges->max && at[n - 1].end == vma->vm_start &&
	    at[n - 1].mode == pvas_uffd_mode(vma)) {
		at[n - 1].end = vma->vm_end;
		return;
	}
	if (n < ranges->max)
		at[n] = (struct pvas_uffd_range){ vma->vm_start, vma->vm_end,
						  pvas_uffd_mode(vma) };
	ranges->n++;
}

static void pvas_uffd_walk(const struct pvas_partition *part, const struct userfaultfd_ctx *ctx,
			   struct pvas_uffd_ranges *ranges)
{
	struct mm_struct *mm = part->space->mm;
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, mm, 0);

	ranges->n = 0;
	mmap_read_lock(mm);
	part->space->uffd_moved = (struct pvas_range){ ULONG_MAX, 0 };
	for_each_vma(vmi, vma)
		if (vma->vm_userfaultfd_ctx.ctx == ctx && pvas_uffd_is_foreign(part, vma))
			pvas_uffd_add(ranges, vma);
	mmap_read_unlock(mm);
}

static int pvas_uffd_remember(const struct pvas_partition *part, const struct userfaultfd_ctx *ctx,
			      struct pvas_uffd_ranges *ranges)
{
	*ranges = (struct pvas_uffd_ranges){};
	for (;;) {
		pvas_uffd_walk(part, ctx, ranges);
		if (ranges->n <= ranges->max)
			return 0;
		kvfree(ranges->at);
		ranges->max = ranges->n;
		ranges->at = kvmalloc_array(ranges->max, sizeof(*ranges->at), GFP_KERNEL_ACCOUNT);
		if (!ranges->at)
			return -ENOMEM;
	}
}

/*
 * Was the area registered so? @next: the range to begin with. Behind a registered range,
 * too: mremap() can have extended it in the meantime.
 */
static bool pvas_uffd_had(const struct pvas_uffd_ranges *ranges, unsigned int *next,
			  const struct vm_area_struct *vma)
{
	const struct pvas_uffd_range *at = ranges->at;

	while (*next < ranges->n && at[*next].end <= vma->vm_start)
		++*next;
	return *next < ranges->n && at[*next].start <= vma->vm_start &&
	       at[*next].mode == pvas_uffd_mode(vma);
}

/* Has the area been moved there since pvas_uffd_walk()? */
static bool pvas_uffd_was_moved(const struct pvas_space *space, const struct vm_area_struct *vma)
{
	return vma->vm_start >= space->uffd_moved.start && vma->vm_start < space->uffd_moved.end;
}

/*
 * A task moves a part of an area to @start. The caller has mmap_lock for writing. One range
 * for all moves during a call: two of them are rare.
 */
void pvas_uffd_on_move(struct pvas_space *space, const struct vm_area_struct *vma,
		       unsigned long start, unsigned long len)
{
	struct pvas_range *moved = &space->uffd_moved;

	if (!vma->vm_userfaultfd_ctx.ctx)
		return;
	moved->start = min(moved->start, start);
	moved->end = max(moved->end, start + len);
}

static bool pvas_uffd_peers_have_any(struct pvas_partition *part)
{
	struct mm_struct *mm = part->space->mm;
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, mm, 0);
	bool any = false;

	mmap_read_lock(mm);
	for_each_vma(vmi, vma)
		any |= pvas_uffd_is_foreign(part, vma);
	mmap_read_unlock(mm);
	return any;
}

/*
 * Undoes what the caller has registered outside its partition, and wakes waiters there.
 * Not what the peers have: tasks can share a userfaultfd.
 */
static bool pvas_uffd_undo(struct pvas_partition *part, struct userfaultfd_ctx *ctx,
			   const struct pvas_uffd_ranges *peers)
{
	struct { unsigned long start, len; } all = {};
	struct mm_struct *mm = part->space->mm;
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, mm, 0);
	unsigned int next = 0;
	bool any = false;

	mmap_write_lock(mm);
	for_each_vma(vmi, vma) {
		if (vma->vm_userfaultfd_ctx.ctx != ctx || !pvas_uffd_is_foreign(part, vma) ||
		    pvas_uffd_had(peers, &next, vma) || pvas_uffd_was_moved(part->space, vma))
			continue;
		pvas_forget_uffd(vma);
		any = true;
	}
	mmap_write_unlock(mm);
	if (any) {
		__wake_up(&ctx->fault_pending_wqh, TASK_NORMAL, 0, &all);
		__wake_up(&ctx->fault_wqh, TASK_NORMAL, 0, &all);
	}
	return any;
}

/* A fault under uffd_lock could block all peers, for ever if a userfaultfd serves it. */
static long pvas_uffd_call(struct file *file, unsigned int cmd, unsigned long arg)
{
	long ret;

	pagefault_disable();
	ret = file->f_op->unlocked_ioctl(file, cmd, arg);
	pagefault_enable();
	return ret;
}

static long pvas_uffd_locked(struct pvas_partition *part, struct file *file, unsigned int cmd,
			     unsigned long arg)
{
	struct pvas_uffd_ranges peers;
	long ret;

	/* It ends the registration with any userfaultfd, not only with this one. */
	if (cmd == UFFDIO_UNREGISTER)
		return pvas_uffd_peers_have_any(part) ? -EBUSY : pvas_uffd_call(file, cmd, arg);
	ret = pvas_uffd_remember(part, file->private_data, &peers);
	if (ret)
		return ret;
	ret = pvas_uffd_call(file, cmd, arg);
	if (pvas_uffd_undo(part, file->private_data, &peers))
		ret = -EPERM;
	kvfree(peers.at);
	return ret;
}

/* REGISTER and UNREGISTER by a task, in its own space: both arguments begin with the range. */
static long pvas_stub_uffd(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct userfaultfd_ctx *ctx = file->private_data;
	struct pvas_partition *part = pvas_task_partition();
	unsigned int features = READ_ONCE(ctx->features);
	struct uffdio_range range;
	int tries = PVAS_UFFD_TRIES;
	long ret;

	/* UFFDIO_API sets them once, at least one bit. Before, the kernel returns -EINVAL, too. */
	if (!features)
		return -EINVAL;
	/*
	 * Until the event is read, the worker that frees the partition would wait, and a peer
	 * that forks: the kernel copies the registrations of all areas.
	 */
	if (features & (UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_FORK))
		return -EPERM;
	if (copy_from_user(&range, (void __user *)arg, sizeof(range)))
		return -EFAULT;
	if (pvas_mm_foreign(part, range.start, range.len))
		return -EPERM;
	/* The page may be gone again before the call: then bring it in once more. */
	do {
		if (cmd == UFFDIO_REGISTER &&
		    fault_in_safe_writeable((char __user *)arg, sizeof(struct uffdio_register)))
			return -EFAULT;
		if (fault_in_readable((char __user *)arg, sizeof(range)))
			return -EFAULT;
		if (mutex_lock_killable(&part->space->uffd_lock))
			return -EINTR;
		ret = pvas_uffd_locked(part, file, cmd, arg);
		mutex_unlock(&part->space->uffd_lock);
	} while (ret == -EFAULT && --tries);
	return ret;
}

static long pvas_stub_uffd_eperm(struct file *file, unsigned int cmd, unsigned long arg)
{
	return -EPERM;
}

static long pvas_stub_uffd_einval(struct file *file, unsigned int cmd, unsigned long arg)
{
	return -EINVAL;
}

static void *pvas_uffd_check(bool own, unsigned int cmd)
{
	if (cmd == UFFDIO_API || cmd == UFFDIO_WAKE)
		return NULL;
	if (!own)
		return pvas_stub_uffd_eperm;
	if (cmd == UFFDIO_REGISTER || cmd == UFFDIO_UNREGISTER)
		return pvas_stub_uffd;
	if (_IOC_TYPE(cmd) != UFFDIO)
		return pvas_stub_uffd_einval;
	switch (_IOC_NR(cmd)) {
	case _UFFDIO_COPY:
	case _UFFDIO_ZEROPAGE:
	case _UFFDIO_WRITEPROTECT:
	case _UFFDIO_CONTINUE:
		return NULL;
	case PVAS_UFFD_NR_MOVE:
	case PVAS_UFFD_NR_POISON:
		return PVAS_UFFD_UNCHECKED ? pvas_stub_uffd_eperm : NULL;
	default:
		return pvas_stub_uffd_einval;
	}
}

/* (file, cmd, arg) */
void notrace pvas_on_uffd(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			  struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);
	const struct userfaultfd_ctx *ctx;
	struct pvas_partition *part;
	void *stub;

	/* Our own call, above */
	if (within_module(parent_ip, THIS_MODULE))
		return;
	ctx = ((const struct file *)regs->di)->private_data;
	if (!pvas_space_shift_of(ctx->mm))
		return;
	part = pvas_task_partition();
	stub = pvas_uffd_check(part && part->space->mm == ctx->mm, regs->si);
	if (stub)
		pvas_redirect(regs, stub);
}

#ifdef PVAS_FN_UFFD_LOOKUP
static struct vm_area_struct *pvas_stub_no_area(struct mm_struct *mm, unsigned long addr,
						struct vm_area_struct **prev)
{
	return NULL;
}

/* Only process_madvise(2) calls it for another process's mm, too. */
static bool notrace pvas_is_uffd_ioctl(unsigned long ip)
{
	static const char ioctl[] = "userfaultfd_ioctl";
	char name[sizeof(ioctl) + 1];

	/* A longer name is cut, and differs in its last character. */
	snprintf(name, sizeof(name), "%ps", (void *)ip);
	return !strcmp(name, ioctl);
}

/*
 * (mm, addr, previous). A REGISTER or UNREGISTER of a process that is no task, and that has begun
 * before the space was made: as if nothing were mapped there.
 */
void notrace pvas_on_uffd_lookup(unsigned long ip, unsigned long parent_ip,
				 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pvas_partition *part = pvas_task_partition();
	struct pt_regs *regs = pvas_regs(fregs);
	const struct mm_struct *mm = (const struct mm_struct *)regs->di;

	if (pvas_space_has_mm(mm) && !(part && part->space->mm == mm) &&
	    pvas_is_uffd_ioctl(parent_ip))
		pvas_redirect(regs, pvas_stub_no_area);
}
#endif

/*
 * In place of a wait for a monitor: ends the registration, and has the fault made again. Where
 * the kernel could not wait, as for /proc/PID/mem, the result is what it would return.
 */
static vm_fault_t pvas_stub_userfault(struct vm_fault *vmf, unsigned long reason)
{
	struct mm_struct *mm = vmf->vma->vm_mm;
	unsigned long addr = vmf->address;
	struct vm_area_struct *vma;

	if (!(vmf->flags & FAULT_FLAG_ALLOW_RETRY))
		return VM_FAULT_SIGBUS;
	if (vmf->flags & FAULT_FLAG_RETRY_NOWAIT)
		return VM_FAULT_RETRY;
	pvas_release_fault(vmf);
	/* A process that is killed does not make the fault again. */
	if (mmap_write_lock_killable(mm))
		return VM_FAULT_RETRY;
	vma = vma_lookup(mm, addr);
	if (vma && userfaultfd_armed(vma))
		pvas_forget_uffd(vma);
	mmap_write_unlock(mm);
	return VM_FAULT_RETRY;
}

/* (vmf, reason), by whoever uses the memory */
void notrace pvas_on_userfault(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			       struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);
	const struct vm_fault *vmf = (const struct vm_fault *)regs->di;
	u32 shift = pvas_space_shift_of(vmf->vma->vm_mm);

	if (shift && !(vmf->address >> shift))
		pvas_redirect(regs, pvas_stub_userfault);
}

#else

void notrace pvas_on_userfault(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			       struct ftrace_regs *fregs)
{
}

void pvas_uffd_on_move(struct pvas_space *space, const struct vm_area_struct *vma,
		       unsigned long start, unsigned long len)
{
}

bool pvas_uffd_waits(const struct vm_area_struct *vma)
{
	return false;
}

void notrace pvas_on_uffd(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			  struct ftrace_regs *fregs)
{
}

void notrace pvas_on_uffd_lookup(unsigned long ip, unsigned long parent_ip,
				 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
}

#endif
