// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hooks come with the first space and go with the last, so a machine without
 * a space pays nothing. Each subject has its own set: pvas_bounds.c, pvas_guard.c.
 *
 * Tracepoints: sched_process_fork, sched_process_exec, sched_process_exit, to
 * count who lives in a partition.
 *
 * A process outside of any space passes through with one hash look-up.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>

#include "pvas.h"
#include "pvas_hook.h"

/* Unhooking patches the kernel's text: back-to-back jobs need not pay for it each. */
#define PVAS_LINGER	msecs_to_jiffies(200)

static const struct pvas_hook_set * const pvas_hook_sets[] = {
	&pvas_bounds_set, &pvas_guard_set
};

/* Every hook of every set, in their order. */
#define for_each_pvas_hook(set, hook)						\
	for ((set) = pvas_hook_sets;						\
	     (set) < pvas_hook_sets + ARRAY_SIZE(pvas_hook_sets); (set)++)	\
		for ((hook) = (*(set))->hooks;					\
		     (hook) < (*(set))->hooks + (*(set))->n; (hook)++)

static bool pvas_hook_wanted(const struct pvas_hook *hook)
{
	return (!hook->only_if || *hook->only_if) && (!hook->only_if_not || !*hook->only_if_not);
}

static int pvas_hook_add(struct pvas_hook *hook, const char *name)
{
	unsigned char text[64];		/* a pattern is taken apart where it lies */

	strscpy(text, name, sizeof(text));
	return ftrace_set_filter(&hook->ops, text, strlen(text), 0);
}

static int pvas_hook_need(struct pvas_hook *hook, const char *name)
{
	int err = pvas_hook_add(hook, name);

	if (err) {
		pr_err("can't hook %s: error %d: this kernel is not supported\n", name, err);
		return -EOPNOTSUPP;
	}
	hook->filtered = true;
	return 0;
}

static int pvas_hook_filter(struct pvas_hook *hook)
{
	const struct pvas_bound *bound;
	const char * const *name;
	int err = 0;

	for (name = hook->names; !err && name && *name; name++)
		err = pvas_hook_need(hook, *name);
	for (bound = hook->bounds; !err && bound && bound->name; bound++)
		if (!bound->absent && !(bound->ia32 && pvas_refuse_ia32))
			err = pvas_hook_need(hook, bound->name);
	if (err)
		return err;
	for (name = hook->optional; name && *name; name++)
		if (!pvas_hook_add(hook, *name))
			hook->filtered = true;
	return 0;
}

static int pvas_hook_on(struct pvas_hook *hook)
{
	const char * const *names = hook->names ?: hook->optional;
	const char *first = names ? names[0] : hook->bounds->name;
	int err;

	/* With an empty filter it would stand on every function there is. */
	if (!hook->filtered)
		return 0;
	err = register_ftrace_function(&hook->ops);
	if (err == -ENOMEM)
		return err;
	if (err) {
		pr_err("can't hook %s%s: error %d: is kernel.ftrace_enabled 0, or has a live patch it?\n",
		       first, names && !names[1] ? "" : " or one of its kind", err);
		return -EOPNOTSUPP;
	}
	hook->on = true;
	return 0;
}

static void pvas_hook_off(struct pvas_hook *hook)
{
	int err;

	if (!hook->on)
		return;
	err = unregister_ftrace_function(&hook->ops);
	/* Our text must not go while the kernel calls it: never seen, but then stay. */
	if (WARN_ON_ONCE(err))
		__module_get(THIS_MODULE);
	hook->on = false;
}

/* ---- tracepoints ---- */

static void pvas_probe_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	pvas_task_on_fork(parent, child);
}

static void pvas_probe_exec(void *data, struct task_struct *tsk, pid_t old_pid,
			    struct linux_binprm *bprm)
{
	pvas_task_on_exec(tsk);
}

static void pvas_probe_exit(void *data, struct task_struct *tsk)
{
	pvas_task_on_exit(tsk);
}

static struct pvas_probe {
	const char *name;
	void *func;
	struct tracepoint *tp;
	bool on;
} pvas_probes[] = {
	{ .name = "sched_process_fork", .func = pvas_probe_fork },
	{ .name = "sched_process_exec", .func = pvas_probe_exec },
	{ .name = "sched_process_exit", .func = pvas_probe_exit },
};

