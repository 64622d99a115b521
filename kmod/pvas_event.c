// SPDX-License-Identifier: GPL-2.0-only
/*
 * The events by which processes come into a partition and leave it: fork, exec, exit.
 *
 * Tracepoints report them: sched_process_fork, sched_process_exec, sched_process_exit. Where the
 * last comes before exit_mm(), a callback on exit_files, which comes after, takes its place. That
 * an exec has replaced the mm, long before it is complete, is seen by a callback on flush_thread.
 *
 * These probes run with preemption off, where a kernel with PREEMPT_RT can neither take a
 * spinlock nor allocate memory. There, the functions that the kernel calls next after each of
 * them are redirected, into stubs that can do both, and then call the function:
 *
 *  - wake_up_new_task: the child exists and has not run yet;
 *  - flush_thread: in an exec, when the process has its new mm;
 *  - finalize_exec: the last that a binary format calls, before a tracer sees the exec;
 *  - exit_files: after exit_mm(), and before the closing of files, which can take for ever.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/binfmts.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/static_call.h>
#include <linux/tracepoint.h>

#include "pvas.h"
#include "pvas_hook.h"
#include "pvas_member.h"

static const char * const pvas_flush_names[] = { "flush_thread", NULL };
static const char * const pvas_exit_names[] = { "exit_files", NULL };

#if PVAS_PROBES_MAY_LOCK

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

/* Without the last one where it is early. */
#define PVAS_N_PROBES	((int)ARRAY_SIZE(pvas_probes) - PVAS_EXIT_PROBE_IS_EARLY)

static void pvas_match_tracepoint(struct tracepoint *tp, void *priv)
{
	struct pvas_probe *probe = priv;

	if (!strcmp(tp->name, probe->name))
		probe->tp = tp;
}

