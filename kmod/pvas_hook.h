/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A hook: an ftrace callback on some of the kernel's functions, by name. Each subject
 * has a set of hooks; pvas_hook.c switches the sets on and off.
 */
#ifndef PVAS_HOOK_H
#define PVAS_HOOK_H

#include <linux/ftrace.h>
#include <linux/ptrace.h>

#include "compat.h"

struct pvas_partition;

/*
 * PERMANENT: the sysctl kernel.ftrace_enabled must not switch the bounds off. From 6.1 on, neither
 * SAVE_REGS, as pvas_regs() suffices, nor RECURSION, as no callback calls a hooked function: each
 * of them takes more time than a callback for a process outside all spaces.
 */
#define PVAS_OPS_FLAGS	(FTRACE_OPS_FL_PERMANENT | PVAS_OPS_MORE)

/*
 * The registers in a callback. Without SAVE_REGS only those that pass arguments are valid, ip,
 * and orig_ax, and can be changed.
 */
static __always_inline struct pt_regs *pvas_regs(struct ftrace_regs *fregs)
{
	/* With x86 this is all that the struct has, whatever kernels call it. */
	return (struct pt_regs *)fregs;
}

/**
 * struct pvas_bound - a function of the kernel, and the check of its arguments
 * @name:	as kallsyms has it
 * @check:	returns a stub to call instead, or NULL; the function's own arguments are in
 *		the registers, which it may change. Atomic
 * @absent:	a kernel without it is supported
 * @ia32:	for ia32 calls only; with the parameter refuse_ia32 all of these are refused
 */
struct pvas_bound {
	const char *name;
	void *(*check)(const struct pvas_partition *part, struct pt_regs *regs);
	bool absent;
	bool ia32;
};

/**
 * struct pvas_hook - one callback and its functions
 * @ops:	the callback, and PVAS_OPS_FLAGS; with IPMODIFY if it redirects
 * @names:	NULL-terminated; if one of these is missing, the module does not load
 * @bounds:	the same, with a check for each; ends with an empty one
 * @optional:	NULL-terminated; not in every kernel or configuration
 * @patterns:	NULL-terminated, as for set_ftrace_filter; instead of all of the above
 * @only_if:	a module parameter that must be set, or NULL
 * @ips:	the addresses of the functions that this kernel has
 * @n_ips:	the number of @ips
 * @idle:	the address of the function that it is on without a space
 * @matched:	the patterns match some functions
 * @registered:	with ftrace, on @ips or on @idle
 */
struct pvas_hook {
	struct ftrace_ops ops;
	const char * const *names;
	const char * const *optional;
	const char * const *patterns;
	const struct pvas_bound *bounds;
	bool *only_if;
	unsigned long *ips;
	unsigned int n_ips;
	unsigned long idle;
	bool matched;
	bool registered;
};

struct pvas_hook_set {
	struct pvas_hook *hooks;
	unsigned int n;
};

/*
 * In a callback: instead of its function, the kernel calls @stub. Another tracer of the function
 * may be a direct one, such as a BPF program that runs after it. Where that has been attached
 * while the ops was on no function of the kernel's, ftrace has not told it that the address of
 * the function can change, and it would call the function itself. It has left its address in
 * orig_ax, since it came to the ops's list later, and is not called then.
 */
static __always_inline void pvas_redirect(struct pt_regs *regs, void *stub)
{
	regs->ip = (unsigned long)stub;
	regs->orig_ax = 0;
}

extern const struct pvas_hook_set pvas_bounds_set;	/* pvas_bounds.c */
extern bool pvas_refuse_ia32;

/* pvas_calls.c */
extern const struct pvas_bound pvas_call_bounds[];
long pvas_stub_eperm(void);
void *pvas_within(const struct pvas_partition *part, unsigned long addr, unsigned long len);
const struct pvas_bound *pvas_find_bound(const struct pvas_bound *bounds, unsigned long *at,
					 unsigned int n, unsigned long ip);
void pvas_on_unmap(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		   struct ftrace_regs *fregs);
void pvas_on_call(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		  struct ftrace_regs *fregs);

void *pvas_check_worker_unmap(struct pt_regs *regs);	/* pvas_lock.c */

/* pvas_fill.c */
extern const struct pvas_bound pvas_fill_bounds[];
void pvas_on_fill(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		  struct ftrace_regs *fregs);
void pvas_on_install_page(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			  struct ftrace_regs *fregs);

/* pvas_uffd.c */
void pvas_on_uffd(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		  struct ftrace_regs *fregs);
void pvas_on_uffd_lookup(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			 struct ftrace_regs *fregs);
void pvas_on_userfault(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		       struct ftrace_regs *fregs);

/* pvas_keys.c */
void pvas_on_key(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		 struct ftrace_regs *fregs);

/* pvas_guard.c */
extern const struct pvas_hook_set pvas_guard_set;
bool pvas_empty_mm_prepare(void);
void pvas_empty_mm_keep(struct mm_struct *mm);
void pvas_empty_mm_exit(void);

/* pvas_signal.c */
extern const struct pvas_hook_set pvas_signal_set;
void pvas_signal_init(void);

/* pvas_event.c */
extern const struct pvas_hook_set pvas_event_set;
int pvas_event_init(void);
int pvas_event_on(void);
void pvas_event_off(void);

#endif /* PVAS_HOOK_H */
