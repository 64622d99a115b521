// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the execve() of a task that stays in its space, in the task: see stay.h.
 *
 * First all that can fail. Then the steps of an execve(), in an order in which the
 * process is never left with what the kernel would use of the old program.
 */
#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "child.h"
#include "loader/blob.h"
#include "rawsys.h"
#include "rseq.h"
#include "stay.h"
#include "worker.h"

#define NR_SIGNALS	64
#define ROBUST_MAX	2048	/* ROBUST_LIST_LIMIT */
#define RSEQ_BELOW	(64L << 10)	/* where a thread's rseq area is, as seen from %fs */
#define RSEQ_ABOVE	(8L << 10)
#define RSEQ_ALIGN	32
#define SLICE_MIN	(64UL << 20)

#define STRING_(x)	#x
#define STRING(x)	STRING_(x)

/* The system call has clobbered %rcx and %r11, and %rax has its result. */
__asm__(".text\n\t"
	".hidden user_stay_entry\n\t"
	".globl user_stay_entry\n\t"
	".type user_stay_entry, @function\n"
	"user_stay_entry:\n\t"
	"movq %rbx, 0(%rcx)\n\t"
	"movq %rbp, 8(%rcx)\n\t"
	"movq %rsp, 16(%rcx)\n\t"
	"movq %r12, 24(%rcx)\n\t"
	"movq %r13, 32(%rcx)\n\t"
	"movq %r14, 40(%rcx)\n\t"
	"movq %r15, 48(%rcx)\n\t"
	"movq %rdi, 56(%rcx)\n\t"
	"movq %rsi, 64(%rcx)\n\t"
	"movq %rdx, 72(%rcx)\n\t"
	"movq %r10, 80(%rcx)\n\t"
	"movq %r8, 88(%rcx)\n\t"
	"movq %r9, 96(%rcx)\n\t"
	"movq " STRING(STAY_STACK) "(%rcx), %rsp\n\t"
	"movq %rcx, %rbx\n\t"
	"movq %rcx, %rdi\n\t"
	"xorl %ebp, %ebp\n\t"
	"cld\n\t"
	"call user_stay_main\n\t"
	"movq %rbx, %rcx\n\t"
	"movq 0(%rcx), %rbx\n\t"
	"movq 8(%rcx), %rbp\n\t"
	"movq 16(%rcx), %rsp\n\t"
	"movq 24(%rcx), %r12\n\t"
	"movq 32(%rcx), %r13\n\t"
	"movq 40(%rcx), %r14\n\t"
	"movq 48(%rcx), %r15\n\t"
	"movq 56(%rcx), %rdi\n\t"
	"movq 64(%rcx), %rsi\n\t"
	"movq 72(%rcx), %rdx\n\t"
	"movq 80(%rcx), %r10\n\t"
	"movq 88(%rcx), %r8\n\t"
	"movq 96(%rcx), %r9\n\t"
	"movq " STRING(STAY_NR) "(%rcx), %rax\n\t"
	"jmpq *" STRING(STAY_AGAIN) "(%rcx)\n\t"
	".size user_stay_entry, . - user_stay_entry\n");

_Static_assert(offsetof(struct user_stay, stack) == STAY_STACK, "for the assembler");
_Static_assert(offsetof(struct user_stay, again) == STAY_AGAIN, "for the assembler");
_Static_assert(offsetof(struct user_stay, nr) == STAY_NR, "for the assembler");

/* ---- before the point of no return ---- */

static int fits(const struct user_part *p, const struct user_program *prog)
{
	struct pvas_layout_random zero;
	struct pvas_layout l;

	memset(&zero, 0, sizeof(zero));
	return !pvas_layout(&l, p->base, p->end - p->base, &prog->image, RLIM_INFINITY, &zero);
}

static int rseq(char *at, unsigned int len, int flags)
{
	return (int)pvas_raw4(__NR_rseq, at, len, flags, PVAS_RSEQ_SIGNATURE);
}

/* The kernel tells neither address nor length of what is registered: try all. */
static void search_rseq(char *thread)
{
	unsigned int len;
	char *at;

	if (&__rseq_offset && !rseq(thread + __rseq_offset, 32, PVAS_RSEQ_UNREGISTER))
		return;
	for (len = 32; len <= 64; len += 32)
		for (at = thread - RSEQ_BELOW; at < thread + RSEQ_ABOVE; at += RSEQ_ALIGN)
			if (!rseq(at, len, PVAS_RSEQ_UNREGISTER))
				return;
}

/* The kernel kills a process if it can't write to its registered area. */
static int forget_rseq(void)
{
	static char area[256] __attribute__((aligned(RSEQ_ALIGN)));
	uint64_t thread = 0;
	int err;

	pvas_raw2(__NR_arch_prctl, ARCH_GET_FS, &thread);
	search_rseq((char *)(thread & ~(uint64_t)(RSEQ_ALIGN - 1)));
	/* Only a thread without one can register this. */
	err = rseq(area, 32, 0);
	if (!err)
		rseq(area, 32, PVAS_RSEQ_UNREGISTER);
	return !err || err == -ENOSYS;
}

static int may_stay(const struct user_start *s, struct user_program *prog)
{
	int err;

	prog->fd = -1;
	err = user_program_open(prog, s->call->path);
	if (!err && fits(s->part, prog) && !user_stack_check(s, prog) &&
	    user_stay_may_end_threads() && forget_rseq())
		return 1;
	if (prog->fd >= 0)
		pvas_raw1(__NR_close, prog->fd);
	return 0;
}

/* ---- afterwards: as an execve() ---- */

static void __attribute__((noreturn)) die(void)
{
	for (;;)
		pvas_raw2(__NR_kill, pvas_raw0(__NR_getpid), SIGKILL);
}

