// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend's seccomp filter: one program for all tasks.
 *
 * A caller is identified by its code: the partition of the instruction pointer is the
 * caller's own. Code elsewhere (the launcher, and every program that a task has
 * started by execve()) is allowed everything, although it inherits the filter. All
 * sizes of partitions are multiples of 4 GiB: an address' upper half determines the partition.
 *
 * System calls that are not listed here are allowed by their number alone: since
 * Linux 5.11 the kernel caches that, and they cost no more than without a filter.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "child.h"
#include "rawsys.h"
#include "filter.h"
#include "worker.h"

/* Older headers lack some of them. */
#define ARCH_MAP_VDSO_FIRST	0x2001
#define ARCH_MAP_VDSO_LAST	0x2003
#define ARCH_TAGGED_ADDR	0x4002	/* ARCH_ENABLE_TAGGED_ADDR, 6.4 */
#define ARCH_TAGGED_SVA		0x4004	/* ARCH_FORCE_TAGGED_SVA */
#define ARCH_SHADOW_STACK	0x5001	/* ARCH_SHSTK_ENABLE, 6.6 */
#define IOC_USERFAULTFD_NEW	0xaa00	/* USERFAULTFD_IOC_NEW, 6.1 */
#define IOC_UFFDIO_API		0xc018aa3f

/* ---- checks: execution continues after them if they pass ---- */

void user_filter_check_caller(struct program *p, unsigned int no)
{
	load(p, HIGH(IP));
	op(p, BPF_ALU | BPF_RSH | BPF_K, p->shift);
	jump(p, BPF_JGE | BPF_K, p->first, NEXT, no);
	jump(p, BPF_JGT | BPF_K, p->last, no, NEXT);
	op(p, BPF_ST, M_INDEX);
}

/* The accumulator has the upper half of an address: is it in the caller's partition? */
static void check_half(struct program *p)
{
	op(p, BPF_ALU | BPF_RSH | BPF_K, p->shift);
	op(p, BPF_LDX | BPF_MEM, M_INDEX);
	jump(p, BPF_JEQ | BPF_X, 0, NEXT, NOTIFY);
}

/*
 * Is [addr, addr + len) in the caller's partition? A range that ends exactly where the
 * partition does is left to the worker.
 */
static void check_range(struct program *p, uint32_t addr, uint32_t len)
{
	unsigned int no_carry = new_label(p), summed = new_label(p);

	load(p, HIGH(addr));
	check_half(p);
	/* The length is at most a partition's, so the upper halves can't overflow. */
	load(p, HIGH(len));
	jump(p, BPF_JGT | BPF_K, 1U << p->shift, NOTIFY, NEXT);
	/* The carry of the lower halves' sum */
	load(p, addr);
	op(p, BPF_MISC | BPF_TAX, 0);
	load(p, len);
	op(p, BPF_ALU | BPF_ADD | BPF_X, 0);
	jump(p, BPF_JGE | BPF_X, 0, no_carry, NEXT);
	op(p, BPF_LD | BPF_IMM, 1);
	go(p, summed);
	bind(p, no_carry);
	op(p, BPF_LD | BPF_IMM, 0);
	bind(p, summed);
	op(p, BPF_ST, M_CARRY);
	/* The upper half of the end */
	load(p, HIGH(addr));
	op(p, BPF_MISC | BPF_TAX, 0);
	load(p, HIGH(len));
	op(p, BPF_ALU | BPF_ADD | BPF_X, 0);
	op(p, BPF_LDX | BPF_MEM, M_CARRY);
	op(p, BPF_ALU | BPF_ADD | BPF_X, 0);
	check_half(p);
}

/* ---- the checks of each system call ---- */

/* munmap() and others: the first arguments are address and length. */
static void body_range(struct program *p)
{
	user_filter_check_caller(p, ALLOW);
	check_range(p, ARG(0), ARG(1));
	go(p, ALLOW);
}

