// SPDX-License-Identifier: GPL-2.0-only
/* Spaces: making one of the caller's mm, finding it by its id, ending it. */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/coredump.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "pvas.h"

/*
 * So many partitions of one space are reclaimed at a time, each of which can be
 * held up for ever by a userfaultfd monitor or a FUSE server that doesn't answer.
 */
#define PVAS_RECLAIMS	8

static DEFINE_XARRAY_ALLOC1(pvas_spaces);
static u32 pvas_next_id = 1;
/* Where spaces are freed: nothing waits there for anything a user does. */
static struct workqueue_struct *pvas_free_wq;

int pvas_space_init(void)
{
	pvas_free_wq = alloc_workqueue("pvas_free", WQ_UNBOUND, 0);
	return pvas_free_wq ? 0 : -ENOMEM;
}

void pvas_space_exit(void)
{
	destroy_workqueue(pvas_free_wq);
}

/* What pvas_space_alloc() made. */
static void pvas_space_dispose(struct pvas_space *space)
{
	if (space->wq)
		destroy_workqueue(space->wq);
	pvas_share_give_back(space->cred);
	pvas_origin_put(space);
	bitmap_free(space->reserved);
	kvfree(space->parts);
	kfree(space);
}

static void pvas_space_free(struct work_struct *work)
{
	struct pvas_space *space = container_of(work, struct pvas_space, free_work);

	mmdrop(space->mm);
	pvas_space_dispose(space);
	pvas_hook_put();
	/*
	 * The last step: pvas_exit() flushes this queue before the text goes,
	 * so returning from here is safe even though nothing holds us now.
	 */
	module_put(THIS_MODULE);
}

static void pvas_space_release(struct kref *ref)
{
	struct pvas_space *space = container_of(ref, struct pvas_space, ref);

	xa_erase(&pvas_spaces, space->id);
	/*
	 * From a work item: the caller may be a dying task's task work, whose
	 * return must not run in a module that this very put made removable.
	 */
	INIT_WORK(&space->free_work, pvas_space_free);
	queue_work(pvas_free_wq, &space->free_work);
}

struct pvas_mmput {
	struct work_struct work;
	struct mm_struct *mm;
};

static void pvas_mmput_work(struct work_struct *work)
{
	struct pvas_mmput *put = container_of(work, struct pvas_mmput, work);
	struct mm_struct *mm = put->mm;

	kfree(put);
	mmput(mm);
}

/*
 * mmput() from where it must not take long, or sleep. Not mmput_async(): to free terabytes
 * of mappings takes seconds, in which all other work of system_wq on that processor waits.
 */
void pvas_mmput(struct mm_struct *mm)
{
	struct pvas_mmput *put = kmalloc(sizeof(*put), GFP_ATOMIC | __GFP_NOWARN);

	if (!put) {
		mmput_async(mm);
		return;
	}
	INIT_WORK(&put->work, pvas_mmput_work);
	put->mm = mm;
	queue_work(pvas_free_wq, &put->work);
}

struct pvas_space *pvas_space_get(struct pvas_space *space)
{
	kref_get(&space->ref);
	return space;
}

void pvas_space_put(struct pvas_space *space)
{
	if (space)
		kref_put(&space->ref, pvas_space_release);
}

struct pvas_space *pvas_space_find(u32 id)
{
	struct pvas_space *space;

	xa_lock(&pvas_spaces);
	space = xa_load(&pvas_spaces, id);
	if (space && !kref_get_unless_zero(&space->ref))
		space = NULL;
	xa_unlock(&pvas_spaces);
	return space;
}

/* Walks all spaces: the first with an id >= *id, with a reference, *id then set to its own. */
struct pvas_space *pvas_space_next(u32 *id)
{
	struct pvas_space *space;
	unsigned long i = *id;

	xa_lock(&pvas_spaces);
	for (space = xa_find(&pvas_spaces, &i, UINT_MAX, XA_PRESENT); space;
	     space = xa_find_after(&pvas_spaces, &i, UINT_MAX, XA_PRESENT))
		if (kref_get_unless_zero(&space->ref))
			break;
	xa_unlock(&pvas_spaces);
	if (space)
		*id = i;
	return space;
}