/* Those that are ignored stay so. The kernel's structure, with the mask at its end */
static void reset_signals(void)
{
	const stack_t none = { .ss_flags = SS_DISABLE };
	uint64_t act[4];
	int sig;

	for (sig = 1; sig <= NR_SIGNALS; sig++) {
		if (pvas_raw4(__NR_rt_sigaction, sig, NULL, act, 8))
			continue;
		if (act[0] != (uint64_t)SIG_IGN)
			act[0] = (uint64_t)SIG_DFL;
		act[1] = act[2] = act[3] = 0;
		pvas_raw4(__NR_rt_sigaction, sig, act, NULL, 8);
	}
	pvas_raw2(__NR_sigaltstack, &none, NULL);
}

/* Without /proc/self/timers the kernel's first numbers are tried. */
static void delete_timers(void)
{
	char text[4096], *line;
	int proc = user_program_proc(), id;
	long fd, n = 0;

	fd = pvas_raw4(__NR_openat, proc, "self/timers", O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0) {
		for (id = 0; id < 256; id++)
			pvas_raw1(__NR_timer_delete, id);
		return;
	}
	do {
		n = pvas_raw_pread((int)fd, text, sizeof(text) - 1, 0);
		text[n < 0 ? 0 : n] = 0;
		line = text;
		id = -1;
		while ((line = strstr(line, "ID: ")) && strchr(line, '\n')) {
			for (id = 0, line += 4; *line >= '0' && *line <= '9'; line++)
				id = id * 10 + *line - '0';
			pvas_raw1(__NR_timer_delete, id);
		}
	} while (n == sizeof(text) - 1 && id >= 0);
	pvas_raw1(__NR_close, fd);
}

/* A robust mutex in memory of others, that the task holds: its owner has died. */
static void give_up(uint32_t *word)
{
	const uint32_t tid = (uint32_t)pvas_raw0(__NR_gettid);
	uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	while ((old & FUTEX_TID_MASK) == tid)
		if (__atomic_compare_exchange_n(word, &old, (old & FUTEX_WAITERS) | FUTEX_OWNER_DIED,
						0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
			if (old & FUTEX_WAITERS)
				pvas_raw3(__NR_futex, word, FUTEX_WAKE, 1);
			return;
		}
}

/* As the kernel does, which trusts the list no more than that. Bit 0: priority inheritance */
static void end_robust_list(void)
{
	struct robust_list_head *head = NULL;
	struct robust_list *at;
	size_t len = 0;
	int i;

	if (pvas_raw3(__NR_get_robust_list, 0, &head, &len) || !head)
		return;
	at = (struct robust_list *)((uint64_t)head->list.next & ~1UL);
	for (i = 0; i < ROBUST_MAX && at && at != &head->list; i++) {
		give_up((uint32_t *)((char *)at + head->futex_offset));
		at = (struct robust_list *)((uint64_t)at->next & ~1UL);
	}
	pvas_raw2(__NR_set_robust_list, NULL, sizeof(*head));
}

/* In slices, between which others can map: see reclaim.c. */
static void unmap_partition(const struct user_part *p)
{
	uint64_t step = (p->end - p->base) >> 10, at;

	if (step < SLICE_MIN)
		step = SLICE_MIN;
	for (at = p->base; at < p->end; at += step)
		pvas_raw2(__NR_munmap, at, step);
	/* Huge pages can only be unmapped whole. */
	if (pvas_raw2(__NR_munmap, p->base, p->end - p->base))
		die();
}

static void __attribute__((noreturn))
become(const struct user_stay *e, const struct user_start *s, const struct user_program *prog)
{
	struct user_part *p = e->part;
	uint64_t sp, info;

	unmap_partition(p);
	if (user_child_make_memory(s, prog, &sp, &info))
		die();
	user_publish(e->u, p, PVAS_PART_RUNNING);
	user_child_jump(sp, info, user_loader_of(p) + PVAS_BLOB_TASK, &p->start, e->mask);
}

/*
 * The thread pointer changes, so this can't return, nor check the canary of its caller.
 * Peers see the partition end and be taken again.
 */
static void __attribute__((noreturn, noinline))
commit(struct user_stay *e, const struct user_start *s, const struct user_program *prog)
{
	if (!user_stay_end_threads())
		die();
	reset_signals();
	delete_timers();
	end_robust_list();
	pvas_raw1(__NR_set_tid_address, 0);
	pvas_raw2(__NR_prctl, PR_SET_KEEPCAPS, 0);
	pvas_raw1(__NR_unshare, CLONE_FILES);
	user_child_close_on_exec(prog->fd);
	user_child_take_name(e->path);
	user_publish(e->u, e->part, PVAS_PART_ENDING);
	__atomic_add_fetch(&e->part->gen, 1, __ATOMIC_RELAXED);
	e->tls[0] = e->tls;
	pvas_raw2(__NR_arch_prctl, ARCH_SET_FS, e->tls);
	pvas_raw2(__NR_arch_prctl, ARCH_SET_GS, 0);
	become(e, s, prog);
}

void user_stay_main(struct user_stay *e)
{
	struct pvas_spawn_call call = {
		.space = e->u->space, .path = e->path, .argv = e->argv, .envp = e->envp,
	};
	const struct user_start s = { .u = e->u, .part = e->part, .call = &call };
	const uint64_t all = ~0ULL;
	struct user_program prog;

	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &e->mask, 8);
	user_stay_disarm(e);
	if (may_stay(&s, &prog))
		commit(e, &s, &prog);
	__atomic_store_n(&e->part->leaving, 1, __ATOMIC_RELEASE);
	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &e->mask, NULL, 8);
}