/*
 * Fork children have their mappings above all partitions, and allocators call madvise()
 * on them too often to involve a worker. A worker has to see a task's own MADV_DONTFORK,
 * so as not to confuse it with the marks of fork.c, and MADV_DOFORK, which removes them.
 */
static void body_madvise(struct program *p)
{
	user_filter_check_caller(p, ALLOW);
	load(p, ARG(2));
	jump(p, BPF_JEQ | BPF_K, MADV_DONTFORK, NOTIFY, NEXT);
	jump(p, BPF_JEQ | BPF_K, MADV_DOFORK, NOTIFY, NEXT);
	load(p, HIGH(ARG(0)));
	op(p, BPF_ALU | BPF_RSH | BPF_K, p->shift);
	jump(p, BPF_JGT | BPF_K, p->last, ALLOW, NEXT);
	check_range(p, ARG(0), ARG(1));
	go(p, ALLOW);
}

/*
 * Where the kernel would choose the address, a worker has to. It also has to see what comes
 * while a peer forks, or in the way of the heap, and devices: see fork.c. So it sees all but the
 * loader's mappings of the program, by the upper half of the descriptor, which the kernel ignores.
 */
static void body_mmap(struct program *p)
{
	user_filter_check_caller(p, ALLOW);
	load(p, ARG(3));
	jump(p, BPF_JSET | BPF_K, MAP_FIXED | MAP_FIXED_NOREPLACE, NEXT, NOTIFY);
	check_range(p, ARG(0), ARG(1));
	load(p, HIGH(ARG(4)));
	jump(p, BPF_JEQ | BPF_K, user_loader_mark(p->cookie), ALLOW, NOTIFY);
}

/* A worker chooses the place, or has to see that no stack moves. Shrinking moves nothing. */
static void body_mremap(struct program *p)
{
	user_filter_check_caller(p, ALLOW);
	check_range(p, ARG(0), ARG(1));
	load(p, ARG(3));
	jump(p, BPF_JSET | BPF_K, MREMAP_FIXED | MREMAP_DONTUNMAP, NOTIFY, NEXT);
	/* A worker compares lengths of 4 GiB and more. */
	load(p, HIGH(ARG(1)));
	jump(p, BPF_JEQ | BPF_K, 0, NEXT, NOTIFY);
	load(p, HIGH(ARG(2)));
	jump(p, BPF_JEQ | BPF_K, 0, NEXT, NOTIFY);
	load(p, ARG(2));
	op(p, BPF_MISC | BPF_TAX, 0);
	load(p, ARG(1));
	jump(p, BPF_JGE | BPF_X, 0, ALLOW, NOTIFY);
}

static void body_notify(struct program *p)
{
	user_filter_check_caller(p, ALLOW);
	go(p, NOTIFY);
}

/*
 * The supervisor's call to end a worker. Sandboxes refuse numbers that they don't know, and for
 * the kernel their answer has precedence. So it is a call that all of them allow, with
 * user_space.cookie as the signal; the kernel itself would refuse the size. The other callers
 * don't know that number, except fork children, and they gain nothing by it.
 */
static void check_stop(struct program *p)
{
	unsigned int other = new_label(p);

	load(p, ARG(0));
	jump(p, BPF_JEQ | BPF_K, (uint32_t)p->cookie, NEXT, other);
	load(p, HIGH(ARG(0)));
	jump(p, BPF_JEQ | BPF_K, (uint32_t)(p->cookie >> 32), NOTIFY, other);
	bind(p, other);
}

/*
 * A worker replaces the restorer of handlers by one that repairs interrupted calls (start.S).
 * Not of handlers of faults, from which unwinders often start, which know libc's restorer. One
 * signal's action is the worker's own matter: sigaction.c.
 */
