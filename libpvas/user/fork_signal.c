// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: fork() of a task, in the handler of stay_signal.c.
 *
 * A worker marks the memory of the other tasks, so that the kernel doesn't copy it: see fork.c. But
 * they go on mapping, and what they map until the copy is made has no mark. The child, which may
 * become another user's, must not run the program's code while it has that. So the copy is made
 * here, by the library's code, and the child unmaps it first.
 *
 * The thread pointer is the task's, or already the child's: raw system calls only.
 */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>

#include "rawsys.h"
#include "stay.h"

#if defined(__SSP__) || defined(__SSP_STRONG__) || defined(__SSP_ALL__)
#error "this file needs -fno-stack-protector"
#endif

/* The longest that is known today; with a longer one the kernel makes the call. */
#define ARGS_SIZE	88

_Static_assert(sizeof(struct clone_args) >= ARGS_SIZE, "room for all of it");

/* Arguments of a clone, without a stack: the child begins on a copy of the handler's. */
struct copy {
	long args[5];
	struct clone_args more;
	uint64_t stack;
};

static int is_copied(uint64_t flags)
{
	return !(flags & CLONE_VM);
}

static int take_clone3(struct copy *c)
{
	const uint64_t *from = (const uint64_t *)c->args[0];
	uint64_t *to = (uint64_t *)&c->more;
	long i;

	if (c->args[1] < 64 || c->args[1] > ARGS_SIZE || c->args[1] % 8)
		return 0;
	/* Not by a function of libc, whose address may be looked up only now */
	for (i = 0; i < ARGS_SIZE / 8; i++)
		__atomic_store_n(&to[i], i < c->args[1] / 8 ? from[i] : 0, __ATOMIC_RELAXED);
	/* The kernel refuses one without the other. */
	if (!c->more.stack != !c->more.stack_size)
		return 0;
	c->stack = c->more.stack + c->more.stack_size;
	c->more.stack = c->more.stack_size = 0;
	c->args[0] = (long)&c->more;
	return is_copied(c->more.flags);
}

/* Returns whether it is a call that copies the process. */
static int take_call(struct copy *c, long nr)
{
	c->stack = 0;
	if (nr == __NR_clone3)
		return take_clone3(c);
	if (nr != __NR_clone)
		return pvas_is_fork(nr);
	c->stack = (uint64_t)c->args[1];
	c->args[1] = 0;
	return is_copied((uint64_t)c->args[0]);
}

static void unmap(const struct user_space *u, uint32_t from, uint32_t to)
{
	const unsigned int shift = u->space->shift;

	if (from < to)
		pvas_raw2(__NR_munmap, (uint64_t)from << shift, (uint64_t)(to - from) << shift);
}

/* All partitions but the task's, and the one whose code runs */
static void unmap_others(const struct user_part *p, uint64_t ip)
{
	const struct user_space *u = p->u;
	uint32_t own = (uint32_t)(p->base >> u->space->shift);
	uint32_t other = (uint32_t)(ip >> u->space->shift);
	uint32_t last = (uint32_t)u->space->last;
	uint32_t low, high;

	if (other < u->space->first || other > last)
		other = own;
	low = own < other ? own : other;
	high = own < other ? other : own;
	unmap(u, (uint32_t)u->space->first, low);
	unmap(u, low + 1, high);
	unmap(u, high + 1, last + 1);
}

int user_fork_in_handler(ucontext_t *frame, const struct user_part *p)
{
	const long args[] = PVAS_CONTEXT_ARGS(frame), nr = PVAS_CONTEXT_NR(frame);
	struct copy c;
	long ret;
	int i;

	for (i = 0; i < 5; i++)
		c.args[i] = args[i];

	if ((nr != __NR_clone && nr != __NR_clone3 && !pvas_is_fork(nr)) ||
	    !PVAS_IS_CALL_AT(PVAS_CONTEXT_IP(frame)) || !take_call(&c, nr))
		return 0;
	ret = pvas_raw6(nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], 0);
	if (!ret) {
		unmap_others(p, PVAS_CONTEXT_IP(frame));
		if (c.stack)
			PVAS_CONTEXT_SP(frame) = (long)c.stack;
	}
	PVAS_CONTEXT_RESULT(frame) = ret;
	PVAS_CONTEXT_SKIP(frame);
	return 1;
}
