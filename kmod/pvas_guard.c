// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guard: tasks keep the attributes that pvas_admit.c has checked. Tasks, their
 * guests and the creator can't change
 *
 *  - ids, permitted capabilities, user namespace and the Landlock domain: commit_creds(),
 *    -EPERM;
 *  - the label of a security module, or of what it will make: security_setprocattr() and
 *    security_setselfattr(), -EPERM. Behind these, AppArmor and SELinux ignore the result of
 *    commit_creds(), and the process would believe that it is confined;
 *  - the user, pid, mount, ipc, cgroup or time namespace, by unshare(2) or
 *    setns(2): -EPERM, and -EUSERS for entering a time namespace, which would
 *    map a page into the shared mm that is freed with the namespace;
 *  - the same for a child that shares the mm, by clone(2): -EPERM.
 *
 * Otherwise an outsider could reach all tasks through one that gave up its ids: the
 * permission to trace a process depends on the ids, the label and the Landlock domain of
 * the process, and on the dumpable flag of the mm, which all tasks share.
 *
 * A fork child has an mm of its own and may do what any process may. So may an
 * exec out of the space: it has another mm before it changes credentials.
 *
 * Three more hooks: pvas_on_kthread_comm() serves readers of /proc, pvas_on_attach() refuses
 * vhost's kernel threads, which would work for a task after its end, and pvas_on_use_mm() keeps
 * all others away from its memory.
 */
#include <linux/cred.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/string.h>

#include "pvas.h"
#include "pvas_hook.h"

/* Network and host name do not matter: they give no access to memory. */
#define PVAS_KEPT_NS	(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWCGROUP | \
			 CLONE_NEWTIME)

/* ---- stubs that redirected calls go to ---- */

static int pvas_stub_refuse(void)
{
	return -EPERM;
}

static int pvas_stub_refuse_for_now(void)
{
	return -EAGAIN;
}

static int pvas_stub_refuse_time(void)
{
	return -EUSERS;
}

/* It consumes them, as commit_creds() does. */
static int pvas_stub_refuse_creds(struct cred *new)
{
	abort_creds(new);
	return -EPERM;
}

/*
 * In place of commit_creds(), for credentials with another label: is it just the newest version
 * of the caller's, which is what the security module gives to all that are prepared now?
 */
static int pvas_stub_commit_newer(struct cred *new)
{
	struct cred *now = prepare_creds();
	bool newer = now && pvas_labels_equal(new, now);

	if (now)
		abort_creds(now);
	if (!newer)
		return pvas_stub_refuse_creds(new);
	pvas_origin_relabel(pvas_task_partition()->space, new);
	/* This time the hook knows the label. */
	return commit_creds(new);
}

static void pvas_stub_task_comm(char *buf, size_t size, struct task_struct *tsk)
{
	strscpy_pad(buf, tsk->comm, size);
}

/* ---- an mm without memory ---- */

/* Set once, and kept until the module is removed. */
static struct mm_struct *pvas_empty_mm;

/**
 * pvas_empty_mm_prepare - in an exec that enters a space: empty the mm that it has made
 *
 * Return: true, if the caller's mm is fit for pvas_empty_mm_keep()
 */
bool pvas_empty_mm_prepare(void)
{
	if (READ_ONCE(pvas_empty_mm) || vm_munmap(0, TASK_SIZE))
		return false;
	return !current->mm->map_count;
}

/*
 * The caller has let go of @mm, and gives away its reference. It does not keep the program's file,
 * nor the job's user namespace, which others look at only as long as a process has the mm.
 */
void pvas_empty_mm_keep(struct mm_struct *mm)
{
	if (cmpxchg(&pvas_empty_mm, NULL, mm)) {
		mmput(mm);
		return;
	}
	pvas_exe_swap(mm, NULL);
	pvas_mm_forget_user_ns(mm);
}

/* No hook uses it any more. */
void pvas_empty_mm_exit(void)
{
	if (pvas_empty_mm)
		mmput(pvas_empty_mm);
}

/* ---- helpers ---- */

static bool pvas_creds_differ(const struct cred *a, const struct cred *b)
{
	return !uid_eq(a->uid, b->uid) || !uid_eq(a->euid, b->euid) ||
	       !uid_eq(a->suid, b->suid) || !uid_eq(a->fsuid, b->fsuid) ||
	       !gid_eq(a->gid, b->gid) || !gid_eq(a->egid, b->egid) ||
	       !gid_eq(a->sgid, b->sgid) || !gid_eq(a->fsgid, b->fsgid) ||
	       a->user_ns != b->user_ns ||
	       !cap_issubset(a->cap_permitted, b->cap_permitted) ||
	       !cap_issubset(b->cap_permitted, a->cap_permitted);
}

