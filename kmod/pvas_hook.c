// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hooks are switched on with the first space and off after the last, so a machine
 * without a space pays nothing. Each subject has its own set: pvas_bounds.c,
 * pvas_guard.c, pvas_event.c, pvas_signal.c.
 *
 * Once needed, an ftrace_ops stays registered until the module is removed: unregistering
 * waits, under ftrace's own lock, until each task that was preempted has run again, and a
 * user who starves tasks could delay the next space of all users. Without a space, each
 * ops is on an empty function of this module that is never called. Changing from one to
 * the other patches the kernel's text once, and does not wait for tasks.
 *
 * A process outside all spaces costs one hash look-up for each hook.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/tracepoint.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "pvas.h"
#include "pvas_hook.h"

/* Switching patches the kernel's text: spare that to jobs that follow each other. */
#define PVAS_LINGER	msecs_to_jiffies(PVAS_LINGER_MS)

static const struct pvas_hook_set * const pvas_hook_sets[] = {
	&pvas_event_set, &pvas_bounds_set, &pvas_guard_set, &pvas_signal_set
};

/* Every hook of every set, in their order. */
#define for_each_pvas_hook(set, hook)						\
	for ((set) = pvas_hook_sets;						\
	     (set) < pvas_hook_sets + ARRAY_SIZE(pvas_hook_sets); (set)++)	\
		for ((hook) = (*(set))->hooks;					\
		     (hook) < (*(set))->hooks + (*(set))->n; (hook)++)

/* ---- the functions of a hook ---- */

/* Functions are looked up at insertion: a job start is too late to find one missing. */
#define PVAS_HOOK_MAX	64

/*
 * Addresses are found by kprobes that are never armed. They are unregistered all at once,
 * because each call waits for a grace period.
 */
static struct kprobe *pvas_found[2 * PVAS_HOOK_MAX];
static int pvas_found_n;

static int pvas_hook_add(struct pvas_hook *hook, const char *name)
{
	struct kprobe *probe;
	int err;

	if (pvas_found_n == ARRAY_SIZE(pvas_found) || hook->n_ips == PVAS_HOOK_MAX)
		return -ENOSPC;
	probe = kzalloc(sizeof(*probe), GFP_KERNEL);
	if (!probe)
		return -ENOMEM;
	probe->symbol_name = name;
	probe->flags = KPROBE_FLAG_DISABLED;
	err = register_kprobe(probe);
	if (err) {
		kfree(probe);
		return err;
	}
	pvas_found[pvas_found_n++] = probe;
	hook->ips[hook->n_ips++] = (unsigned long)probe->addr;
	return 0;
}

static void pvas_hooks_found(void)
{
	if (pvas_found_n)
		unregister_kprobes(pvas_found, pvas_found_n);
	while (pvas_found_n)
		kfree(pvas_found[--pvas_found_n]);
}

static int pvas_hook_need(struct pvas_hook *hook, const char *name)
{
	int err = pvas_hook_add(hook, name);

	if (err == -ENOMEM)
		return err;
	if (err) {
		pr_err("can't hook %s: error %d: this kernel is not supported\n", name, err);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Only ftrace can match a pattern. A kernel need not have functions for each. */
static int pvas_hook_match(struct pvas_hook *hook)
{
	unsigned char text[64];		/* ftrace_set_filter() writes into it */
	const char * const *name;
	int err;

	hook->matched = false;
	for (name = hook->patterns; *name; name++) {
		strscpy(text, *name, sizeof(text));
		err = ftrace_set_filter(&hook->ops, text, strlen(text), !hook->matched);
		if (!err)
			hook->matched = true;
		else if (err != -EINVAL)
			return err;
	}
	return 0;
}

static int pvas_hook_find(struct pvas_hook *hook)
{
	const struct pvas_bound *bound;
	const char * const *name;
	int err = 0;

	if (hook->patterns)
		return pvas_hook_match(hook);
	hook->ips = kcalloc(PVAS_HOOK_MAX, sizeof(*hook->ips), GFP_KERNEL);
	if (!hook->ips)
		return -ENOMEM;
	for (name = hook->names; !err && name && *name; name++)
		err = pvas_hook_need(hook, *name);
	for (bound = hook->bounds; !err && bound && bound->name; bound++)
		if (!bound->absent && !(bound->ia32 && pvas_refuse_ia32))
			err = pvas_hook_need(hook, bound->name);
	if (err)
		return err;
	for (name = hook->optional; name && *name; name++)
		pvas_hook_add(hook, *name);
	return 0;
}

static int pvas_hook_stand(struct pvas_hook *hook)
{
	if (hook->patterns)
		return pvas_hook_match(hook);
	return pvas_ftrace_stand(&hook->ops, hook->ips, hook->n_ips);
}

/* For the ops without a space: one each, because only one ops may redirect a function. */
#define PVAS_IDLE(n)	\
	static void __attribute__((__noipa__)) pvas_hook_idle_##n(void) { barrier(); }
#define PVAS_IDLES(X)								\
	X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)		\
	X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)	\
	X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)
