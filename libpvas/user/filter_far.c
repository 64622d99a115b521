// SPDX-License-Identifier: LGPL-2.1-or-later
/* User backend: what the filter does for far memory, see far.h. */
#include <stddef.h>

#include "far.h"
#include "filter.h"
#include "rawsys.h"

/* Is this argument in the second quarter of a partition? Then a worker has to see the call. */
static void check_far(struct program *p, uint32_t arg)
{
	unsigned int local = new_label(p);

	load(p, HIGH(arg));
	op(p, BPF_ALU | BPF_RSH | BPF_K, p->shift - 2);
	op(p, BPF_ALU | BPF_AND | BPF_K, 3);
	jump(p, BPF_JEQ | BPF_K, 1, NEXT, local);
	load(p, HIGH(arg));
	op(p, BPF_ALU | BPF_RSH | BPF_K, p->shift);
	jump(p, BPF_JGE | BPF_K, p->first, NEXT, local);
	jump(p, BPF_JGT | BPF_K, p->last, local, NOTIFY);
	bind(p, local);
}

/*
 * A range that begins in one quarter of a partition and ends in another, or nearly so, can
 * reach into the far part from below: a worker cuts it.
 */
static void check_quarters(struct program *p, unsigned int same)
{
	load(p, HIGH(ARG(0)));
	op(p, BPF_MISC | BPF_TAX, 0);
	load(p, HIGH(ARG(1)));
	op(p, BPF_ALU | BPF_ADD | BPF_X, 0);
	op(p, BPF_ALU | BPF_ADD | BPF_K, 1);
	op(p, BPF_ALU | BPF_RSH | BPF_K, p->shift - 2);
	op(p, BPF_ST, M_CARRY);
	load(p, HIGH(ARG(0)));
	op(p, BPF_ALU | BPF_RSH | BPF_K, p->shift - 2);
	op(p, BPF_LDX | BPF_MEM, M_CARRY);
	jump(p, BPF_JEQ | BPF_X, 0, same, NOTIFY);
}

/*
 * The pager has to know of calls that change far memory, whose first argument it is. If it
 * can't serve the kernel's faults, a worker has to see all calls on far memory, and those whose
 * arguments point to pointers. And of ends: see far_robust.c.
 */
void user_filter_far(struct program *p, const struct user_far *f)
{
	static const uint32_t indirect[] = {
		__NR_readv, __NR_writev, __NR_preadv, __NR_pwritev, __NR_preadv2, __NR_pwritev2,
		__NR_vmsplice, __NR_process_vm_readv, __NR_process_vm_writev, __NR_sendmsg,
		__NR_recvmsg, __NR_sendmmsg, __NR_recvmmsg, __NR_sigaltstack, NR_FUTEX_WAITV,
		__NR_pselect6,
	};
	static const uint32_t ranges[] = {
		__NR_mmap, __NR_munmap, __NR_madvise, __NR_mremap, __NR_mlock, __NR_mlock2,
	};
	unsigned int i, range = new_label(p), others = new_label(p);

	user_filter_check_caller(p, others);
	for (i = 0; i < (f->kernel ? 1 : 6); i++)
		check_far(p, ARG(i));
	load(p, offsetof(struct seccomp_data, nr));
	for (i = 0; !f->kernel && i < sizeof(indirect) / sizeof(indirect[0]); i++)
		jump(p, BPF_JEQ | BPF_K, indirect[i], NOTIFY, NEXT);
	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		jump(p, BPF_JEQ | BPF_K, ranges[i], range, NEXT);
	jump(p, BPF_JEQ | BPF_K, __NR_exit, NOTIFY, NEXT);
	jump(p, BPF_JEQ | BPF_K, __NR_exit_group, NOTIFY, NEXT);
	go(p, others);
	bind(p, range);
	check_quarters(p, others);
	go(p, NOTIFY);
	bind(p, others);
	load(p, offsetof(struct seccomp_data, nr));
}