static void notrace pvas_refuse_if(bool refuse, struct ftrace_regs *fregs, void *stub)
{
	if (refuse && pvas_task_partition())
		pvas_redirect(pvas_regs(fregs), stub);
}

static unsigned long notrace pvas_argument(struct ftrace_regs *fregs, int n)
{
	struct pt_regs *regs = pvas_regs(fregs);

	return n ? regs->si : regs->di;
}

/*
 * Does AppArmor put the newest version of the caller's profile in the place of one that has
 * been reloaded? It has counted on that: if the credentials are not changed, it drops one
 * reference too many. A label that the caller asks for has been refused before.
 */
static bool notrace pvas_is_replaced_label(unsigned long parent_ip)
{
#ifdef CONFIG_SECURITY_APPARMOR
	static const char replaces[] = "aa_replace_current_label";
	char name[sizeof(replaces) + 1];

	/* A longer name is cut, and differs in its last character. */
	snprintf(name, sizeof(name), "%ps", (void *)parent_ip);
	return !strcmp(name, replaces);
#else
	return false;
#endif
}

/* ---- ftrace callbacks ---- */

/* (new) */
static void notrace pvas_on_commit_creds(unsigned long ip, unsigned long parent_ip,
					 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	const struct cred *new = (const struct cred *)pvas_argument(fregs, 0);
	struct pvas_partition *part = pvas_task_partition();

	if (!new || !part)
		return;
	if (pvas_creds_differ(new, current_real_cred()))
		pvas_refuse_if(true, fregs, pvas_stub_refuse_creds);
	else if (pvas_labels_equal(new, current_real_cred()) ||
		 pvas_is_relabelled(part->space, new))
		return;
	else if (pvas_is_replaced_label(parent_ip))
		pvas_origin_relabel(part->space, new);
	else
		pvas_refuse_if(true, fregs, pvas_stub_commit_newer);
}

/* security_setprocattr(), security_setselfattr() */
static void notrace pvas_on_setattr(unsigned long ip, unsigned long parent_ip,
				    struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	pvas_refuse_if(true, fregs, pvas_stub_refuse);
}

/* (unshare_flags, ...): afterwards unshare() ignores errors */
static void notrace pvas_on_unshare(unsigned long ip, unsigned long parent_ip,
				    struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	pvas_refuse_if(pvas_argument(fregs, 0) & (CLONE_NEWUSER | PVAS_KEPT_NS), fregs,
		       pvas_stub_refuse);
}

/* (flags, task) */
static void notrace pvas_on_copy_ns(unsigned long ip, unsigned long parent_ip,
				    struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	unsigned long flags = pvas_argument(fregs, 0);

	pvas_refuse_if((flags & CLONE_VM) && (flags & PVAS_KEPT_NS), fregs, pvas_stub_refuse);
}

/* (task, clone_flags) */
static void notrace pvas_on_copy_creds(unsigned long ip, unsigned long parent_ip,
				       struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	unsigned long flags = pvas_argument(fregs, 1);

	struct pvas_partition *part = pvas_task_partition();

	pvas_refuse_if((flags & CLONE_VM) && (flags & CLONE_NEWUSER), fregs, pvas_stub_refuse);
	/* It would keep the memory that the exec of another thread is about to free. */
	pvas_refuse_if((flags & CLONE_VM) && !(flags & CLONE_THREAD) && part &&
		       READ_ONCE(part->successor), fregs, pvas_stub_refuse_for_now);
}

/* (nsset, ns): setns(2), with a file of the namespace or a pidfd */
static void notrace pvas_on_install(unsigned long ip, unsigned long parent_ip,
				    struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	pvas_refuse_if(true, fregs, pvas_stub_refuse);
}

static void notrace pvas_on_install_time(unsigned long ip, unsigned long parent_ip,
					 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	pvas_refuse_if(true, fregs, pvas_stub_refuse_time);
}

/*
 * (buf, size, task): a reader of /proc/PID/stat that has seen PF_KTHREAD while
 * pvas_switch_mm() had it set would warn if it is clear by now.
 */
static void notrace pvas_on_kthread_comm(unsigned long ip, unsigned long parent_ip,
					 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);

	if (pvas_task_has_exe((struct task_struct *)regs->dx))
		pvas_redirect(regs, pvas_stub_task_comm);
}