#define PVAS_IDLE_NAME(n)	pvas_hook_idle_##n,

PVAS_IDLES(PVAS_IDLE)

static void (* const pvas_hook_idles[])(void) = { PVAS_IDLES(PVAS_IDLE_NAME) };

static const char *pvas_hook_name(const struct pvas_hook *hook)
{
	const char * const *names = hook->names ?: hook->optional ?: hook->patterns;

	return names ? names[0] : hook->bounds->name;
}

static int pvas_hook_on(struct pvas_hook *hook)
{
	int err;

	/* An empty filter would mean every function of the kernel. */
	if (!hook->n_ips && !hook->matched)
		return 0;
	err = pvas_hook_stand(hook);
	if (!err && !hook->registered) {
		err = register_ftrace_function(&hook->ops);
		hook->registered = !err;
	}
	if (err == -ENOMEM)
		return err;
	if (err) {
		pr_err("can't hook %s%s: error %d: is kernel.ftrace_enabled 0, or has a live patch it?\n",
		       pvas_hook_name(hook), hook->n_ips == 1 ? "" : " or one of its kind", err);
		return -EOPNOTSUPP;
	}
	return 0;
}

static void pvas_hook_off(struct pvas_hook *hook)
{
	/* If memory is short, it stays on, which costs time only. */
	if (hook->registered)
		ftrace_set_filter_ip(&hook->ops, hook->idle, 0, 1);
}

static void pvas_hook_forget(struct pvas_hook *hook)
{
	int err = hook->registered ? unregister_ftrace_function(&hook->ops) : 0;

	/* Never seen; but the text must not be freed while the kernel calls it. */
	if (WARN_ON_ONCE(err))
		__module_get(THIS_MODULE);
	hook->registered = false;
	pvas_ftrace_free(&hook->ops);
	kfree(hook->ips);
	hook->ips = NULL;
	hook->n_ips = 0;
}

/* ---- on with the first space, off after the last ---- */

/*
 * Hooks are switched by a worker: the cgroup of a process can starve it while it holds the
 * locks that this takes, some of them ftrace's own, and all other processes would wait.
 */
static DEFINE_RAW_SPINLOCK(pvas_hook_lock);
static DECLARE_WAIT_QUEUE_HEAD(pvas_hook_wait);
/* All under pvas_hook_lock. Spaces that need the hooks, or wait for them: */
static unsigned int pvas_hook_users;
static bool pvas_hooked;
/* Failures to switch them on, and the error of the last one. */
static unsigned int pvas_hook_failures;
static int pvas_hook_error;

static void pvas_hooks_off(void)
{
	const struct pvas_hook_set * const *set;
	struct pvas_hook *hook;

	pvas_event_off();
	for_each_pvas_hook(set, hook)
		pvas_hook_off(hook);
}

static int pvas_hooks_on(void)
{
	const struct pvas_hook_set * const *set;
	struct pvas_hook *hook;
	int err = pvas_event_on();

	for_each_pvas_hook(set, hook)
		if (!err)
			err = pvas_hook_on(hook);
	if (err)
		pvas_hooks_off();
	return err;
}

