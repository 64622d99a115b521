// SPDX-License-Identifier: GPL-2.0
/*
 * What is hooked, and why. All of it only while a space exists.
 *
 * ftrace, by name, with FTRACE_OPS_FL_PERMANENT so that the ftrace sysctl
 * can't switch the bounds off:
 *  - vm_unmapped_area: search for free addresses in the caller's partition
 *    only. Every path ends there, hugetlbfs and shmat included;
 *  - [__]get_unmapped_area: drop a hint outside the partition, refuse a
 *    MAP_FIXED outside it (-ENOMEM), and MAP_GROWSDOWN, which would grow out;
 *  - system calls that change mappings at an address (munmap, mremap,
 *    mprotect, madvise, ...): -EPERM if it is outside the partition;
 *  - brk: redirected to the partition's own;
 *  - io_setup, mseal: refused (-ENOSYS), because what they make lives as long
 *    as the mm and would outlive the task;
 *  - copy_page_range: fork does not copy other partitions' page tables;
 *  - get_task_exe_file: /proc/PID/exe of a task is its own program;
 *  - with the parameter refuse_ia32, every ia32 system call: -EPERM in a task.
 *
 * Tracepoints: sched_process_fork, sched_process_exec, sched_process_exit, to
 * count who lives in a partition.
 *
 * A process outside of any space passes through with one hash look-up.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "pvas.h"

#define PVAS_NR_MSEAL	462

/* Unhooking patches the kernel's text: back-to-back jobs need not pay for it each. */
#define PVAS_LINGER	msecs_to_jiffies(200)

#define PVAS_OPS_FLAGS	(FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_PERMANENT | \
			 FTRACE_OPS_FL_RECURSION)

static bool pvas_refuse_ia32;
module_param_named(refuse_ia32, pvas_refuse_ia32, bool, 0444);
MODULE_PARM_DESC(refuse_ia32,
		 "refuse all ia32 system calls (int 0x80) in tasks, not only those that map (default N)");

/* ---- where a redirected call goes ---- */

static asmlinkage long pvas_stub_eperm(const struct pt_regs *regs)
{
	return -EPERM;
}

static asmlinkage long pvas_stub_enosys(const struct pt_regs *regs)
{
	return -ENOSYS;
}

/* May sleep: the caller is a task, whose space holds this module. */
static asmlinkage long pvas_stub_brk(const struct pt_regs *regs)
{
	return pvas_mm_brk(pvas_task_partition(), regs->di);
}

static int pvas_stub_copy_nothing(struct vm_area_struct *dst, struct vm_area_struct *src)
{
	return 0;
}

static struct file *pvas_stub_exe_file(struct task_struct *tsk)
{
	return pvas_task_exe_get(tsk);
}

/* ---- bounds of system calls ---- */

static bool pvas_range_foreign(const struct pvas_partition *part, unsigned long addr,
			       unsigned long len)
{
	/* What wraps around is for the call itself to refuse. */
	return addr + len >= addr && pvas_mm_foreign(part, addr, len);
}

static bool pvas_mremap_foreign(const struct pvas_partition *part, const struct pt_regs *regs)
{
	if (pvas_range_foreign(part, regs->di, regs->si))
		return true;
	return (regs->r10 & MREMAP_FIXED) && pvas_range_foreign(part, regs->r8, regs->dx);
}

/* Which stub a task's system call goes to; NULL: it may go on. */
static void *pvas_redirect(const struct pvas_partition *part, const struct pt_regs *regs)
{
	/* An ia32 call can name addresses below 4 GiB only: none is a task's. */
	if (in_ia32_syscall())
		return pvas_stub_eperm;

	switch (regs->orig_ax & ~__X32_SYSCALL_BIT) {
	case __NR_brk:
		return pvas_stub_brk;
	case __NR_io_setup:
	case PVAS_NR_MSEAL:
		return pvas_stub_enosys;
	case __NR_mremap:
		return pvas_mremap_foreign(part, regs) ? pvas_stub_eperm : NULL;
	case __NR_shmdt:
		return pvas_range_foreign(part, regs->di, 1) ? pvas_stub_eperm : NULL;
	default:
		/* The others take address and length first. */
		return pvas_range_foreign(part, regs->di, regs->si) ? pvas_stub_eperm : NULL;
	}
}

/* ---- ftrace callbacks ---- */

static void notrace pvas_on_syscall(unsigned long ip, unsigned long parent_ip,
				    struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);
	struct pvas_partition *part = pvas_task_partition();
	void *stub;

	if (!part || !regs)
		return;
	stub = pvas_redirect(part, (const struct pt_regs *)regs->di);
	if (stub)
		regs->ip = (unsigned long)stub;
}