unsigned int pvas_space_count(struct user_namespace *ns)
{
	struct pvas_space *space;
	unsigned int n = 0;
	u32 id;

	for (id = 1; (space = pvas_space_next(&id)); id++) {
		n += space->cred->user_ns == ns;
		pvas_space_put(space);
	}
	return n;
}

bool pvas_space_has_mm(const struct mm_struct *mm)
{
	struct pvas_space *space;
	bool found = false;
	u32 id;

	for (id = 1; !found && (space = pvas_space_next(&id)); id++) {
		found = space->mm == mm;
		pvas_space_put(space);
	}
	return found;
}

/* The size of @mm's partitions, or 0 if it is no space that tasks can be in. Atomic. */
u32 pvas_space_shift_of(const struct mm_struct *mm)
{
	struct pvas_space *space;
	unsigned long i;
	u32 shift = 0;

	/* Each space's mm has it, and few others. */
	if (!test_bit(MMF_MULTIPROCESS, &mm->flags))
		return 0;
	xa_lock(&pvas_spaces);
	xa_for_each(&pvas_spaces, i, space) {
		if (space->mm == mm && READ_ONCE(space->pinned)) {
			shift = space->shift;
			break;
		}
	}
	xa_unlock(&pvas_spaces);
	return shift;
}

/*
 * Has nobody entered @mm, or all gone, and is it as large as may be then? Whoever
 * has a file of /proc/PID/mem open from before must not make it larger. Atomic.
 */
