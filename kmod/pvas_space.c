// SPDX-License-Identifier: GPL-2.0
/*
 * Spaces: making one of the caller's mm, finding it by its id, who may enter,
 * ending it.
 */
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/pid_namespace.h>
#include <linux/proc_ns.h>
#include <linux/sched/coredump.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/time_namespace.h>
#include <linux/user_namespace.h>
#include <linux/xarray.h>

#include "pvas.h"

/*
 * A space without tasks is invisible to the OOM killer: no process has its mm.
 * So what a creator may leave in partition 0 is bounded.
 */
#define PVAS_CREATE_MAX_PAGES	((256UL << 20) >> PAGE_SHIFT)

static DEFINE_XARRAY_ALLOC1(pvas_spaces);
static u32 pvas_next_id = 1;
static atomic_t pvas_n_spaces = ATOMIC_INIT(0);

static void pvas_space_free(struct work_struct *work)
{
	struct pvas_space *space = container_of(work, struct pvas_space, free_work);

	mmdrop(space->mm);
	put_pid_ns(space->pid_ns);
	put_cred(space->cred);
	bitmap_free(space->reserved);
	kvfree(space->parts);
	kfree(space);
	atomic_dec(&pvas_n_spaces);
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
	pvas_mm_queue(&space->free_work);
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

/*
 * The vdso's data page belongs to a time namespace and is not counted by the
 * mapping: a space that outlives its namespace would show a freed page to
 * whoever enters next. Only the initial one lives for ever.
 */
static bool pvas_in_initial_time_ns(void)
{
#ifdef CONFIG_TIME_NS
	return current->nsproxy->time_ns->ns.inum == PROC_TIME_INIT_INO;
#else
	return true;
#endif
}

static bool pvas_ids_are_plain(const struct cred *cred)
{
	return uid_eq(cred->uid, cred->euid) && gid_eq(cred->gid, cred->egid);
}

/* At SPAWN, and again once exec has decided on the ids. */
bool pvas_space_may_enter(struct pvas_space *space)
{
	const struct cred *cred = current_cred();

	return pvas_ids_are_plain(cred) && uid_eq(cred->uid, space->cred->uid) &&
	       uid_eq(cred->suid, space->cred->suid) && gid_eq(cred->gid, space->cred->gid) &&
	       cred->user_ns == space->cred->user_ns &&
	       task_active_pid_ns(current) == space->pid_ns &&
	       current->nsproxy->mnt_ns == space->mnt_ns && pvas_in_initial_time_ns();
}

/*
 * As for ptrace, the ids alone say too little: a service of root's with few
 * capabilities must not reach into tasks that have them all. The first task
 * sets what all have; known only after its exec.
 */
bool pvas_space_admit(struct pvas_space *space)
{
	const struct cred *cred = current_cred();
	bool equal;

	spin_lock(&space->lock);
	if (!space->caps_set)
		space->caps = cred->cap_permitted;
	space->caps_set = true;
	equal = cap_issubset(cred->cap_permitted, space->caps) &&
		cap_issubset(space->caps, cred->cap_permitted);
	spin_unlock(&space->lock);
	return equal && pvas_space_may_enter(space);
}

/* Who lacks a capability of the tasks need not try. */
bool pvas_space_has_caps_for(struct pvas_space *space)
{
	bool has;

	spin_lock(&space->lock);
	has = !space->caps_set || cap_issubset(space->caps, current_cred()->cap_permitted);
	spin_unlock(&space->lock);
	return has;
}

/* See a space's tasks: its owner, and who may do anything in the owner's namespace. */
bool pvas_space_may_look(struct pvas_space *space)
{
	const struct cred *cred = current_cred();

	if (cred->user_ns == space->cred->user_ns && uid_eq(cred->euid, space->cred->uid))
		return true;
	return ns_capable(space->cred->user_ns, CAP_SYS_PTRACE);
}

static bool pvas_mm_is_a_space(struct mm_struct *mm)
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

static int pvas_check_creator(void)
{
	struct mm_struct *mm = current->mm;

	if (in_ia32_syscall() || test_thread_flag(TIF_ADDR32))
		return -EINVAL;
	if (!pvas_ids_are_plain(current_cred()) || get_dumpable(mm) != SUID_DUMP_USER ||
	    !pvas_in_initial_time_ns())
		return -EPERM;
	if (mm->total_vm > PVAS_CREATE_MAX_PAGES)
		return -E2BIG;
	if (!thread_group_empty(current) || pvas_mm_is_a_space(mm) || !pvas_mm_is_private(mm))
		return -EBUSY;
	return 0;
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

	space->reserved = bitmap_zalloc(n, GFP_KERNEL);
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

	space->parts = kvcalloc(space->last + 1, sizeof(*space->parts), GFP_KERNEL);
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
 * publishing the space are one step.
 */
static DEFINE_MUTEX(pvas_key_lock);

static struct pvas_space *pvas_space_by_key(const char *key, u32 len)
{
	struct pvas_space *space;
	u32 id;

	for (id = 1; (space = pvas_space_next(&id)); id++) {
		if (space->key_len == len && !memcmp(space->key, key, len) &&
		    pvas_space_may_enter(space) && READ_ONCE(space->pinned) &&
		    !READ_ONCE(space->dead))
			return space;
		pvas_space_put(space);
	}
	return NULL;
}

static int pvas_space_enlist(struct pvas_space *space)
{
	struct pvas_space *other = NULL;
	int err;

	mutex_lock(&pvas_key_lock);
	if (space->key_len)
		other = pvas_space_by_key(space->key, space->key_len);
	if (other)
		err = -EEXIST;
	else
		err = xa_alloc_cyclic(&pvas_spaces, &space->id, space, XA_LIMIT(1, INT_MAX),
				      &pvas_next_id, GFP_KERNEL);
	mutex_unlock(&pvas_key_lock);
	pvas_space_put(other);
	return err;
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

	err = pvas_space_check_args(arg) ?: pvas_check_creator();
	if (err)
		return err;
	if (atomic_inc_return(&pvas_n_spaces) > READ_ONCE(pvas_max_spaces)) {
		err = -ENOSPC;
		goto err_count;
	}
	space = kzalloc(sizeof(*space), GFP_KERNEL_ACCOUNT);
	if (!space) {
		err = -ENOMEM;
		goto err_count;
	}
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
	err = pvas_space_measure(space);
	if (err)
		goto err_space;
	err = pvas_hook_get();
	if (err)
		goto err_space;

	mmgrab(space->mm);
	mmget(space->mm);
	/* Its tasks' oom_score_adj are kept equal by the kernel, as for vfork. */
	set_bit(MMF_MULTIPROCESS, &space->mm->flags);
	space->cred = get_current_cred();
	space->pid_ns = get_pid_ns(task_active_pid_ns(current));
	space->mnt_ns = current->nsproxy->mnt_ns;
	space->pinned = true;
	space->files = 1;
	/* The caller came through an open file of ours: we can't be unloading. */
	__module_get(THIS_MODULE);
	err = pvas_space_enlist(space);
	if (err < 0)
		goto err_pin;

	pvas_dump_adopt();
	arg->id = space->id;
	arg->first = space->first;
	arg->last = space->last;
	*out = space;
	return 0;

err_pin:
	module_put(THIS_MODULE);
	put_pid_ns(space->pid_ns);
	put_cred(space->cred);
	mmput(space->mm);
	mmdrop(space->mm);
	pvas_hook_put();
err_space:
	bitmap_free(space->reserved);
	kvfree(space->parts);
	kfree(space);
err_count:
	atomic_dec(&pvas_n_spaces);
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
	pvas_space_unpin_if_over(space);
	pvas_space_put(space);
}

/* Sleeps: the last mmput() frees the pages. */
void pvas_space_unpin_if_over(struct pvas_space *space)
{
	bool unpin;

	spin_lock(&space->lock);
	unpin = space->pinned && !space->files && !space->in_use;
	if (unpin) {
		space->pinned = false;
		space->dead = true;
	}
	spin_unlock(&space->lock);
	if (unpin)
		mmput(space->mm);
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
		mmput_async(space->mm);
}
