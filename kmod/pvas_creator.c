// SPDX-License-Identifier: GPL-2.0-only
/*
 * The process whose mm becomes a space: what its mm may hold.
 *
 * What lies in partition 0 outlives all processes of a space, and the OOM killer
 * sees no process whose it is. So it is little, and private anonymous memory
 * only: a file would keep alive what is behind it (a ring with descriptors of its
 * own, memory of any size), and no mm's end would ever let go of it if that is
 * the file that holds the space.
 */
#include <linux/cred.h>
#include <linux/delay.h>
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
#define PVAS_IDLE_PAGES		(PVAS_IDLE_MAX >> PAGE_SHIFT)
/* libpvas needs four, and the vdso two to four. */
#define PVAS_MAX_AREAS		64

/*
 * Grows by itself, or belongs to more than this mm, or is held by something else.
 * Locked memory was counted for the creator, who goes.
 */
#define PVAS_BAD_AREA	(VM_GROWSDOWN | VM_SHARED | VM_MAYSHARE | VM_PFNMAP | VM_MIXEDMAP | \
			 VM_IO | VM_HUGETLB | VM_LOCKED | VM_LOCKONFAULT)

/* Pages of a space, with those of its page tables. */
static unsigned long pvas_mm_pages(struct mm_struct *mm)
{
	return pvas_mm_counted(mm, MM_FILEPAGES) + pvas_mm_counted(mm, MM_ANONPAGES) +
	       pvas_mm_counted(mm, MM_SHMEMPAGES) + pvas_mm_counted(mm, MM_SWAPENTS) +
	       (mm_pgtables_bytes(mm) >> PAGE_SHIFT);
}

/* More than may be left where no process is seen to have it? */
bool pvas_creator_left_too_much(struct mm_struct *mm)
{
	return pvas_mm_pages(mm) > PVAS_IDLE_PAGES;
}

/* Readers of /proc/PID/ hold mm_users for a moment: not a reason to fail. */
static bool pvas_mm_is_private(struct mm_struct *mm)
{
	int tries;

	for (tries = 0; tries < 50; tries++) {
		if (atomic_read(&mm->mm_users) == 1)
			return true;
		usleep_range(100, 200);
	}
	return false;
}

/* Does something hang on the mm that goes with it only? */
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
	if (!pvas_ids_are_plain(current_cred()) || get_dumpable(mm) != SUID_DUMP_USER ||
	    !pvas_in_initial_time_ns() ||
	    current->nsproxy->pid_ns_for_children != task_active_pid_ns(current))
		return -EPERM;
	if (mm->total_vm > PVAS_MAPPED_PAGES || pvas_creator_left_too_much(mm))
		return -E2BIG;
	if (!thread_group_empty(current) || pvas_space_has_mm(mm) || !pvas_mm_is_private(mm) ||
	    !pvas_mm_is_plain(mm))
		return -EBUSY;
	return 0;
}

/* The vdso and its data pages: the only special mapping there can be in that range. */
static bool pvas_area_is_vdso(struct vm_area_struct *vma)
{
	const struct vdso_image *image = vma->vm_mm->context.vdso_image;
	unsigned long vdso = (unsigned long)vma->vm_mm->context.vdso;

	return image && vdso && !vma->vm_file && !vma_is_anonymous(vma) &&
	       vma->vm_start >= vdso + image->sym_vvar_start &&
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
