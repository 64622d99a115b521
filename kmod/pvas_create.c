// SPDX-License-Identifier: GPL-2.0-only
/*
 * CREATE and ATTACH: making a space of the caller's mm, or finding one by its key.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/coredump.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "pvas.h"
#include "pvas_member.h"

/*
 * Partitions of one space that are reclaimed at a time. A userfaultfd monitor or a
 * FUSE server that does not answer can block each of them for ever.
 */
#define PVAS_RECLAIMS	8

/* Undoes pvas_space_alloc(). In a worker, see pvas_free_call(). */
static void pvas_space_dispose(struct pvas_space *space)
{
	if (space->wq)
		destroy_workqueue(space->wq);
	if (space->late_wq)
		destroy_workqueue(space->late_wq);
	if (space->slow_wq)
		destroy_workqueue(space->slow_wq);
	pvas_share_give_back(space);
	pvas_origin_put(space);
	pvas_table_exit(space);
	bitmap_free(space->reserved);
	kvfree(space->parts);
	kfree_rcu(space, rcu);
}

static void pvas_space_free(struct work_struct *work)
{
	struct pvas_space *space = container_of(work, struct pvas_space, free_work);

	mmdrop(space->mm);
	pvas_space_dispose(space);
	pvas_hook_put();
	/*
	 * Last: nothing holds the module from here on, but pvas_exit() flushes this
	 * work queue before the text is freed.
	 */
	module_put(THIS_MODULE);
}

/* Is [addr, addr + len) one mapping in partition 0 with these rights? */
static bool pvas_is_mapped(struct mm_struct *mm, u32 shift, u64 addr, u64 len, unsigned long rights)
{
	struct vm_area_struct *vma;

	if (!len || addr >> shift || (addr + len - 1) >> shift)
		return false;
	vma = find_vma(mm, addr);
	return vma && vma->vm_start <= addr && vma->vm_end - addr >= len &&
	       (vma->vm_flags & rights) == rights;
}

/* A partition that has mappings already (at least that of the vdso) is not given to tasks. */
static void pvas_space_reserve(struct pvas_space *space, unsigned int n)
{
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, space->mm, 0);

	__set_bit(0, space->reserved);
	for_each_vma(vmi, vma) {
		unsigned int from = pvas_index_of(space, vma->vm_start);
		unsigned int to = pvas_index_of(space, vma->vm_end - 1);

		if (from < n)
			bitmap_set(space->reserved, from, min(to, n - 1) - from + 1);
	}
}

static int pvas_space_measure(struct pvas_space *space)
{
	unsigned int n = DEFAULT_MAP_WINDOW >> space->shift;
	int err = 0;

	space->reserved = bitmap_zalloc(n, GFP_KERNEL_ACCOUNT);
	if (!space->reserved)
		return -ENOMEM;
	if (mmap_read_lock_killable(space->mm))
		return -EINTR;
	if (!pvas_is_mapped(space->mm, space->shift, space->loader, 1, VM_READ | VM_EXEC) ||
	    !IS_ALIGNED(space->table, sizeof(struct pvas_part)) ||
	    !pvas_is_mapped(space->mm, space->shift, space->table,
			    (u64)space->table_entries * sizeof(struct pvas_part),
			    VM_READ | VM_WRITE))
		err = -EINVAL;
	else
		err = pvas_creator_check_areas(space->mm, space->shift);
	if (!err)
		pvas_space_reserve(space, n);
	mmap_read_unlock(space->mm);
	if (err)
		return err;

	n = min(n, space->table_entries);
	space->first = find_first_zero_bit(space->reserved, n);
	if (space->first >= n)
		return -EINVAL;
	n = min(n, space->first + PVAS_MAX_TASKS);
	space->last = n - 1;
	while (test_bit(space->last, space->reserved))
		space->last--;

	space->parts = kvcalloc(space->last + 1, sizeof(*space->parts), GFP_KERNEL_ACCOUNT);
	return space->parts ? pvas_table_init(space) : -ENOMEM;
}

static int pvas_space_check_args(const struct pvas_create *arg)
{
	if (arg->shift < PVAS_SHIFT_MIN || arg->shift > PVAS_SHIFT_MAX)
		return -EINVAL;
	if (arg->table_entries < 2 ||
	    arg->table_entries > (DEFAULT_MAP_WINDOW + PAGE_SIZE) >> PVAS_SHIFT_MIN)
		return -EINVAL;
	return 0;
}

/*
 * Makes the search for a key and the publication of the space one step: two processes
 * of a job may create at the same time. A spinlock, because the cgroup of a process that
 * is preempted with a mutex can starve it, and all others would wait.
 */
static DEFINE_SPINLOCK(pvas_key_lock);

static struct pvas_space *pvas_space_by_key(const char *key, u32 len)
{
	struct pvas_space *space;
	u32 id;

	for (id = 1; (space = pvas_space_next(&id)); id++) {
		if (space->key_len == len && !memcmp(space->key, key, len) &&
		    data_race(pvas_space_is_open(space)) &&
		    pvas_space_may_enter(space, current_cred()))
			return space;
		pvas_space_put(space);
	}
	return NULL;
}

