// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the execve() of a task that stays in its space, in the task: see stay.h.
 *
 * First all that can fail. Then the steps of an execve(), in an order in which the
 * process is never left with what the kernel would use of the old program.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "child.h"
#include "loader/blob.h"
#include "rawsys.h"
#include "rseq.h"
#include "stay.h"
#include "worker.h"

#define RSEQ_BELOW	(64L << 10)	/* where a thread's rseq area is, as seen from %fs */
#define RSEQ_ABOVE	(8L << 10)
#define RSEQ_ALIGN	32
#define SLICE_MIN	(64UL << 20)

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
static int forget_rseq(uint64_t thread_pointer)
{
	static char area[256] __attribute__((aligned(RSEQ_ALIGN)));
	int err;

	search_rseq((char *)(thread_pointer & ~(uint64_t)(RSEQ_ALIGN - 1)));
	/* Only a thread without one can register this. */
	err = rseq(area, 32, 0);
	if (!err)
		rseq(area, 32, PVAS_RSEQ_UNREGISTER);
	return !err || err == -ENOSYS;
}

/*
 * The kernel releases mutexes with priority inheritance, which a task can't do: the next owner
 * would not know that this one has died.
 */
int user_stay_is_ready(const struct user_stay *e, int leader)
{
	return (e->tid != e->part->pid && !leader) ||
	       (!user_stay_inherits_priority() && forget_rseq(e->thread_pointers[leader]));
}

/* The interpreter of a script gets a name that will lead nowhere. */
static int loses_script(const struct user_stay *e)
{
	return e->prog.depth && e->dirfd != AT_FDCWD &&
	       (pvas_raw2(__NR_fcntl, e->dirfd, F_GETFD) & FD_CLOEXEC);
}

/* A call of the partition's code, which the filter passes to a worker: see check_stop() there */
void user_stay_make_call(uint64_t cookie, uint64_t code);

/* A filter that has arrived meanwhile can make the call return anything, but not store this. */
int user_stay_ask(struct user_stay *e)
{
	e->asks = STAY_ASKS_RIGHTS;
	user_stay_make_call(e->u->cookie, user_thunk_of(e->part) + PVAS_THUNK_CALL);
	return __atomic_load_n(&e->confirmed, __ATOMIC_ACQUIRE);
}

int user_stay_ask_for_others(struct user_stay *e)
{
	e->others = -EPERM;
	e->asks = STAY_ASKS_OTHERS;
	user_stay_make_call(e->u->cookie, user_thunk_of(e->part) + PVAS_THUNK_CALL);
	return __atomic_load_n(&e->others, __ATOMIC_ACQUIRE);
}

void user_stay_ask_for_turn(struct user_stay *e)
{
	e->asks = STAY_ASKS_TURN;
	user_stay_make_call(e->u->cookie, user_thunk_of(e->part) + PVAS_THUNK_CALL);
}

/* Has a security module been asked for a label at the next execve(), or until then? */
static int is_label_set(int proc, const char *name)
{
	char text[64];
	long fd = pvas_raw4(__NR_openat, proc, name, O_RDONLY | O_CLOEXEC, 0), n;

	if (fd < 0)
		return fd != -ENOENT;
	n = pvas_raw_pread((int)fd, text, sizeof(text), 0);
	pvas_raw1(__NR_close, fd);
	/* EINVAL: no module has such a thing, or none is set */
	return n < 0 ? n != -EINVAL : n > 0 && text[0] && text[0] != '\n';
}

static int has_labels(void)
{
	static const char *const names[] = {
		"thread-self/attr/exec", "thread-self/attr/apparmor/exec",
		"thread-self/attr/fscreate", "thread-self/attr/keycreate",
		"thread-self/attr/sockcreate",
	};
	struct user_proc_dir proc = user_program_proc(0);
	unsigned int i;
	int set = 0;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !set; i++)
		set = is_label_set(proc.fd, names[i]);
	user_program_close_proc(&proc);
	return set;
}

/* Those of the thread and of the process, which another program does not get */
static int has_keys(void)
{
	return pvas_raw3(__NR_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_THREAD_KEYRING, 0) > 0 ||
	       pvas_raw3(__NR_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 0) > 0;
}

int user_stay_needs_kernel(void)
{
	long persona = pvas_raw1(__NR_personality, ~0U);

	return (persona >= 0 && (persona & MMAP_PAGE_ZERO)) || has_keys() || has_labels();
}

/* The others wait, or do again. */
static int open_program(struct user_stay *e)
{
	int err;

	user_stay_opens(e->part);
	user_stay_admit_signals(e->mask);
	err = user_program_open_at(&e->prog, e->dirfd, e->file, e->path);
	user_stay_block_signals();
	if (user_stay_opened(e->part))
		return err;
	return err || user_stay_park_others(e) ? err : -EAGAIN;
}

