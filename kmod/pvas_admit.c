// SPDX-License-Identifier: GPL-2.0-only
/*
 * Permission to enter a space: for processes with exactly the rights of its creator.
 *
 * All tasks of a space can do anything to each other. So entering requires what ptrace
 * requires, in both directions: the same ids, permitted capabilities, user, pid, mount,
 * ipc, cgroup and time namespace, the same security label and Landlock domain, the same
 * seccomp filter and no_new_privs. pvas_guard.c keeps it so.
 */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/ipc_namespace.h>
#include <linux/nsproxy.h>
#include <linux/pid_namespace.h>
#include <linux/proc_ns.h>
#include <linux/sched/coredump.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <linux/slab.h>
#include <linux/time_namespace.h>
#include <linux/user_namespace.h>

#include "pvas.h"
#include "pvas_member.h"

/*
 * The vdso's data page belongs to a time namespace, and the mapping has no reference to
 * it: if a space outlived its namespace, the next task would see a freed page. Only the
 * initial time namespace is never freed.
 */
bool pvas_in_initial_time_ns(void)
{
#ifdef CONFIG_TIME_NS
	const struct nsproxy *ns = current->nsproxy;

	return ns->time_ns->ns.inum == PROC_TIME_INIT_INO &&
	       ns->time_ns_for_children == ns->time_ns;
#else
	return true;
#endif
}

bool pvas_ids_are_plain(const struct cred *cred)
{
	return uid_eq(cred->uid, cred->euid) && gid_eq(cred->gid, cred->egid);
}

/* ---- capabilities ---- */

static bool pvas_caps_equal(kernel_cap_t a, kernel_cap_t b)
{
	return cap_issubset(a, b) && cap_issubset(b, a);
}

/* Before exec: the creator's, or those of the tasks. */
static bool pvas_caps_fit(struct pvas_space *space, const struct cred *cred)
{
	bool fit;

	spin_lock(&space->lock);
	fit = pvas_caps_equal(cred->cap_permitted, space->cred->cap_permitted) ||
	      (space->caps_set && pvas_caps_equal(cred->cap_permitted, space->caps));
	spin_unlock(&space->lock);
	return fit;
}

/*
 * After exec: at most the creator's, and the same for all tasks. An exec can remove
 * capabilities, so the tasks may have fewer than the creator, unless the creator is still
 * a member.
 */
static bool pvas_caps_admit(struct pvas_space *space, const struct cred *cred)
{
	kernel_cap_t caps = cred->cap_permitted, most = space->cred->cap_permitted;
	bool equal;

	spin_lock(&space->lock);
	if (!space->caps_set && cap_issubset(caps, most) &&
	    (!space->has_creator || cap_issubset(most, caps))) {
		space->caps = caps;
		space->caps_set = true;
	}
	equal = space->caps_set && pvas_caps_equal(caps, space->caps);
	spin_unlock(&space->lock);
	return equal;
}

/*
 * Will the caller have the same permitted capabilities after the exec of a program without
 * any of its own? As cap_bprm_creds_from_file() sets them.
 */
bool pvas_caps_last(void)
{
	const struct cred *cred = current_cred();
	kernel_cap_t caps = cred->cap_ambient;

	if (!issecure(SECURE_NOROOT) && uid_eq(cred->uid, make_kuid(cred->user_ns, 0)))
		caps = cap_combine(caps, cap_combine(cred->cap_bset, cred->cap_inheritable));
	return pvas_caps_equal(caps, cred->cap_permitted);
}

/* ---- namespaces ---- */

/*
 * The number of the caller's mount namespace, or 0. A space holds no mount namespace: if a kernel
 * thread drops the last reference to one, its file systems stay until the one work item of the
 * whole machine for that (delayed_mntput) is done with those of others, which can take for ever.
 */
static u64 pvas_mnt_ns_number(void)
{
	return pvas_mnt_ns_id(pvas_mnt_ns_common(current->nsproxy->mnt_ns));
}