static int pvas_space_enlist(struct pvas_space *space)
{
	struct pvas_space *other = NULL;
	int err;

	err = pvas_space_reserve_id(space);
	if (err)
		return err;
	spin_lock(&pvas_key_lock);
	if (space->key_len)
		other = pvas_space_by_key(space->key, space->key_len);
	if (!other)
		pvas_space_publish(space);
	spin_unlock(&pvas_key_lock);
	if (!other)
		return 0;
	pvas_space_release_id(space);
	pvas_space_put(other);
	return -EEXIST;
}

/**
 * pvas_space_attach - bind a space to one more file
 * @key:	its key
 * @len:	of the key, in bytes
 *
 * Return: the space with this key that the caller may enter, with a reference; or NULL.
 */
struct pvas_space *pvas_space_attach(const char *key, u32 len)
{
	struct pvas_space *space = pvas_space_by_key(key, len);
	bool open;

	if (!space)
		return NULL;
	spin_lock(&space->lock);
	open = pvas_space_is_open(space);
	if (open)
		space->files++;
	spin_unlock(&space->lock);
	if (open)
		return space;
	pvas_space_put(space);
	return NULL;
}

/* In a worker, see pvas_free_call(). */
static void pvas_space_make_queues(struct pvas_space *space)
{
	space->wq = alloc_workqueue("pvas", WQ_UNBOUND, PVAS_RECLAIMS);
	space->late_wq = alloc_workqueue("pvas_late", WQ_UNBOUND, PVAS_RECLAIMS);
	space->slow_wq = alloc_workqueue("pvas_slow", WQ_UNBOUND, PVAS_RECLAIMS);
}

/* Not published: no lookup finds it. */
static struct pvas_space *pvas_space_alloc(const struct pvas_create *arg, const char *key)
{
	struct pvas_space *space = kzalloc(sizeof(*space), GFP_KERNEL_ACCOUNT);
	int err;

	if (!space)
		return ERR_PTR(-ENOMEM);
	kref_init(&space->ref);
	spin_lock_init(&space->lock);
	raw_spin_lock_init(&space->label_lock);
	sema_init(&space->reclaim, 1);
	mutex_init(&space->uffd_lock);
	INIT_LIST_HEAD(&space->members);
	init_waitqueue_head(&space->quiet);
	pvas_vacate_init(space);
	INIT_WORK(&space->free_work, pvas_space_free);
	space->shift = arg->shift;
	space->flags = arg->flags;
	space->loader = arg->loader;
	space->table = arg->table;
	space->table_entries = arg->table_entries;
	space->key_len = arg->key_len;
	memcpy(space->key, key, arg->key_len);
	space->mm = current->mm;
	pvas_origin_take(space);
	err = pvas_share_take(space);
	if (err) {
		pvas_origin_put(space);
		kfree(space);
		return ERR_PTR(err);
	}
	err = pvas_space_measure(space);
	if (!err) {
		pvas_free_call(pvas_space_make_queues, space);
		err = space->wq && space->late_wq && space->slow_wq ? 0 : -ENOMEM;
	}
	if (!err)
		return space;
	pvas_free_call(pvas_space_dispose, space);
	return ERR_PTR(err);
}

/* Publishes the space, bound to one file. */
static int pvas_space_open(struct pvas_space *space)
{
	struct pvas_member *creator = pvas_task_creator_alloc(space);
	int err;

	if (!creator)
		return -ENOMEM;
	mmgrab(space->mm);
	mmget(space->mm);
	/* Lets the kernel set the oom_score_adj of all tasks at once, as for vfork. */
	pvas_mm_set_flag(space->mm, MMF_MULTIPROCESS);
	pvas_cid_keep(space->mm);
	space->pinned = true;
	space->files = 1;
	/* The open file that the caller used holds the module. */
	__module_get(THIS_MODULE);
	/* Or the mm would hold the creator's program, a file of any size, perhaps in memory. */
	pvas_task_creator_add(creator, pvas_exe_take(space->mm));
	err = pvas_space_enlist(space);
	if (!err) {
		/* Its creator is in it: there is time until nobody is. */
		pvas_creator_settle(space->mm);
		return 0;
	}
	pvas_exe_give_back(space->mm, pvas_task_creator_remove(creator));
	module_put(THIS_MODULE);
	pvas_cid_release(space->mm);
	mmput(space->mm);
	mmdrop(space->mm);
	return err;
}

/**
 * pvas_space_create - make the caller's mm a space
 * @out:	receives it, with a reference, bound to one file
 * @arg:	as the caller gave it; receives id, first and last
 * @key:	arg->key_len bytes that were at arg->key
 */
int pvas_space_create(struct pvas_space **out, struct pvas_create *arg, const char *key)
{
	struct pvas_space *space;
	int err;

	err = pvas_space_check_args(arg) ?: pvas_creator_check();
	if (!err && pvas_space_has_mm(current->mm))
		err = -EBUSY;
	if (err)
		return err;
	space = pvas_space_alloc(arg, key);
	if (IS_ERR(space))
		return PTR_ERR(space);
	err = pvas_hook_get();
	if (err)
		goto err_space;
	err = pvas_space_open(space);
	if (err)
		goto err_hook;
	arg->id = space->id;
	arg->first = space->first;
	arg->last = space->last;
	*out = space;
	return 0;

err_hook:
	pvas_hook_put();
err_space:
	pvas_free_call(pvas_space_dispose, space);
	return err;
}
