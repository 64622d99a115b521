// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the handler of the signal by which a worker reaches a thread of a task: see
 * stay.h.
 *
 * Each partition has a few instructions behind its loader, which call the handler with the
 * partition, as they lie in it. So it also knows that in a fork child, whose memory is a copy.
 */
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "loader/blob.h"
#include "rawsys.h"
#include "stay.h"
#include "worker.h"

#define SA_RESTORER_FLAG 0x04000000UL

/* Before the thread pointer is the launcher's, there may be none. */
#if defined(__SSP__) || defined(__SSP_STRONG__) || defined(__SSP_ALL__)
#error "this file needs -fno-stack-protector"
#endif

void user_stay_return(void);
void user_stay_call(struct user_stay *e, uint64_t stack, void (*function)(struct user_stay *));
void user_stay_signal(int sig, siginfo_t *info, ucontext_t *frame, struct user_part *p);

/* ---- to install it ---- */

void user_stay_make_thunk(unsigned char *code, const struct user_space *u)
{
	pvas_make_thunk(code, (uint64_t)user_stay_signal, (uint64_t)u->parts, sizeof(*u->parts),
			u->space->shift);
}

void user_stay_catch(struct user_part *p)
{
	struct user_action act = {
		.handler = user_thunk_of(p),
		.flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_RESTORER_FLAG,
		.restorer = (uint64_t)user_stay_return, .mask = ~0ULL,
	};

	memset(&p->page->action, 0, sizeof(p->page->action));
	p->page->ignores = 0;
	pvas_raw4(__NR_rt_sigaction, USER_STAY_SIGNAL, &act, NULL, 8);
}

/* ---- not for us ---- */

/* Die of it, when the handler has returned. */
static void die_of(int sig)
{
	const struct user_action none = { 0 };

	pvas_raw4(__NR_rt_sigaction, sig, &none, NULL, 8);
	pvas_raw3(__NR_tgkill, pvas_raw0(__NR_getpid), pvas_raw0(__NR_gettid), sig);
}

static void pass_on(int sig, siginfo_t *info, void *frame, const struct user_part *p)
{
	const struct user_action act = p->page->action;

	if (act.handler == (uint64_t)SIG_DFL)
		die_of(sig);
	else if (act.handler != (uint64_t)SIG_IGN)
		((void (*)(int, siginfo_t *, void *))act.handler)(sig, info, frame);
}

/* ---- an execve() ---- */

/*
 * The call is the next thing that the thread will do, unless handlers of other signals come
 * first: then it is made again after them.
 */
static struct user_stay *claim(struct user_part *p, const ucontext_t *frame)
{
	pid_t tid = (pid_t)pvas_raw0(__NR_gettid);
	struct user_stay *e;

	if (!__atomic_compare_exchange_n(&p->armed, &tid, 0, 0, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return NULL;
	e = p->stay;
	if (PVAS_CONTEXT_IP(frame) != e->again ||
	    PVAS_CONTEXT_NR(frame) != e->nr) {
		__atomic_store_n(&e->state, STAY_PUT_OFF, __ATOMIC_RELEASE);
		return NULL;
	}
	memcpy(&e->mask, &frame->uc_sigmask, sizeof(e->mask));
	return e;
}

/*
 * Another thread's execve() may go on, and end this one by the same signal. Until then, or until
 * it has failed, the call of this one is made again and again.
 */
static void wait_for_other(void)
{
	const uint64_t set = 1UL << (USER_STAY_SIGNAL - 1);
	const struct timespec t = { 0, 1000000 };

	pvas_raw4(__NR_rt_sigprocmask, SIG_UNBLOCK, &set, NULL, 8);
	pvas_raw2(__NR_nanosleep, &t, NULL);
	pvas_raw4(__NR_rt_sigprocmask, SIG_BLOCK, &set, NULL, 8);
}

static void run(struct user_stay *e, int leader, void (*function)(struct user_stay *))
{
	uint64_t *tls = e->tls[leader];

	e->thread_pointers[leader] = pvas_get_thread_base();
	tls[0] = (uint64_t)tls;
	pvas_set_thread_base((uint64_t)tls);
	user_stay_call(e, e->stacks[leader], function);
	pvas_set_thread_base(e->thread_pointers[leader]);
}

static int is_task(const struct user_part *p)
{
	return __atomic_load_n(&p->pid, __ATOMIC_ACQUIRE) == pvas_raw0(__NR_getpid);
}

/* Is that what the thread will do next? */
static int is_execve(const ucontext_t *frame)
{
	long nr = PVAS_CONTEXT_NR(frame);

	return nr == __NR_execve || nr == __NR_execveat;
}

/* Sent by a worker, or by user_stay_park_others()? */
static int is_ours(const siginfo_t *info, const struct user_part *p)
{
	if (info->si_code == SI_TKILL)
		return info->si_pid == pvas_raw0(__NR_getppid);
	return info->si_code == SI_QUEUE && info->si_value.sival_ptr == p;
}

/* Another thread's execve() wants this one to wait, or the first one to go on with it. */
static void answer(const ucontext_t *frame, struct user_part *p)
{
	struct user_stay *e;

	user_stay_park(p);
	e = user_stay_take_over(p);
	if (e) {
		run(e, 1, user_stay_lead);
		user_stay_give_back(p);
	} else if (is_execve(frame)) {
		wait_for_other();
	}
}

void user_stay_signal(int sig, siginfo_t *info, ucontext_t *frame, struct user_part *p)
{
	struct user_stay *e;

	if (!is_task(p)) {
		pass_on(sig, info, frame, p);
		return;
	}
	e = claim(p, frame);
	if (e) {
		run(e, 0, user_stay_main);
		user_stay_release_others(p);
		/* From now on a worker may free it. */
		__atomic_store_n(&e->state, STAY_REFUSED, __ATOMIC_RELEASE);
	} else if (!is_ours(info, p)) {
		pass_on(sig, info, frame, p);
	} else {
		answer(frame, p);
	}
}