static int may_stay(struct user_stay *e, const struct user_start *s)
{
	int err;

	e->prog.fd = -1;
	/* The only one that an execve() clears is cleared in user_stay_commit(). */
	if ((pvas_raw2(__NR_prctl, PR_GET_SECUREBITS, 0) & ~(long)SECBIT_KEEP_CAPS) !=
	    (e->securebits & ~(long)SECBIT_KEEP_CAPS))
		return 0;
	user_stay_admit_signals(e->mask);
	err = user_program_look_at(e->dirfd, e->file);
	user_stay_block_signals();
	/* A fork of another thread would copy what is opened from now on. */
	if (err || !user_stay_park_others(e) || user_stay_needs_kernel())
		return 0;
	if (!open_program(e) && fits(s->part, &e->prog) && !loses_script(e) &&
	    !user_stack_check(s, &e->prog) && user_stay_is_ready(e, 0) &&
	    (e->tid != e->part->pid || user_stay_ask(e)))
		return 1;
	if (e->prog.fd >= 0)
		pvas_raw1(__NR_close, e->prog.fd);
	return 0;
}

/* ---- afterwards: as an execve() ---- */

static void __attribute__((noreturn)) die(void)
{
	for (;;)
		pvas_raw2(__NR_kill, pvas_raw0(__NR_getpid), SIGKILL);
}

/* In slices, between which others can map: see reclaim.c. */
static void unmap(const struct user_part *p, uint64_t at, uint64_t end)
{
	uint64_t step = (p->end - p->base) >> 10;

	if (step < SLICE_MIN)
		step = SLICE_MIN;
	for (; at < end; at += step)
		pvas_raw2(__NR_munmap, at, end - at < step ? end - at : step);
}

/* Last of all the instructions that ask for the turn: then all maps at once. */
static void unmap_partition(struct user_stay *e)
{
	const struct user_part *p = e->part;
	uint64_t loader = PAGE_DOWN(user_loader_of(p));

	unmap(p, p->base, loader);
	unmap(p, loader + USER_IMAGE_LEN, p->end);
	user_stay_ask_for_turn(e);
	/* Huge pages can only be unmapped whole. */
	if (pvas_raw2(__NR_munmap, p->base, p->end - p->base))
		die();
}

static struct user_start start_of(const struct user_stay *e)
{
	return (struct user_start){ .u = e->u, .part = e->part, .call = (void *)&e->call };
}

static void __attribute__((noreturn)) become(struct user_stay *e)
{
	const struct user_start s = start_of(e);
	struct user_part *p = e->part;
	struct user_entry entry;

	unmap_partition(e);
	if (user_child_make_memory(&s, &e->prog, &entry))
		die();
	user_publish(e->u, p, PVAS_PART_RUNNING);
	/* A worker may free it when the new program makes a call. */
	__atomic_store_n(&e->state, STAY_DONE, __ATOMIC_RELEASE);
	user_child_jump(&entry, &p->start, e->mask);
}

static void reset_processor(void)
{
	long speculation = pvas_raw2(__NR_prctl, PR_GET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS);

	if (speculation > 0 && (speculation & PR_SPEC_DISABLE_NOEXEC))
		pvas_raw3(__NR_prctl, PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS,
			  PR_SPEC_ENABLE);
	if (!pvas_get_cpuid())
		pvas_permit_cpuid();
}

/* Of all its bits the one that the kernel clears for a program of this architecture */
static void clear_personality(void)
{
	long persona = pvas_raw1(__NR_personality, ~0U);

	if (persona >= 0 && (persona & READ_IMPLIES_EXEC))
		pvas_raw1(__NR_personality, persona & ~(long)READ_IMPLIES_EXEC);
}

/* Peers see the partition end and be taken again. */
void user_stay_commit(struct user_stay *e)
{
	user_stay_end_others(e->part);
	user_stay_reset_signals();
	user_stay_give_up_locks();
	pvas_raw1(__NR_set_tid_address, 0);
	pvas_raw2(__NR_prctl, PR_SET_KEEPCAPS, 0);
	clear_personality();
	reset_processor();
	pvas_raw6(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0, 0);
	/* Containers that forbid the first permit the second. */
	if (pvas_raw1(__NR_unshare, CLONE_FILES))
		pvas_raw3(__NR_close_range, ~0U, ~0U, CLOSE_RANGE_UNSHARE);
	user_child_close_on_exec(e->prog.fd, NULL);
	user_child_take_name(e->path);
	user_publish(e->u, e->part, PVAS_PART_ENDING);
	__atomic_add_fetch(&e->part->gen, 1, __ATOMIC_RELAXED);
	pvas_clear_other_bases();
	become(e);
}

/* In the handler: all signals are blocked. */
void user_stay_main(struct user_stay *e)
{
	const struct user_start s = start_of(e);

	e->call = (struct pvas_spawn_call){
		.space = e->u->space, .path = e->path, .argv = e->argv, .envp = e->envp,
	};
	if (!may_stay(e, &s))
		return;
	if (e->tid == e->part->pid)
		user_stay_commit(e);
	user_stay_hand_over(e);
	pvas_raw1(__NR_close, e->prog.fd);
}