static void pvas_hook_put_on(void)
{
	int err = pvas_hooks_on();

	raw_spin_lock(&pvas_hook_lock);
	pvas_hooked = !err;
	if (err) {
		pvas_hook_error = err;
		pvas_hook_failures++;
	}
	raw_spin_unlock(&pvas_hook_lock);
	wake_up_all(&pvas_hook_wait);
}

/* A work item runs once at a time, and only this one changes pvas_hooked. */
static void pvas_hook_work_fn(struct work_struct *work)
{
	bool on, off;

	raw_spin_lock(&pvas_hook_lock);
	on = pvas_hook_users && !pvas_hooked;
	off = !pvas_hook_users && pvas_hooked;
	/* A pvas_hook_get() from here on waits for the next run. */
	if (off)
		pvas_hooked = false;
	raw_spin_unlock(&pvas_hook_lock);
	if (on)
		pvas_hook_put_on();
	if (off)
		pvas_hooks_off();
}

static DECLARE_DELAYED_WORK(pvas_hook_work, pvas_hook_work_fn);
/* Of its own: users can fill the system's with work that waits for them, such as io_uring's. */
static struct workqueue_struct *pvas_hook_wq;

static bool pvas_hook_settled(unsigned int failures)
{
	bool settled;

	raw_spin_lock(&pvas_hook_lock);
	settled = pvas_hooked || pvas_hook_failures != failures;
	raw_spin_unlock(&pvas_hook_lock);
	return settled;
}

/* For a new space: returns when the hooks are on. */
int pvas_hook_get(void)
{
	unsigned int failures;
	int err;

	raw_spin_lock(&pvas_hook_lock);
	pvas_hook_users++;
	failures = pvas_hook_failures;
	raw_spin_unlock(&pvas_hook_lock);
	if (!pvas_hook_settled(failures))
		mod_delayed_work(pvas_hook_wq, &pvas_hook_work, 0);
	err = wait_event_killable(pvas_hook_wait, pvas_hook_settled(failures)) ? -EINTR : 0;
	if (!err) {
		raw_spin_lock(&pvas_hook_lock);
		err = pvas_hooked ? 0 : pvas_hook_error;
		raw_spin_unlock(&pvas_hook_lock);
	}
	if (err)
		pvas_hook_put();
	return err;
}

void pvas_hook_put(void)
{
	bool last;

	raw_spin_lock(&pvas_hook_lock);
	last = !--pvas_hook_users;
	raw_spin_unlock(&pvas_hook_lock);
	if (last)
		mod_delayed_work(pvas_hook_wq, &pvas_hook_work, PVAS_LINGER);
}

static void pvas_hooks_forget(void)
{
	const struct pvas_hook_set * const *set;
	struct pvas_hook *hook;

	for_each_pvas_hook(set, hook)
		pvas_hook_forget(hook);
}

static int pvas_hooks_find(void)
{
	const struct pvas_hook_set * const *set;
	struct pvas_hook *hook;
	unsigned int n = 0;
	int err = 0;

	for_each_pvas_hook(set, hook) {
		if (WARN_ON(n == ARRAY_SIZE(pvas_hook_idles)))
			err = -ENOSPC;
		else
			hook->idle = (unsigned long)pvas_hook_idles[n++];
		if (!err && (!hook->only_if || *hook->only_if))
			err = pvas_hook_find(hook);
	}
	pvas_hooks_found();
	if (err)
		pvas_hooks_forget();
	return err;
}

int pvas_hook_init(void)
{
	int err;

	pvas_hook_wq = alloc_workqueue("pvas_hook", WQ_UNBOUND, 1);
	if (!pvas_hook_wq)
		return -ENOMEM;
	err = pvas_hooks_find();
	if (err)
		goto err_wq;
	pvas_signal_init();
	err = pvas_event_init();
	if (err)
		goto err_hooks;
	return 0;

err_hooks:
	pvas_hooks_forget();
err_wq:
	destroy_workqueue(pvas_hook_wq);
	return err;
}

void pvas_hook_exit(void)
{
	cancel_delayed_work_sync(&pvas_hook_work);
	destroy_workqueue(pvas_hook_wq);
	if (pvas_hooked)
		pvas_hooks_off();
	tracepoint_synchronize_unregister();
	pvas_hooks_forget();
	pvas_empty_mm_exit();
}
