// SPDX-License-Identifier: GPL-2.0-only
/*
 * The creator, whose mm becomes a space: the permitted contents of that mm.
 *
 * The memory in partition 0 outlives all processes of a space, and the OOM killer finds
 * no process that owns it. So it is small, and private anonymous memory only: a mapped
 * file would keep alive everything behind it (an io_uring with descriptors of its own,
 * memory of any size), for ever if one of these is the file that holds the space.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/nsproxy.h>
#include <linux/pid_namespace.h>
#include <linux/sched/coredump.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/thread_info.h>
#include <linux/userfaultfd_k.h>
#include <asm/vdso.h>

#include "pvas.h"

#define PVAS_MAPPED_PAGES	(PVAS_MAPPED_MAX >> PAGE_SHIFT)
/* libpvas needs four, the vdso two to four. */
#define PVAS_MAX_AREAS		64

/*
 * Areas that grow by themselves, or are shared with another mm, or are held by something
 * else. Locked memory is accounted to the creator, which exits. Sealed memory stays as
 * long as the mm.
 */
#define PVAS_BAD_AREA	(VM_GROWSDOWN | VM_SHARED | VM_MAYSHARE | VM_PFNMAP | VM_MIXEDMAP | \
			 VM_IO | VM_HUGETLB | VM_LOCKED | VM_LOCKONFAULT | PVAS_VM_SEALED)

/*
 * Has no other process or kernel thread the mm? Not mm_users, which readers of /proc/PID/
 * hold, and for as long as they like: any user can read cmdline into a page that never
 * comes. A reader maps nothing.
 */
static bool pvas_mm_is_private(const struct mm_struct *mm)
{
	struct task_struct *p, *t;
	bool private = true;

	rcu_read_lock();
	for_each_process_thread(p, t)
		if (t != current && READ_ONCE(t->mm) == mm)
			private = false;
	rcu_read_unlock();
	return private;
}

/* Has the mm nothing attached that ends only with it? */
static bool pvas_mm_is_plain(struct mm_struct *mm)
{
#ifdef CONFIG_AIO
	if (rcu_access_pointer(mm->ioctx_table))
		return false;
#endif
#ifdef CONFIG_UPROBES
	if (mm->uprobes_state.xol_area)
		return false;
#endif
	return !mm_has_notifiers(mm) && !mm->locked_vm && !atomic64_read(&mm->pinned_vm) &&
	       !(mm->def_flags & VM_LOCKED);
}

int pvas_creator_check(void)
{
	struct mm_struct *mm = current->mm;

	if (in_ia32_syscall() || test_thread_flag(TIF_ADDR32))
		return -EINVAL;
	if (!pvas_ids_are_plain(current_cred()) || !pvas_mm_is_dumpable(mm) ||
	    !pvas_task_is_dumpable(current) || !pvas_in_initial_time_ns() ||
	    current->nsproxy->pid_ns_for_children != task_active_pid_ns(current))
		return -EPERM;
	if (mm->total_vm > PVAS_MAPPED_PAGES || pvas_space_is_large(mm))
		return -E2BIG;
	if (!thread_group_empty(current) || !pvas_mm_is_private(mm) || !pvas_mm_is_plain(mm))
		return -EBUSY;
	return 0;
}

/* The vdso and its data pages: no other special mapping can be in that range. */
static bool pvas_area_is_vdso(struct vm_area_struct *vma)
{
	const struct vdso_image *image = vma->vm_mm->context.vdso_image;
	unsigned long vdso = (unsigned long)vma->vm_mm->context.vdso;

	return image && vdso && !vma->vm_file && !vma_is_anonymous(vma) &&
	       vma->vm_start >= pvas_vdso_start(vma->vm_mm) &&
	       vma->vm_end <= vdso + image->size;
}

static bool pvas_area_is_plain(struct vm_area_struct *vma, unsigned int shift)
{
	return !vma->vm_file && vma_is_anonymous(vma) && !(vma->vm_flags & PVAS_BAD_AREA) &&
	       !userfaultfd_armed(vma) && !((vma->vm_end - 1) >> shift);
}

/* The caller holds the mmap lock. */
int pvas_creator_check_areas(struct mm_struct *mm, unsigned int shift)
{
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, mm, 0);

	if (mm->map_count > PVAS_MAX_AREAS)
		return -E2BIG;
	for_each_vma(vmi, vma)
		if (!pvas_area_is_plain(vma, shift) && !pvas_area_is_vdso(vma))
			return -EBUSY;
	return 0;
}

/*
 * Kernel threads that work on any mm could fill partition 0 when no process has it any
 * more: khugepaged makes a huge page of each page that was touched, and the end of ksmd's
 * merging a page of each user of a merged one. No memory cgroup would be charged.
 */
void pvas_creator_settle(struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, mm, 0);

	mmap_write_lock(mm);
	for_each_vma(vmi, vma) {
		if (vma_is_anonymous(vma))
			pvas_change_flags(vma, VM_NOHUGEPAGE, VM_HUGEPAGE | VM_MERGEABLE);
		/*
		 * Registered by another process since pvas_creator_check_areas(). If it goes on
		 * to do so, that has no effect: see pvas_on_userfault().
		 */
		if (userfaultfd_armed(vma))
			pvas_forget_uffd(vma);
	}
	mmap_write_unlock(mm);
}