static void pvas_match_tracepoint(struct tracepoint *tp, void *priv)
{
	struct pvas_probe *probe = priv;

	if (!strcmp(tp->name, probe->name))
		probe->tp = tp;
}

/* ---- on with the first space, off after the last ---- */

static DEFINE_MUTEX(pvas_hook_lock);
static bool pvas_hooked;
/* Spaces that need the hooks; raised under pvas_hook_lock. */
static atomic_t pvas_hook_users = ATOMIC_INIT(0);

static void pvas_hooks_off(void)
{
	const struct pvas_hook_set * const *set;
	struct pvas_hook *hook;
	int i;

	lockdep_assert_held(&pvas_hook_lock);
	for (i = ARRAY_SIZE(pvas_probes) - 1; i >= 0; i--) {
		if (pvas_probes[i].on)
			tracepoint_probe_unregister(pvas_probes[i].tp, pvas_probes[i].func, NULL);
		pvas_probes[i].on = false;
	}
	tracepoint_synchronize_unregister();
	for_each_pvas_hook(set, hook)
		pvas_hook_off(hook);
	pvas_hooked = false;
}

static int pvas_hooks_on(void)
{
	const struct pvas_hook_set * const *set;
	struct pvas_hook *hook;
	int i, err = 0;

	lockdep_assert_held(&pvas_hook_lock);
	for (i = 0; !err && i < ARRAY_SIZE(pvas_probes); i++) {
		err = tracepoint_probe_register(pvas_probes[i].tp, pvas_probes[i].func, NULL);
		pvas_probes[i].on = !err;
	}
	for_each_pvas_hook(set, hook)
		if (!err)
			err = pvas_hook_on(hook);
	if (err)
		pvas_hooks_off();
	else
		pvas_hooked = true;
	return err;
}

static void pvas_hook_linger(struct work_struct *work)
{
	mutex_lock(&pvas_hook_lock);
	if (pvas_hooked && !atomic_read(&pvas_hook_users))
		pvas_hooks_off();
	mutex_unlock(&pvas_hook_lock);
}

static DECLARE_DELAYED_WORK(pvas_hook_work, pvas_hook_linger);

/* A space is being made: no task must run unbounded. */
int pvas_hook_get(void)
{
	int err = 0;

	/* Hooks may be going, which takes as long as any task is preempted somewhere. */
	if (mutex_lock_killable(&pvas_hook_lock))
		return -EINTR;
	if (!pvas_hooked)
		err = pvas_hooks_on();
	if (!err)
		atomic_inc(&pvas_hook_users);
	mutex_unlock(&pvas_hook_lock);
	return err;
}

void pvas_hook_put(void)
{
	if (atomic_dec_and_test(&pvas_hook_users))
		mod_delayed_work(system_wq, &pvas_hook_work, PVAS_LINGER);
}

static void pvas_hooks_forget(void)
{
	const struct pvas_hook_set * const *set;
	struct pvas_hook *hook;

	for_each_pvas_hook(set, hook)
		ftrace_free_filter(&hook->ops);
}

static int pvas_hooks_filter(void)
{
	const struct pvas_hook_set * const *set;
	struct pvas_hook *hook;
	int err = 0;

	for_each_pvas_hook(set, hook)
		if (!err && pvas_hook_wanted(hook))
			err = pvas_hook_filter(hook);
	if (err)
		pvas_hooks_forget();
	return err;
}

int pvas_hook_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(pvas_probes); i++) {
		for_each_kernel_tracepoint(pvas_match_tracepoint, &pvas_probes[i]);
		if (!pvas_probes[i].tp) {
			pr_err("no tracepoint %s in this kernel\n", pvas_probes[i].name);
			return -EOPNOTSUPP;
		}
	}
	return pvas_hooks_filter();
}

void pvas_hook_exit(void)
{
	cancel_delayed_work_sync(&pvas_hook_work);
	mutex_lock(&pvas_hook_lock);
	if (pvas_hooked)
		pvas_hooks_off();
	mutex_unlock(&pvas_hook_lock);
	pvas_hooks_forget();
}
