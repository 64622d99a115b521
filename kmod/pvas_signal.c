// SPDX-License-Identifier: GPL-2.0-only
/*
 * Signals to a process that looks like a kernel thread, which it does while pvas_switch_mm()
 * changes its mm. The kernel queues nothing for such a thread: it would lose the siginfo, and all
 * but one of several signals with the same number. So these are held, and sent when the process
 * looks like one of a user's again.
 *
 * The holder of siglock sees the process in one of the two states, as the flag changes under that
 * lock. A process that changes its mm has one thread, whose membership nobody else can end.
 */
#include <linux/cred.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>
#include <linux/signal.h>
#include <linux/slab.h>
#include <linux/static_call.h>
#include <linux/user_namespace.h>

#include "pvas.h"
#include "pvas_exec.h"
#include "pvas_hook.h"
#include "pvas_member.h"

/* The arguments of __send_signal_locked(), but for the process. */
struct pvas_signal {
	struct list_head node;
	struct kernel_siginfo info;
	enum pid_type type;
	bool by_kernel;
	bool force;
};

/* Not exported: as those of pvas_event.c. */
static int pvas_send_prototype(int sig, struct kernel_siginfo *info, struct task_struct *t,
			       enum pid_type type, bool force)
{
	return -ENOSYS;
}

DEFINE_STATIC_CALL(pvas_send, pvas_send_prototype);

/* ---- for those who send, under the siglock of the process ---- */

static bool pvas_signal_is_special(const struct kernel_siginfo *info)
{
	return info == SEND_SIG_NOINFO || info == SEND_SIG_PRIV;
}

/* Is it one that must be queued, or else fail? */
static bool pvas_signal_may_fail(int sig, const struct kernel_siginfo *info)
{
	return sig >= SIGRTMIN && !pvas_signal_is_special(info) && info->si_code != SI_USER;
}

/* A stop and a continuation take each other back, whichever comes later. */
static void pvas_signals_take_back(struct list_head *held, int sig)
{
	struct pvas_signal *s, *next;
	int other;

	list_for_each_entry_safe(s, next, held, node) {
		other = s->info.si_signo;
		if (sig == SIGCONT ? sig_kernel_stop(other) :
				     sig_kernel_stop(sig) && other == SIGCONT) {
			list_del(&s->node);
			kfree(s);
		}
	}
}

/* Of the signals below SIGRTMIN, one each is queued for the process and for the thread. */
static bool pvas_signal_is_held(const struct list_head *held, int sig, enum pid_type type)
{
	struct pvas_signal *s;

	if (sig >= SIGRTMIN)
		return false;
	list_for_each_entry(s, held, node)
		if (s->info.si_signo == sig &&
		    (s->type == PIDTYPE_PID) == (type == PIDTYPE_PID))
			return true;
	return false;
}

/* As the kernel, which counts all signals that are queued for one user. */
static bool pvas_signal_has_room(const struct list_head *held, int sig,
				 const struct kernel_siginfo *info, struct task_struct *t)
{
	unsigned long n = 1;
	struct list_head *at;

	if (sig < SIGRTMIN && (pvas_signal_is_special(info) || info->si_code >= 0))
		return true;
	list_for_each(at, held)
		n++;
	rcu_read_lock();
	n += pvas_queued_signals(t);
	rcu_read_unlock();
	return n <= task_rlimit(t, RLIMIT_SIGPENDING);
}

static void pvas_signal_fill(struct pvas_signal *s, int sig, const struct kernel_siginfo *info,
			     struct task_struct *t)
{
	clear_siginfo(&s->info);
	s->by_kernel = info == SEND_SIG_PRIV;
	if (!pvas_signal_is_special(info)) {
		copy_siginfo(&s->info, info);
	} else if (info == SEND_SIG_NOINFO) {
		s->info.si_code = SI_USER;
		s->info.si_pid = task_tgid_nr_ns(current, task_active_pid_ns(t));
		rcu_read_lock();
		s->info.si_uid = from_kuid_munged(task_cred_xxx(t, user_ns), current_uid());
		rcu_read_unlock();
	}
	s->info.si_signo = sig;
}

/* As the kernel if it has no memory: the signal without its siginfo. */
static int pvas_signal_pass(struct pvas_member *m, int sig, struct kernel_siginfo *info,
			    struct task_struct *t, enum pid_type type, bool force)
{
	int err;