static struct ns_common *pvas_ipc_ns(void)
{
	return IS_ENABLED(CONFIG_IPC_NS) ? &current->nsproxy->ipc_ns->ns : NULL;
}

static struct ns_common *pvas_cgroup_ns(void)
{
	return &current->nsproxy->cgroup_ns->ns;
}

/* Not exported, but reachable through the operations that nsfs uses. */
static struct ns_common *pvas_ns_hold(struct ns_common *ns)
{
	return ns && ns->ops ? ns->ops->get(current) : NULL;
}

/* The caller's mount namespace, with a reference. Atomic. */
struct ns_common *pvas_mnt_ns_get(void)
{
	return pvas_ns_hold(pvas_mnt_ns_common(current->nsproxy->mnt_ns));
}

/* @ns may be NULL. */
void pvas_ns_put(struct ns_common *ns)
{
	if (ns)
		ns->ops->put(ns);
}

static bool pvas_ns_equal(const struct pvas_space *space)
{
	const struct pvas_origin *o = &space->origin;

	return task_active_pid_ns(current) == space->pid_ns &&
	       current->nsproxy->pid_ns_for_children == space->pid_ns &&
	       o->mnt_ns && pvas_mnt_ns_number() == o->mnt_ns && pvas_cgroup_ns() == o->cgroup_ns &&
	       (!o->ipc_ns || pvas_ipc_ns() == o->ipc_ns) && pvas_in_initial_time_ns();
}

/* ---- security modules ---- */

/*
 * Each security module has a place in the blob, unknown to others. Labels and domains are
 * pointers or numbers there; the space's credentials hold the objects, so that equal
 * pointers are equal labels. All blobs have the same size. ksize() may be larger, by a
 * part that was zeroed but may be poisoned for KASAN; it is exact for an object of KFENCE,
 * hence the smaller of the two.
 *
 * Smack keeps a list head in each blob, so no two are equal: it lets no process enter.
 */
bool notrace pvas_labels_equal(const struct cred *a, const struct cred *b)
{
#ifdef CONFIG_SECURITY
	const unsigned long *x = a->security, *y = b->security;
	unsigned long before = 0, own, other;
	size_t i, size;

	if (!x || !y)
		return x == y;
	size = min(ksize(x), ksize(y));
	for (i = 0; i < size / sizeof(*x); i++) {
		own = READ_ONCE_NOCHECK(x[i]);
		other = READ_ONCE_NOCHECK(y[i]);
		if (own != other && !pvas_is_landlock_log(before, own, other))
			return false;
		before = own;
	}
#endif
	return true;
}

/*
 * A member of the space is about to have @cred, with a newer version of its label. The space's
 * other processes come to it as well, each at its next call that asks the security module.
 * Atomic.
 */
void notrace pvas_origin_relabel(struct pvas_space *space, const struct cred *cred)
{
	const struct cred *before;

	raw_spin_lock(&space->label_lock);
	before = space->origin.relabelled;
	space->origin.relabelled = get_cred(cred);
	raw_spin_unlock(&space->label_lock);
	if (before)
		put_cred(before);
}

/* Atomic. */
bool notrace pvas_is_relabelled(struct pvas_space *space, const struct cred *cred)
{
	bool is;

	raw_spin_lock(&space->label_lock);
	is = space->origin.relabelled && pvas_labels_equal(cred, space->origin.relabelled);
	raw_spin_unlock(&space->label_lock);
	return is;
}

/* Is it the label of the creator, or the newest version of that? */
static bool pvas_label_fits(struct pvas_space *space, const struct cred *cred)
{
	return pvas_labels_equal(cred, space->cred) || pvas_is_relabelled(space, cred);
}

/* ---- seccomp ---- */

#ifdef CONFIG_SECCOMP_FILTER
static bool pvas_has_filter_of(struct task_struct *tsk, const struct pvas_origin *o)
{
	return READ_ONCE(tsk->seccomp.filter) == o->filter;
}