/*
 * On every function that an ia32 call may go to. Some of them serve 64-bit calls
 * too, or are called with anything, so don't look at their arguments.
 */
static void notrace pvas_on_ia32(unsigned long ip, unsigned long parent_ip,
				 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);

	if (regs && in_ia32_syscall() && pvas_task_partition())
		regs->ip = (unsigned long)pvas_stub_eperm;
}

static void notrace pvas_on_search(unsigned long ip, unsigned long parent_ip,
				   struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);
	struct pvas_partition *part = pvas_task_partition();

	if (part && regs)
		pvas_mm_clamp(part, (struct vm_unmapped_area_info *)regs->di);
}

/* uprobes wants its page, which serves the whole mm, at the very top: keep it out of partitions. */
static bool pvas_is_uprobes_page(unsigned long addr, unsigned long len, unsigned long flags)
{
	return addr == TASK_SIZE_MAX - PAGE_SIZE && len == PAGE_SIZE && !flags;
}

/* (file, addr, len, pgoff, flags, ...) */
static void notrace pvas_on_place(unsigned long ip, unsigned long parent_ip,
				  struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);
	struct pvas_partition *part = pvas_task_partition();
	unsigned long addr, len, flags;

	if (!part || !regs)
		return;
	addr = regs->si;
	len = regs->dx;
	flags = regs->r8;
	/* A length that no address space has: the function answers -ENOMEM. */
	if (flags & MAP_GROWSDOWN)
		regs->dx = -PAGE_SIZE;
	else if (!pvas_mm_foreign(part, addr, len))
		return;
	else if (flags & MAP_FIXED)
		regs->dx = -PAGE_SIZE;
	else if (addr && !pvas_is_uprobes_page(addr, len, flags))
		regs->si = 0;
}

/* (dst_vma, src_vma) */
static void notrace pvas_on_copy(unsigned long ip, unsigned long parent_ip,
				 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);
	struct pvas_partition *part = pvas_task_partition();
	const struct vm_area_struct *vma;
	unsigned int index;

	if (!part || !regs)
		return;
	vma = (const struct vm_area_struct *)regs->si;
	index = pvas_index_of(part->space, vma->vm_start);
	if (index != part->index && index >= part->space->first && index <= part->space->last &&
	    !test_bit(index, part->space->reserved))
		regs->ip = (unsigned long)pvas_stub_copy_nothing;
}

/* (task) */
static void notrace pvas_on_exe_file(unsigned long ip, unsigned long parent_ip,
				     struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);

	if (regs && pvas_task_has_exe((struct task_struct *)regs->di))
		regs->ip = (unsigned long)pvas_stub_exe_file;
}

/* ---- the hooks ---- */

static const char * const pvas_search_names[] = { "vm_unmapped_area", NULL };
static const char * const pvas_place_names[] = { PVAS_FN_GET_UNMAPPED_AREA, NULL };
static const char * const pvas_copy_names[] = { "copy_page_range", NULL };
static const char * const pvas_exe_names[] = { "get_task_exe_file", NULL };
static const char * const pvas_syscall_names[] = {
	"__x64_sys_brk", "__x64_sys_munmap", "__x64_sys_mremap", "__x64_sys_mprotect",
	"__x64_sys_pkey_mprotect", "__x64_sys_madvise", "__x64_sys_mlock", "__x64_sys_mlock2",
	"__x64_sys_munlock", "__x64_sys_mbind", "__x64_sys_remap_file_pages",
	"__x64_sys_set_mempolicy_home_node", "__x64_sys_shmdt", "__x64_sys_io_setup", NULL
};

/* Not in every kernel or configuration. */
static const char * const pvas_optional_names[] = { "__x64_sys_mseal", NULL };
static const char * const pvas_ia32_names[] = {
	"__ia32_sys_brk", "__ia32_sys_munmap", "__ia32_sys_mremap", "__ia32_sys_mprotect",
	"__ia32_sys_pkey_mprotect", "__ia32_sys_madvise", "__ia32_sys_mlock",
	"__ia32_sys_mlock2", "__ia32_sys_munlock", "__ia32_sys_mbind",
	"__ia32_sys_remap_file_pages", "__ia32_sys_set_mempolicy_home_node",
	"__ia32_sys_shmdt", "__ia32_compat_sys_io_setup", "__ia32_sys_mseal", NULL
};

/*
 * A call without arguments has one function for both ABIs, which goes by its
 * innermost name.
 */
static const char * const pvas_all_ia32_names[] = {
	"__ia32_*", "__do_sys_*", "__do_compat_sys_*", NULL
};