static void body_sigaction(struct program *p)
{
	static const unsigned int faults[] = {
		SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS,
	};
	unsigned int i, given = new_label(p);

	check_stop(p);
	user_filter_check_caller(p, ALLOW);
	load(p, ARG(0));
	jump(p, BPF_JEQ | BPF_K, USER_STAY_SIGNAL, NOTIFY, NEXT);
	load(p, ARG(1));
	jump(p, BPF_JEQ | BPF_K, 0, NEXT, given);
	load(p, HIGH(ARG(1)));
	jump(p, BPF_JEQ | BPF_K, 0, ALLOW, NEXT);
	bind(p, given);
	load(p, ARG(0));
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		jump(p, BPF_JEQ | BPF_K, faults[i], ALLOW, NEXT);
	go(p, NOTIFY);
}

/*
 * Nobody may install a filter unseen, wherever the code is: see sandbox.c. The kernel looks
 * at the lower half of the first arguments.
 */
static void body_seccomp(struct program *p)
{
	load(p, ARG(0));
	jump(p, BPF_JEQ | BPF_K, SECCOMP_SET_MODE_FILTER, NOTIFY, ALLOW);
}

static void check_prctl_seccomp(struct program *p, unsigned int no)
{
	load(p, ARG(0));
	jump(p, BPF_JEQ | BPF_K, PR_SET_SECCOMP, NEXT, no);
	load(p, ARG(1));
	jump(p, BPF_JEQ | BPF_K, SECCOMP_MODE_FILTER, NOTIFY, ALLOW);
}

/* Of programs that tasks have started: calls that are not of x86-64's table */
static void other_table(struct program *p, uint32_t nr_seccomp, uint32_t nr_prctl)
{
	unsigned int seccomp = new_label(p);

	load(p, offsetof(struct seccomp_data, nr));
	jump(p, BPF_JEQ | BPF_K, nr_seccomp, seccomp, NEXT);
	jump(p, BPF_JEQ | BPF_K, nr_prctl, NEXT, ALLOW);
	check_prctl_seccomp(p, ALLOW);
	bind(p, seccomp);
	body_seccomp(p);
	go(p, ALLOW);
	go(p, NOTIFY);
}