int pvas_event_init(void)
{
	int i;

	for (i = 0; i < PVAS_N_PROBES; i++) {
		for_each_kernel_tracepoint(pvas_match_tracepoint, &pvas_probes[i]);
		if (!pvas_probes[i].tp) {
			pr_err("no tracepoint %s in this kernel\n", pvas_probes[i].name);
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

int pvas_event_on(void)
{
	int i, err = 0;

	for (i = 0; !err && i < PVAS_N_PROBES; i++) {
		err = tracepoint_probe_register(pvas_probes[i].tp, pvas_probes[i].func, NULL);
		pvas_probes[i].on = !err;
	}
	return err;
}

void pvas_event_off(void)
{
	int i;

	for (i = PVAS_N_PROBES - 1; i >= 0; i--) {
		if (pvas_probes[i].on)
			tracepoint_probe_unregister(pvas_probes[i].tp, pvas_probes[i].func, NULL);
		pvas_probes[i].on = false;
	}
}

static void notrace pvas_on_flush(unsigned long ip, unsigned long parent_ip,
				  struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	pvas_task_on_new_mm();
}

/* A fork that fails calls the function for the child. */
static void notrace pvas_on_exit(unsigned long ip, unsigned long parent_ip,
				 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	if (current->flags & PF_EXITING)
		pvas_task_on_exit(current);
}

static struct pvas_hook pvas_events[] = {
	{ .names = pvas_flush_names,
	  .ops = { .func = pvas_on_flush, .flags = PVAS_OPS_FLAGS } },
	{ .names = pvas_exit_names,
	  .ops = { .func = pvas_on_exit, .flags = PVAS_OPS_FLAGS } },
};

/* The last one only where its probe is early. */
const struct pvas_hook_set pvas_event_set = {
	pvas_events, ARRAY_SIZE(pvas_events) - !PVAS_EXIT_PROBE_IS_EARLY
};

#else

/*
 * These are not exported, and a processor that checks the targets of indirect calls (IBT)
 * lets through none to them: so the address is patched into the call.
 */
DEFINE_STATIC_CALL_NULL(pvas_wake_up_new_task, wake_up_new_task);
DEFINE_STATIC_CALL_NULL(pvas_flush_thread, flush_thread);
DEFINE_STATIC_CALL_NULL(pvas_exit_files, exit_files);

/*
 * A stub holds the module, which it returns to: the closing of files can take for ever, also
 * that of a thread whose process has left its space. Where the module is being removed there is
 * no space, and so no event. By its return address the hook knows a stub's call, which is no
 * jump, because module_put() comes last.
 */
static void notrace pvas_redirect_held(struct pt_regs *regs, void *stub)
{
	if (try_module_get(THIS_MODULE))
		pvas_redirect(regs, stub);
}

static void pvas_stub_fork(struct task_struct *child)
{
	pvas_task_on_fork(current, child);
	static_call(pvas_wake_up_new_task)(child);
	module_put(THIS_MODULE);
}

static void pvas_stub_flush(void)
{
	pvas_task_on_new_mm();
	static_call(pvas_flush_thread)();
	module_put(THIS_MODULE);
}

static void pvas_stub_exec(struct linux_binprm *bprm)
{
	pvas_task_on_exec(current);
	finalize_exec(bprm);
	module_put(THIS_MODULE);
}

static void pvas_stub_exit(struct task_struct *tsk)
{
	pvas_task_on_exit(tsk);
	static_call(pvas_exit_files)(tsk);
	module_put(THIS_MODULE);
}

/* (child). For threads that the kernel creates in a process there is no event, either. */
static void notrace pvas_on_wake_up(unsigned long ip, unsigned long parent_ip,
				    struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);

	if (within_module(parent_ip, THIS_MODULE))
		return;
	if (pvas_mm_may_be_space(current->mm) &&
	    !pvas_is_kernel_worker((struct task_struct *)regs->di))
		pvas_redirect_held(regs, pvas_stub_fork);
}

/* () */
static void notrace pvas_on_flush(unsigned long ip, unsigned long parent_ip,
				  struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	if (within_module(parent_ip, THIS_MODULE))
		return;
	if (pvas_is_known(current->signal))
		pvas_redirect_held(pvas_regs(fregs), pvas_stub_flush);
}

/* (bprm). The module's own format calls it, too, for a process that enters. */
static void notrace pvas_on_finalize(unsigned long ip, unsigned long parent_ip,
				     struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);

	if (within_module(parent_ip, THIS_MODULE))
		return;
	if (pvas_is_known(current->signal))
		pvas_redirect_held(regs, pvas_stub_exec);
}

/* (task). A fork that fails calls it for the child. */
static void notrace pvas_on_exit_files(unsigned long ip, unsigned long parent_ip,
				       struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);

	if (within_module(parent_ip, THIS_MODULE))
		return;
	if ((struct task_struct *)regs->di == current && (current->flags & PF_EXITING) &&
	    pvas_is_known(current->signal))
		pvas_redirect_held(regs, pvas_stub_exit);
}

static const char * const pvas_wake_up_names[] = { "wake_up_new_task", NULL };
static const char * const pvas_finalize_names[] = { "finalize_exec", NULL };

#define PVAS_EVENT_HOOK(names_, func_) {						\
	.names = names_,								\
	.ops = { .func = func_, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY },	\
}

static struct pvas_hook pvas_events[] = {
	PVAS_EVENT_HOOK(pvas_wake_up_names, pvas_on_wake_up),
	PVAS_EVENT_HOOK(pvas_flush_names, pvas_on_flush),
	PVAS_EVENT_HOOK(pvas_finalize_names, pvas_on_finalize),
	PVAS_EVENT_HOOK(pvas_exit_names, pvas_on_exit_files),
};

const struct pvas_hook_set pvas_event_set = { pvas_events, ARRAY_SIZE(pvas_events) };

/* The functions have been found. */
int pvas_event_init(void)
{
	static_call_update(pvas_wake_up_new_task, (void *)pvas_events[0].ips[0]);
	static_call_update(pvas_flush_thread, (void *)pvas_events[1].ips[0]);
	static_call_update(pvas_exit_files, (void *)pvas_events[3].ips[0]);
	return 0;
}

int pvas_event_on(void)
{
	return 0;
}

void pvas_event_off(void)
{
}

#endif
