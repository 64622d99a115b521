// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: an execve() that stays in the space, by another thread than the first.
 *
 * The process is left with the id of the first thread, and only that can go on with it. So the
 * caller, when it has checked all, and the first thread waits in the handler, has that go on, and
 * ends itself. Both need to have the same settings.
 */
#include <linux/keyctl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#include "rawsys.h"
#include "stay.h"

#define WAIT_MS		1000	/* the first thread may be in a call that lasts */
#define TAKING		(-1)	/* user_part.handed while the first thread looks at it */

/* Its network and UTS namespaces; the others are those of all tasks. */
static void describe_spaces(struct user_stay_thread *t)
{
	static const char *const names[] = { "thread-self/ns/net", "thread-self/ns/uts" };
	struct user_proc_dir proc = user_program_proc(0);
	struct stat st;
	int i;

	for (i = 0; i < 2; i++)
		if (!pvas_raw4(__NR_newfstatat, proc.fd, names[i], &st, 0))
			t->spaces[i] = st.st_ino;
	user_program_close_proc(&proc);
}

static void describe_processor(struct user_stay_thread *t)
{
	t->personality = pvas_raw1(__NR_personality, ~0U);
	t->l1d_flush = pvas_raw2(__NR_prctl, PR_GET_SPECULATION_CTRL, PR_SPEC_L1D_FLUSH);
	t->cpuid = pvas_get_cpuid();
	pvas_raw2(__NR_prctl, PR_GET_TSC, &t->tsc);
	t->machine_check = pvas_raw6(__NR_prctl, PR_MCE_KILL_GET, 0, 0, 0, 0, 0);
	t->io_flusher = pvas_raw6(__NR_prctl, PR_GET_IO_FLUSHER, 0, 0, 0, 0, 0);
	pvas_raw6(__NR_prctl, PR_SCHED_CORE, PR_SCHED_CORE_GET, 0, PR_SCHED_CORE_SCOPE_THREAD,
		  (long)&t->core_cookie, 0);
}

/* Of the calling thread. Settings that can't be asked here are taken to be as in others. */
static void describe(struct user_stay_thread *t)
{
	memset(t, 0, sizeof(*t));
	pvas_raw4(__NR_sched_getattr, 0, t->scheduling, sizeof(t->scheduling), 0);
	pvas_raw3(__NR_sched_getaffinity, 0, sizeof(t->affinity), t->affinity);
	pvas_raw6(__NR_get_mempolicy, (long)&t->policy, (long)t->nodes, 8 * sizeof(t->nodes), 0, 0,
		  0);
	t->io_priority = pvas_raw2(__NR_ioprio_get, IOPRIO_WHO_PROCESS, 0);
	t->timer_slack = pvas_raw1(__NR_prctl, PR_GET_TIMERSLACK);
	t->securebits = pvas_raw2(__NR_prctl, PR_GET_SECUREBITS, 0);
	t->session_keyring = pvas_raw3(__NR_keyctl, KEYCTL_GET_KEYRING_ID,
				       KEY_SPEC_SESSION_KEYRING, 0);
	t->nr_groups = pvas_raw2(__NR_getgroups, 0, NULL);
	describe_processor(t);
	describe_spaces(t);
}

static void wait_a_moment(void)
{
	const struct timespec t = { 0, 1000000 };

	pvas_raw2(__NR_nanosleep, &t, NULL);
}

/* Until the first thread has come, or does not come. */
void user_stay_hand_over(struct user_stay *e)
{
	struct user_part *p = e->part;
	pid_t expected = e->tid;
	int ms;

	describe(&e->thread);
	__atomic_store_n(&p->handed, e->tid, __ATOMIC_RELEASE);
	for (ms = 0; ms < WAIT_MS && __atomic_load_n(&p->handed, __ATOMIC_ACQUIRE); ms++)
		wait_a_moment();
	if (__atomic_compare_exchange_n(&p->handed, &expected, 0, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		return;
	while (__atomic_load_n(&p->handed, __ATOMIC_ACQUIRE))
		wait_a_moment();
	while (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == STAY_TAKEN)
		pvas_raw1(__NR_exit, 0);
}

struct user_stay *user_stay_take_over(struct user_part *p)
{
	pid_t tid = __atomic_load_n(&p->handed, __ATOMIC_ACQUIRE);

	if (tid <= 0 || p->pid != pvas_raw0(__NR_gettid) ||
	    !__atomic_compare_exchange_n(&p->handed, &tid, TAKING, 0, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return NULL;
	return p->stay;
}

void user_stay_give_back(struct user_part *p)
{
	__atomic_store_n(&p->handed, 0, __ATOMIC_RELEASE);
}

/*
 * A worker compares rights, descriptors and directories. The rseq area is gone even if the
 * execve() fails; glibc then asks the kernel instead.
 */
static int is_alike(const struct user_stay *e)
{
	struct user_stay_thread own;

	describe(&own);
	memcpy(own.affinity, e->thread.affinity, sizeof(own.affinity));
	return !memcmp(&own, &e->thread, sizeof(own)) && user_stay_is_ready(e, 1);
}

void user_stay_lead(struct user_stay *e)
{
	if (!is_alike(e) || user_stay_needs_kernel() || !user_stay_ask(e))
		return;
	__atomic_store_n(&e->state, STAY_TAKEN, __ATOMIC_RELEASE);
	user_stay_give_back(e->part);
	pvas_raw3(__NR_sched_setaffinity, 0, sizeof(e->thread.affinity), e->thread.affinity);
	user_stay_commit(e);
}