bool pvas_space_is_vacant(struct mm_struct *mm)
{
	struct pvas_space *space;
	bool vacant = false;
	unsigned long i;

	if (!test_bit(MMF_MULTIPROCESS, &mm->flags))
		return false;
	xa_lock(&pvas_spaces);
	xa_for_each(&pvas_spaces, i, space) {
		if (space->mm == mm) {
			vacant = !READ_ONCE(space->occupied);
			break;
		}
	}
	xa_unlock(&pvas_spaces);
	return vacant && pvas_creator_left_too_much(mm);
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

/* Every partition with something in it (the vdso, at least) can't be a task's. */
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
	return space->parts ? 0 : -ENOMEM;
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
 * Two of one job may create at the same time: looking for the key and
 * publishing the space are one step. A spinlock: who is preempted with a mutex can be starved.
 */
static DEFINE_SPINLOCK(pvas_key_lock);

static struct pvas_space *pvas_space_by_key(const char *key, u32 len)
{
	struct pvas_space *space;
	u32 id;

	for (id = 1; (space = pvas_space_next(&id)); id++) {
		if (space->key_len == len && !memcmp(space->key, key, len) &&
		    READ_ONCE(space->pinned) && !READ_ONCE(space->dead) &&
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

	/* Reserved, and seen by nobody: what follows must not sleep. */
	err = xa_alloc_cyclic(&pvas_spaces, &space->id, NULL, XA_LIMIT(1, INT_MAX),
			      &pvas_next_id, GFP_KERNEL);
	if (err < 0)
		return err;
	spin_lock(&pvas_key_lock);
	if (space->key_len)
		other = pvas_space_by_key(space->key, space->key_len);
	if (!other)
		xa_store(&pvas_spaces, space->id, space, GFP_NOWAIT);
	spin_unlock(&pvas_key_lock);
	if (!other)
		return 0;
	xa_release(&pvas_spaces, space->id);
	pvas_space_put(other);
	return -EEXIST;
}

/* Can a task still enter? Under the lock, or as a hint. */
bool pvas_space_is_open(const struct pvas_space *space)
{
	return space->pinned && !space->dead &&
	       (space->files || (space->key_len && space->in_use));
}

/* The space with this key that the caller may enter, bound to one more file, or NULL. */
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

/* Not yet to be seen by anybody. */
static struct pvas_space *pvas_space_alloc(const struct pvas_create *arg, const char *key)
{
	struct pvas_space *space = kzalloc(sizeof(*space), GFP_KERNEL_ACCOUNT);
	int err;

	if (!space)
		return ERR_PTR(-ENOMEM);
	kref_init(&space->ref);
	spin_lock_init(&space->lock);
	sema_init(&space->reclaim, 1);
	mutex_init(&space->uffd_lock);
	INIT_LIST_HEAD(&space->members);
	space->shift = arg->shift;
	space->flags = arg->flags;
	space->loader = arg->loader;
	space->table = arg->table;
	space->table_entries = arg->table_entries;
	space->key_len = arg->key_len;
	memcpy(space->key, key, arg->key_len);
	space->mm = current->mm;
	pvas_origin_take(space);
	err = pvas_share_take(space->cred);
	if (err) {
		pvas_origin_put(space);
		kfree(space);
		return ERR_PTR(err);
	}
	err = pvas_space_measure(space);
	if (!err) {
		space->wq = alloc_workqueue("pvas", WQ_UNBOUND, PVAS_RECLAIMS);
		err = space->wq ? 0 : -ENOMEM;
	}
	if (!err)
		return space;
	pvas_space_dispose(space);
	return ERR_PTR(err);
}

/* From here on it can be found. Without a reference of its own no file is bound to it. */
static int pvas_space_open(struct pvas_space *space)
{
	struct file *exe;
	struct pvas_member *creator;
	int err;

	mmgrab(space->mm);
	mmget(space->mm);
	/* Its tasks' oom_score_adj are kept equal by the kernel, as for vfork. */
	set_bit(MMF_MULTIPROCESS, &space->mm->flags);
	space->pinned = true;
	space->files = 1;
	/* The caller came through an open file of ours: we can't be unloading. */
	__module_get(THIS_MODULE);
	/* The mm would keep the creator's program, which can be a file of any size in memory. */
	exe = pvas_mm_take_exe(space->mm);
	creator = pvas_task_creator_alloc(space);
	err = creator ? pvas_space_enlist(space) : -ENOMEM;
	if (err >= 0) {
		pvas_task_creator_add(creator, exe);
		return 0;
	}
	pvas_mm_give_back_exe(space->mm, exe);
	if (creator)
		pvas_task_creator_drop(creator);
	module_put(THIS_MODULE);
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
	pvas_dump_adopt();
	arg->id = space->id;
	arg->first = space->first;
	arg->last = space->last;
	*out = space;
	return 0;

err_hook:
	pvas_hook_put();
err_space:
	pvas_space_dispose(space);
	return err;
}

/* A file is closed or DESTROY was called: consumes the file's reference. */
void pvas_space_unbind(struct pvas_space *space)
{
	bool kill;

	spin_lock(&space->lock);
	space->files--;
	kill = !space->files && (space->flags & PVAS_CREATE_KILL_ON_CLOSE);
	spin_unlock(&space->lock);
	if (kill)
		pvas_task_kill_all(space);
	/* Anybody may have the last file, and is not to wait for another's memory. */
	if (pvas_space_is_over(space))
		pvas_mmput(space->mm);
	pvas_space_put(space);
}

/*
 * A file is closed, or a partition free: is it over? So it is, too, if tasks have
 * filled partition 0 and gone: no process would be seen to have that memory. If
 * so, the pin of the mm is the caller's to drop.
 */
bool pvas_space_is_over(struct pvas_space *space)
{
	bool unpin;

	spin_lock(&space->lock);
	unpin = space->pinned && ((!space->in_use && !space->files) ||
				  (!space->occupied && pvas_creator_left_too_much(space->mm)));
	if (unpin) {
		space->pinned = false;
		space->dead = true;
	}
	spin_unlock(&space->lock);
	return unpin;
}

/*
 * A task was chosen by the OOM killer, and so all of them are: they share the
 * mm. Our pin would keep the memory that the killer waits for, and it would go
 * on to the next process, up to a panic. Called with preemption off.
 */
void pvas_space_oom(struct pvas_space *space)
{
	bool unpin;

	spin_lock(&space->lock);
	space->dead = true;
	space->oom = true;
	unpin = space->pinned;
	space->pinned = false;
	spin_unlock(&space->lock);
	if (unpin)
		pvas_mmput(space->mm);
}