/* A worker refuses tasks the options that change the mm of all tasks, or how a task ends. */
static void body_prctl(struct program *p)
{
	static const uint32_t shared[] = {
		PR_SET_MM, PR_SET_THP_DISABLE, OPT_SET_MDWE, OPT_SET_MEMORY_MERGE,
	};
	unsigned int i, dumpable = new_label(p), name = new_label(p), hash = new_label(p);
	unsigned int death = new_label(p), others = new_label(p);

	check_prctl_seccomp(p, others);
	bind(p, others);
	user_filter_check_caller(p, ALLOW);
	load(p, ARG(0));
	jump(p, BPF_JEQ | BPF_K, PR_SET_PDEATHSIG, death, NEXT);
	jump(p, BPF_JEQ | BPF_K, PR_SET_DUMPABLE, dumpable, NEXT);
	jump(p, BPF_JEQ | BPF_K, PR_SET_SYSCALL_USER_DISPATCH, NOTIFY, NEXT);
	jump(p, BPF_JEQ | BPF_K, OPT_SET_VMA, name, NEXT);
	jump(p, BPF_JEQ | BPF_K, OPT_FUTEX_HASH, hash, NEXT);
	for (i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		jump(p, BPF_JEQ | BPF_K, shared[i], NOTIFY, NEXT);
	go(p, ALLOW);
	/* A task dies with the launcher. */
	bind(p, death);
	load(p, ARG(1));
	jump(p, BPF_JEQ | BPF_K, SIGKILL, ALLOW, NOTIFY);
	/* Dumpable has been 1 since the space was created. */
	bind(p, dumpable);
	load(p, ARG(1));
	jump(p, BPF_JEQ | BPF_K, 1, ALLOW, NOTIFY);
	bind(p, hash);
	load(p, ARG(1));
	jump(p, BPF_JEQ | BPF_K, OPT_FUTEX_HASH_SET, NOTIFY, ALLOW);
	bind(p, name);
	check_range(p, ARG(2), ARG(3));
	go(p, ALLOW);
}

/* Of /dev/userfaultfd: it acts on any address, as the call does. */
static void body_ioctl(struct program *p)
{
	user_filter_check_caller(p, ALLOW);
	load(p, ARG(1));
	jump(p, BPF_JEQ | BPF_K, IOC_USERFAULTFD_NEW, NOTIFY, NEXT);
	jump(p, BPF_JEQ | BPF_K, IOC_UFFDIO_API, NOTIFY, ALLOW);
}

#ifdef __NR_arch_prctl
/* prctl() of this architecture: some map memory at an address of the kernel's choice. */
static void body_arch_prctl(struct program *p)
{
	static const uint32_t shared[] = { ARCH_TAGGED_ADDR, ARCH_TAGGED_SVA, ARCH_SHADOW_STACK };
	unsigned int i;

	user_filter_check_caller(p, ALLOW);
	load(p, ARG(0));
	for (i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		jump(p, BPF_JEQ | BPF_K, shared[i], NOTIFY, NEXT);
	jump(p, BPF_JGE | BPF_K, ARCH_MAP_VDSO_FIRST, NEXT, ALLOW);
	jump(p, BPF_JGT | BPF_K, ARCH_MAP_VDSO_LAST, ALLOW, NOTIFY);
}
#endif

/* Calls with the same body are adjacent, so that the filter has it once. */
static const struct {
	uint32_t nr;
	void (*body)(struct program *p);
} listed[] = {
	{ __NR_mmap, body_mmap },
	{ __NR_mremap, body_mremap },
	{ __NR_madvise, body_madvise },
	{ __NR_munmap, body_range },
	{ __NR_mprotect, body_range },
	{ __NR_pkey_mprotect, body_range },
	{ __NR_mlock, body_range },
	{ __NR_mlock2, body_range },
	{ __NR_munlock, body_range },
	{ __NR_mbind, body_range },
	{ NR_SET_MEMPOLICY_HOME_NODE, body_range },
	{ __NR_rt_sigaction, body_sigaction },
	{ __NR_brk, body_notify },
	{ __NR_sigaltstack, body_notify },
	{ __NR_shmat, body_notify },
	{ __NR_shmdt, body_notify },
	PVAS_OLD_CALL({ __NR_readlink, body_notify },)
	{ __NR_readlinkat, body_notify },
	{ __NR_execve, body_notify },
	{ __NR_execveat, body_notify },
	{ __NR_io_setup, body_notify },
	{ __NR_io_uring_setup, body_notify },
	{ NR_MSEAL, body_notify },
	{ NR_MAP_SHADOW_STACK, body_notify },
	PVAS_OLD_CALL({ __NR_fork, body_notify },)
	PVAS_OLD_CALL({ __NR_vfork, body_notify },)
	{ __NR_clone, body_notify },
	{ __NR_clone3, body_notify },
	{ __NR_perf_event_open, body_notify },
	{ __NR_remap_file_pages, body_notify },	/* maps anew, without the marks */
	{ __NR_mlockall, body_notify },
	{ __NR_munlockall, body_notify },
	{ __NR_userfaultfd, body_notify },
	{ __NR_process_madvise, body_notify },
	{ __NR_io_uring_enter, body_notify },
	PVAS_OLD_CALL({ __NR_modify_ldt, body_notify },)
	{ __NR_migrate_pages, body_notify },
	{ __NR_setuid, body_notify },
	{ __NR_setgid, body_notify },
	{ __NR_setreuid, body_notify },
	{ __NR_setregid, body_notify },
	{ __NR_setresuid, body_notify },
	{ __NR_setresgid, body_notify },
	{ __NR_setfsuid, body_notify },
	{ __NR_setfsgid, body_notify },
	{ __NR_unshare, body_notify },
	{ __NR_setns, body_notify },
	{ __NR_capset, body_notify },
	{ NR_LANDLOCK_RESTRICT_SELF, body_notify },
	{ NR_LSM_SET_SELF_ATTR, body_notify },
	{ __NR_prctl, body_prctl },
	{ __NR_seccomp, body_seccomp },
	{ __NR_ioctl, body_ioctl },
	PVAS_OLD_CALL({ __NR_arch_prctl, body_arch_prctl },)
};

#define NR_LISTED (sizeof(listed) / sizeof(listed[0]))
#define COMPARED 4

struct entry {
	unsigned int nr;
	unsigned int label;
};

/* ---- assembly ---- */

/* One after the other */
static void compare(struct program *p, const struct entry *entries, unsigned int n)
{
	unsigned int i, other;

	for (i = 0; i < n; i++) {
		/* A body can be out of reach of a conditional jump. */
		other = new_label(p);
		jump(p, BPF_JEQ | BPF_K, entries[i].nr, NEXT, other);
		go(p, entries[i].label);
		bind(p, other);
	}
	go(p, ALLOW);
}

/* The kernel tries all numbers when it installs the filter, so none should take long. */
static void search(struct program *p, const struct entry *entries, unsigned int n)
{
	unsigned int upper, lower;

	if (n <= COMPARED) {
		compare(p, entries, n);
		return;
	}
	upper = new_label(p);
	lower = new_label(p);
	jump(p, BPF_JGE | BPF_K, entries[n / 2].nr, NEXT, lower);
	go(p, upper);
	bind(p, lower);
	search(p, entries, n / 2);
	bind(p, upper);
	search(p, entries + n / 2, n - n / 2);
}

static int by_number(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->nr > y->nr) - (x->nr < y->nr);
}

/* The accumulator has the system call number. */
static void dispatch(struct program *p)
{
	struct entry entries[NR_LISTED];
	unsigned int labels[NR_LISTED], i;

	for (i = 0; i < NR_LISTED; i++) {
		/* cppcheck-suppress uninitvar ; the one before is filled */
		labels[i] = i && listed[i].body == listed[i - 1].body ? labels[i - 1]
								      : new_label(p);
		entries[i] = (struct entry){ listed[i].nr, labels[i] };
	}
	qsort(entries, NR_LISTED, sizeof(*entries), by_number);
	search(p, entries, NR_LISTED);
	for (i = 0; i < NR_LISTED; i++) {
		if (i && labels[i] == labels[i - 1])
			continue;
		bind(p, labels[i]);
		listed[i].body(p);
		/* In reach of the body's conditional jumps */
		go(p, ALLOW);
		go(p, NOTIFY);
	}
}

/* Tasks may not use i386 calls, which can't name their addresses, nor x32's own. */
void user_filter_assemble(struct program *p, const struct user_far *far)
{
	unsigned int native = new_label(p), known = new_label(p);
	unsigned int i386 = new_label(p), x32 = new_label(p);

	load(p, offsetof(struct seccomp_data, arch));
	jump(p, BPF_JEQ | BPF_K, PVAS_AUDIT_ARCH, native, NEXT);
	user_filter_check_caller(p, i386);
	go(p, EPERM_END);
	bind(p, i386);
	other_table(p, PVAS_NR_SECCOMP_32, PVAS_NR_PRCTL_32);
	bind(p, native);
	load(p, offsetof(struct seccomp_data, nr));
	jump(p, BPF_JGE | BPF_K, X32_BIT, NEXT, known);
	user_filter_check_caller(p, x32);
	go(p, ENOSYS_END);
	bind(p, x32);
	other_table(p, X32_BIT | __NR_seccomp, X32_BIT | __NR_prctl);
	bind(p, known);
	if (far)
		user_filter_far(p, far);
	dispatch(p);
}