/*
 * There is no way to take a reference to a filter. Its address identifies it as long as
 * one process has had it since CREATE: the creator, the creator's parent, or a task.
 */
static bool pvas_filter_lives(struct pvas_space *space)
{
	struct pvas_origin *o = &space->origin;
	struct task_struct *tsk;
	struct pvas_member *m;
	bool lives;

	if (o->witness && pvas_has_filter_of(o->witness, o))
		return true;
	spin_lock(&space->lock);
	rcu_read_lock();
	lives = false;
	list_for_each_entry(m, &space->members, list) {
		tsk = pid_task(m->pid, PIDTYPE_TGID);
		lives = tsk && pvas_has_filter_of(tsk, o);
		if (lives)
			break;
	}
	rcu_read_unlock();
	spin_unlock(&space->lock);
	return lives;
}

static bool pvas_seccomp_equal(struct pvas_space *space)
{
	const struct pvas_origin *o = &space->origin;

	if (current->seccomp.mode != o->seccomp_mode)
		return false;
	return !o->seccomp_mode || (pvas_has_filter_of(current, o) && pvas_filter_lives(space));
}

/* The creator's parent, if it has the creator's filter; not all of its threads need have it. */
static struct task_struct *pvas_find_witness(const struct pvas_origin *o)
{
	struct task_struct *parent, *found = NULL;

	rcu_read_lock();
	parent = rcu_dereference(current->real_parent);
	if (pvas_has_filter_of(parent->group_leader, o))
		found = get_task_struct(parent->group_leader);
	else if (pvas_has_filter_of(parent, o))
		found = get_task_struct(parent);
	rcu_read_unlock();
	return found;
}

static void pvas_seccomp_take(struct pvas_origin *o)
{
	o->seccomp_mode = current->seccomp.mode;
	o->filter = current->seccomp.filter;
	if (o->seccomp_mode)
		o->witness = pvas_find_witness(o);
}
#else
static bool pvas_seccomp_equal(struct pvas_space *space)
{
	return true;
}

static void pvas_seccomp_take(struct pvas_origin *o)
{
}
#endif

/* ---- the whole ---- */

/* Records the attributes of the caller, the creator of @space. */
void pvas_origin_take(struct pvas_space *space)
{
	struct pvas_origin *o = &space->origin;

	space->cred = get_current_cred();
	space->pid_ns = get_pid_ns(task_active_pid_ns(current));
	o->mnt_ns = pvas_mnt_ns_number();
	o->ipc_ns = pvas_ns_hold(pvas_ipc_ns());
	o->cgroup_ns = pvas_ns_hold(pvas_cgroup_ns());
	o->no_new_privs = task_no_new_privs(current);
	pvas_seccomp_take(o);
}

void pvas_origin_put(struct pvas_space *space)
{
	struct pvas_origin *o = &space->origin;

	if (o->witness)
		put_task_struct(o->witness);
	pvas_ns_put(o->cgroup_ns);
	pvas_ns_put(o->ipc_ns);
	put_pid_ns(space->pid_ns);
	if (o->relabelled)
		put_cred(o->relabelled);
	put_cred(space->cred);
}

/* All but capabilities. */
static bool pvas_is_alike(struct pvas_space *space, const struct cred *cred)
{
	const struct cred *own = space->cred;

	return pvas_ids_are_plain(cred) && uid_eq(cred->uid, own->uid) &&
	       uid_eq(cred->suid, own->suid) && gid_eq(cred->gid, own->gid) &&
	       gid_eq(cred->sgid, own->sgid) && cred->user_ns == own->user_ns &&
	       pvas_ns_equal(space) &&
	       task_no_new_privs(current) == space->origin.no_new_privs &&
	       pvas_label_fits(space, cred) && pvas_seccomp_equal(space);
}

