/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A hook: an ftrace callback on some of the kernel's functions, by name. Each
 * subject has a set of them; pvas_hook.c has the sets in and out with the spaces.
 */
#ifndef PVAS_HOOK_H
#define PVAS_HOOK_H

#include <linux/ftrace.h>

struct pt_regs;
struct pvas_partition;

/* PERMANENT: the sysctl kernel.ftrace_enabled must not switch the bounds off. */
#define PVAS_OPS_FLAGS	(FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_PERMANENT | \
			 FTRACE_OPS_FL_RECURSION)

/**
 * struct pvas_bound - a function that a task may call within limits
 * @name:	as kallsyms has it
 * @check:	where to go instead, or NULL; with the function's own arguments in the
 *		registers, which it may change. Atomic
 * @absent:	this kernel need not have it
 * @ia32:	for an ia32 call only: left to the parameter refuse_ia32 if that is set
 */
struct pvas_bound {
	const char *name;
	void *(*check)(const struct pvas_partition *part, struct pt_regs *regs);
	bool absent;
	bool ia32;
};

/**
 * struct pvas_hook - one callback and the functions it stands on
 * @ops:	the callback, and PVAS_OPS_FLAGS; with IPMODIFY if it redirects
 * @names:	NULL-terminated; without one of these the module does not load
 * @bounds:	the same, with what each is checked for; ends with an empty one
 * @optional:	NULL-terminated; not in every kernel or configuration
 * @patterns:	NULL-terminated, as for set_ftrace_filter; instead of all of the above
 * @only_if:	a module parameter that must be set, or NULL
 * @ips:	the addresses of those that are there
 * @n_ips:	how many
 * @idle:	the address of the function it stands on without a space
 * @matched:	the patterns have functions
 * @registered:	with ftrace, on these or on none that is called
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

extern const struct pvas_hook_set pvas_bounds_set;	/* pvas_bounds.c */
extern bool pvas_refuse_ia32;

/* pvas_calls.c */
extern const struct pvas_bound pvas_call_bounds[];
void pvas_on_call(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		  struct ftrace_regs *fregs);

/* pvas_uffd.c */
void pvas_on_uffd(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		  struct ftrace_regs *fregs);
extern const struct pvas_hook_set pvas_guard_set;	/* pvas_guard.c */

#endif /* PVAS_HOOK_H */