/*
 * (from, task): vhost's worker, a kernel thread, joins the cgroups of the process that has set it
 * up. It would store into the partition of a task that has ended, as long as another process has
 * the device open; and it would keep the mm of a space without processes. Where vhost makes
 * a thread of that process instead, it does not come here. It may have met pvas_on_use_mm().
 */
static void notrace pvas_on_attach(unsigned long ip, unsigned long parent_ip,
				   struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	const struct mm_struct *mm = current->mm;

	if ((current->flags & PF_KTHREAD) && mm &&
	    (mm == READ_ONCE(pvas_empty_mm) || pvas_space_has_mm(mm)))
		pvas_redirect(pvas_regs(fregs), pvas_stub_refuse);
}

/*
 * (mm): kthread_use_mm() and kthread_unuse_mm(). A driver's kernel thread stores at an address that
 * a task has given it, as long as another process has the device open: KVM for Xen's event
 * channels, vfio, vdpa. By then the partition can be another task's. It gets an mm
 * without memory instead, where each access fails as if the task had unmapped the address.
 *
 * This module's own calls, whose @parent_ip is here, are for a space's mm.
 */
static void notrace pvas_on_use_mm(unsigned long ip, unsigned long parent_ip,
				   struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);
	struct mm_struct *empty = READ_ONCE(pvas_empty_mm);

	if (!empty || within_module(parent_ip, THIS_MODULE))
		return;
	if (current->mm ? current->mm == empty : pvas_space_has_mm((struct mm_struct *)regs->di))
		regs->di = (unsigned long)empty;
}

/* ---- the hooks ---- */

static const char * const pvas_creds_names[] = { "commit_creds", NULL };
static const char * const pvas_setattr_names[] = {
#ifdef CONFIG_SECURITY
	"security_setprocattr",
#if PVAS_HAVE_SETSELFATTR
	"security_setselfattr",
#endif
#endif
	NULL
};
static const char * const pvas_unshare_names[] = {
#ifdef CONFIG_USER_NS
	"unshare_userns",
#endif
	"unshare_nsproxy_namespaces", NULL
};
static const char * const pvas_copy_ns_names[] = { "copy_namespaces", NULL };
static const char * const pvas_copy_creds_names[] = { "copy_creds", NULL };
static const char * const pvas_install_names[] = {
#ifdef CONFIG_USER_NS
	"userns_install",
#endif
#ifdef CONFIG_PID_NS
	"pidns_install",
#endif
#ifdef CONFIG_IPC_NS
	"ipcns_install",
#endif
	"mntns_install", "cgroupns_install", NULL
};
static const char * const pvas_install_time_names[] = {
#ifdef CONFIG_TIME_NS
	"timens_install",
#endif
	NULL
};
static const char * const pvas_comm_names[] = {
#if PVAS_HAVE_KTHREAD_COMM
	"get_kthread_comm",
#endif
	NULL
};
static const char * const pvas_attach_names[] = { "cgroup_attach_task_all", NULL };
static const char * const pvas_use_mm_names[] = { "kthread_use_mm", "kthread_unuse_mm", NULL };

#define PVAS_GUARD_HOOK(names_, func_) {						\
	.names = names_,								\
	.ops = { .func = func_, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY },	\
}

static struct pvas_hook pvas_guards[] = {
	PVAS_GUARD_HOOK(pvas_creds_names, pvas_on_commit_creds),
	PVAS_GUARD_HOOK(pvas_setattr_names, pvas_on_setattr),
	PVAS_GUARD_HOOK(pvas_unshare_names, pvas_on_unshare),
	PVAS_GUARD_HOOK(pvas_copy_ns_names, pvas_on_copy_ns),
	PVAS_GUARD_HOOK(pvas_copy_creds_names, pvas_on_copy_creds),
	PVAS_GUARD_HOOK(pvas_install_names, pvas_on_install),
	PVAS_GUARD_HOOK(pvas_install_time_names, pvas_on_install_time),
	PVAS_GUARD_HOOK(pvas_comm_names, pvas_on_kthread_comm),
	PVAS_GUARD_HOOK(pvas_attach_names, pvas_on_attach),
	{ .names = pvas_use_mm_names,
	  .ops = { .func = pvas_on_use_mm, .flags = PVAS_OPS_FLAGS } },
};

const struct pvas_hook_set pvas_guard_set = { pvas_guards, ARRAY_SIZE(pvas_guards) };