	if (pvas_signal_may_fail(sig, info))
		return -EAGAIN;
	/* The hook lets it through. */
	m->switching = false;
	err = static_call(pvas_send)(sig, info, t, type, force);
	m->switching = true;
	return err;
}

/* In place of __send_signal_locked(). The member is there until siglock is dropped. */
static int pvas_stub_hold(int sig, struct kernel_siginfo *info, struct task_struct *t,
			  enum pid_type type, bool force)
{
	struct pvas_signal *s = NULL;
	struct pvas_member *m;

	rcu_read_lock();
	m = pvas_member_find(t->signal);
	rcu_read_unlock();
	pvas_signals_take_back(&m->held, sig);
	if (pvas_signal_is_held(&m->held, sig, type))
		return 0;
	if (pvas_signal_has_room(&m->held, sig, info, t))
		s = kmalloc(sizeof(*s), GFP_ATOMIC | __GFP_NOWARN);
	if (!s)
		return pvas_signal_pass(m, sig, info, t, type, force);
	pvas_signal_fill(s, sig, info, t);
	s->type = type;
	s->force = force;
	list_add_tail(&s->node, &m->held);
	return 0;
}

static bool notrace pvas_is_switching(const struct signal_struct *sig)
{
	struct pvas_member *m;
	bool is;

	rcu_read_lock();
	m = pvas_member_find(sig);
	is = m && m->switching;
	rcu_read_unlock();
	return is;
}

/* (sig, info, task, type, force), also in interrupts. SIGKILL has no siginfo, and must not wait. */
static void notrace pvas_on_send_signal(unsigned long ip, unsigned long parent_ip,
					struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = pvas_regs(fregs);
	struct task_struct *t = (struct task_struct *)regs->dx;

	if ((int)regs->di == SIGKILL)
		return;
	if ((READ_ONCE(t->flags) & PF_KTHREAD) && pvas_is_switching(t->signal))
		pvas_redirect(regs, pvas_stub_hold);
}

/* ---- for the process itself ---- */

static struct pvas_member *pvas_member_self(void)
{
	struct pvas_member *m;

	rcu_read_lock();
	m = pvas_member_find(current->signal);
	rcu_read_unlock();
	return m;
}

/* Makes the caller, which is a member, look like a kernel thread. */
void pvas_signals_hold(void)
{
	struct sighand_struct *sighand = rcu_dereference_protected(current->sighand, true);
	struct pvas_member *m = pvas_member_self();

	spin_lock_irq(&sighand->siglock);
	m->switching = true;
	current->flags |= PF_KTHREAD;
	spin_unlock_irq(&sighand->siglock);
}

/*
 * Others may have used up the limit meanwhile: then at least the signal arrives, as by kill().
 */
static void pvas_signal_send(struct pvas_signal *s)
{
	int sig = s->info.si_signo;
	struct kernel_siginfo *info = s->by_kernel ? SEND_SIG_PRIV : &s->info;

	if (static_call(pvas_send)(sig, info, current, s->type, s->force))
		static_call(pvas_send)(sig, SEND_SIG_NOINFO, current, s->type, s->force);
}

/* The caller is a user's again, and gets what was sent to it meanwhile. */
void pvas_signals_release(void)
{
	struct sighand_struct *sighand = rcu_dereference_protected(current->sighand, true);
	struct pvas_member *m = pvas_member_self();
	struct pvas_signal *s, *next;

	spin_lock_irq(&sighand->siglock);
	current->flags &= ~PF_KTHREAD;
	m->switching = false;
	list_for_each_entry_safe(s, next, &m->held, node) {
		pvas_signal_send(s);
		list_del(&s->node);
		kfree(s);
	}
	spin_unlock_irq(&sighand->siglock);
}

/* ---- the hook ---- */

static const char * const pvas_signal_names[] = { PVAS_FN_SEND_SIGNAL, NULL };

static struct pvas_hook pvas_signal_hook = {
	.names = pvas_signal_names,
	.ops = { .func = pvas_on_send_signal, .flags = PVAS_OPS_FLAGS | FTRACE_OPS_FL_IPMODIFY },
};

const struct pvas_hook_set pvas_signal_set = { &pvas_signal_hook, 1 };

/* The function has been found. */
void pvas_signal_init(void)
{
	static_call_update(pvas_send, (typeof(&pvas_send_prototype))pvas_signal_hook.ips[0]);
}