/**
 * pvas_space_may_enter - has the caller, with @cred, the rights of the creator?
 * @space:	the space
 * @cred:	the caller's credentials; or those that its exec will give it, as
 *		far as they are known
 *
 * Checked by SPAWN and ATTACH, and by exec before the point of no return.
 */
bool pvas_space_may_enter(struct pvas_space *space, const struct cred *cred)
{
	return pvas_is_alike(space, cred) && pvas_caps_fit(space, cred);
}

/* The same after exec has set ids and capabilities. */
bool pvas_space_admit(struct pvas_space *space)
{
	return pvas_is_alike(space, current_cred()) && pvas_caps_admit(space, current_cred());
}

/*
 * A task that is not dumpable keeps out processes of its own user: so does its space. Those
 * that are armed are not in it yet.
 */
bool pvas_space_is_dumpable(struct pvas_space *space)
{
	bool is = pvas_mm_is_dumpable(space->mm);
	struct pvas_member *m;

	spin_lock(&space->lock);
	list_for_each_entry(m, &space->members, list)
		is = is && (hlist_unhashed_lockless(&m->node) || pvas_task_is_dumpable(m->tsk));
	spin_unlock(&space->lock);
	return is;
}

/* Has the process that created a space a number in the caller's pid namespace? */
static bool pvas_sees_pids(const struct pvas_space *space)
{
	const struct pid_namespace *own = task_active_pid_ns(current), *ns = space->pid_ns;

	while (ns && ns != own)
		ns = ns->parent;
	return ns;
}

/*
 * May the caller send SIGKILL to the tasks of a space? As for kill(2), or as one of them. A
 * security module can forbid a signal between labels that differ, which it can't be asked: such a
 * caller has confined itself since it made the space, or got the file from another process.
 */
bool pvas_space_may_kill(struct pvas_space *space)
{
	const struct pvas_partition *part = pvas_task_partition();
	const struct cred *cred = current_cred();

	if (part && part->space == space)
		return true;
	if (!pvas_sees_pids(space) || !pvas_label_fits(space, cred))
		return false;
	return uid_eq(cred->euid, space->cred->uid) || uid_eq(cred->uid, space->cred->uid) ||
	       ns_capable(space->cred->user_ns, CAP_KILL);
}

static bool pvas_is_tracer(struct user_namespace *ns, const struct file *file)
{
	return file ? file_ns_capable(file, ns, CAP_SYS_PTRACE) : ns_capable(ns, CAP_SYS_PTRACE);
}

/*
 * May the caller know of a space? The owner may, and a process that is capable
 * in the owner's user namespace. With @file, the opener is checked, not the reader.
 */
bool pvas_space_may_look(const struct pvas_space *space, const struct file *file)
{
	const struct cred *cred = file ? file->f_cred : current_cred();
	struct user_namespace *ns = space->cred->user_ns;
	const struct pvas_partition *part = file ? NULL : pvas_task_partition();

	if (part && part->space == space)
		return true;
	/* As for ptrace: a root with fewer capabilities does not own a job of full root. */
	if (cred->user_ns == ns && uid_eq(cred->euid, space->cred->uid) &&
	    cap_issubset(space->cred->cap_permitted, cred->cap_permitted))
		return true;
	return pvas_is_tracer(ns, file);
}

/**
 * pvas_space_may_see_tasks - may the caller see pids and addresses of a space's tasks?
 * @space:	that the caller may look at, see pvas_space_may_look()
 * @file:	as there
 *
 * ptrace_may_access(), by which /proc/PID decides that, is not exported: its rules let
 * a process in that could enter, and one that is capable.
 */
bool pvas_space_may_see_tasks(struct pvas_space *space, const struct file *file)
{
	const struct pvas_partition *part = pvas_task_partition();

	if (!file && part && part->space == space)
		return true;
	if (pvas_space_may_enter(space, current_cred()) &&
	    (!file || pvas_space_may_enter(space, file->f_cred)))
		return true;
	return pvas_is_tracer(space->cred->user_ns, file);
}