struct pvas_hook {
	struct ftrace_ops ops;
	const char * const *names;	/* without one of these nothing works */
	const char * const *optional;
	bool *only_if, *only_if_not;	/* parameters that choose */
	bool filtered;			/* has a function to stand on */
	bool on;
};

static struct pvas_hook pvas_hooks[] = {
	{ .names = pvas_search_names,
	  .ops = { .func = pvas_on_search, .flags = PVAS_OPS_FLAGS } },
	{ .names = pvas_place_names,
	  .ops = { .func = pvas_on_place, .flags = PVAS_OPS_FLAGS } },
	{ .names = pvas_syscall_names, .optional = pvas_optional_names,
	  .ops = { .func = pvas_on_syscall, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .optional = pvas_ia32_names, .only_if_not = &pvas_refuse_ia32,
	  .ops = { .func = pvas_on_syscall, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .optional = pvas_all_ia32_names, .only_if = &pvas_refuse_ia32,
	  .ops = { .func = pvas_on_ia32, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .names = pvas_copy_names,
	  .ops = { .func = pvas_on_copy, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
	{ .names = pvas_exe_names,
	  .ops = { .func = pvas_on_exe_file, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY } },
};

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

static int pvas_hook_filter(struct pvas_hook *hook)
{
	const char * const *name;
	int err;

	for (name = hook->names; name && *name; name++) {
		err = pvas_hook_add(hook, *name);
		if (err) {
			pr_err("can't hook %s: error %d: this kernel is not supported\n",
			       *name, err);
			return -EOPNOTSUPP;
		}
		hook->filtered = true;
	}
	for (name = hook->optional; name && *name; name++)
		if (!pvas_hook_add(hook, *name))
			hook->filtered = true;
	return 0;
}

static int pvas_hook_on(struct pvas_hook *hook)
{
	const char * const *names = hook->names ?: hook->optional;
	int err;

	/* With an empty filter it would stand on every function there is. */
	if (!hook->filtered)
		return 0;
	err = register_ftrace_function(&hook->ops);
	if (err == -ENOMEM)
		return err;
	if (err) {
		pr_err("can't hook %s%s: error %d: is kernel.ftrace_enabled 0, or has a live patch it?\n",
		       names[0], names[1] ? " or one of its kind" : "", err);
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
	int i;

	lockdep_assert_held(&pvas_hook_lock);
	for (i = ARRAY_SIZE(pvas_probes) - 1; i >= 0; i--) {
		if (pvas_probes[i].on)
			tracepoint_probe_unregister(pvas_probes[i].tp, pvas_probes[i].func, NULL);
		pvas_probes[i].on = false;
	}
	tracepoint_synchronize_unregister();
	for (i = ARRAY_SIZE(pvas_hooks) - 1; i >= 0; i--)
		pvas_hook_off(&pvas_hooks[i]);
	pvas_hooked = false;
}

static int pvas_hooks_on(void)
{
	int i, err = 0;

	lockdep_assert_held(&pvas_hook_lock);
	for (i = 0; !err && i < ARRAY_SIZE(pvas_probes); i++) {
		err = tracepoint_probe_register(pvas_probes[i].tp, pvas_probes[i].func, NULL);
		pvas_probes[i].on = !err;
	}
	for (i = 0; !err && i < ARRAY_SIZE(pvas_hooks); i++)
		err = pvas_hook_on(&pvas_hooks[i]);
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

	mutex_lock(&pvas_hook_lock);
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

int pvas_hook_init(void)
{
	int i, err;

	for (i = 0; i < ARRAY_SIZE(pvas_probes); i++) {
		for_each_kernel_tracepoint(pvas_match_tracepoint, &pvas_probes[i]);
		if (!pvas_probes[i].tp) {
			pr_err("no tracepoint %s in this kernel\n", pvas_probes[i].name);
			return -EOPNOTSUPP;
		}
	}
	for (i = 0; i < ARRAY_SIZE(pvas_hooks); i++) {
		err = pvas_hook_wanted(&pvas_hooks[i]) ? pvas_hook_filter(&pvas_hooks[i]) : 0;
		if (err)
			goto err_filters;
	}
	return 0;

err_filters:
	while (i >= 0)
		ftrace_free_filter(&pvas_hooks[i--].ops);
	return err;
}

void pvas_hook_exit(void)
{
	int i;

	cancel_delayed_work_sync(&pvas_hook_work);
	mutex_lock(&pvas_hook_lock);
	if (pvas_hooked)
		pvas_hooks_off();
	mutex_unlock(&pvas_hook_lock);
	for (i = 0; i < ARRAY_SIZE(pvas_hooks); i++)
		ftrace_free_filter(&pvas_hooks[i].ops);
}
