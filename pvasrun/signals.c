// SPDX-License-Identifier: GPL-2.0-only
/* Receive signals, and forward them to the tasks. */
#include "signals.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "report.h"
#include "stopped.h"

/*
 * timeout(1) and others send a signal to a process and then to its group, so it arrives
 * twice. Only a second one after this time asks to kill the tasks.
 */
#define TWICE_MS 200

static const int forwarded[] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT,
};

#define NR_FORWARDED (sizeof(forwarded) / sizeof(forwarded[0]))

/*
 * pvasrun ignores these itself, and handles the failed write: a reader that has gone, a
 * file that may not grow (ulimit -f).
 */
static const int own_ignored[] = { SIGPIPE, SIGXFSZ };

static bool asks_to_end(int signo)
{
	return signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT;
}

static bool inherited_ignored(int signo)
{
	struct sigaction now;

	return !sigaction(signo, NULL, &now) && now.sa_handler == SIG_IGN;
}

static void ignore_own(sigset_t *inherited)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction before;
	size_t i;

	for (i = 0; i < sizeof(own_ignored) / sizeof(own_ignored[0]); i++)
		if (!sigaction(own_ignored[i], &ignore, &before) && before.sa_handler == SIG_IGN)
			sigaddset(inherited, own_ignored[i]);
}

/* Set up by stop_all() */
static sigjmp_buf continued;
static volatile sig_atomic_t continue_code;

static void on_continue(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	continue_code = info->si_code;
	siglongjmp(continued, 1);
}

/*
 * Stop this process, unless SIGCONT comes first: the kernel drops a pending SIGCONT when a
 * stop signal is sent, and nobody would send another. True if it came, then or later.
 */
static bool stop_self(void)
{
	const struct sigaction standard = { .sa_handler = SIG_DFL };
	struct sigaction handle = { .sa_sigaction = on_continue, .sa_flags = SA_SIGINFO };
	sigset_t both;
	bool came = false;

	sigemptyset(&both);
	sigaddset(&both, SIGTSTP);
	sigaddset(&both, SIGCONT);
	if (!sigsetjmp(continued, 1)) {
		sigaction(SIGCONT, &handle, NULL);
		sigprocmask(SIG_UNBLOCK, &both, NULL);
		raise(SIGTSTP);
		sigprocmask(SIG_BLOCK, &both, NULL);
	} else {
		came = true;
	}
	sigaction(SIGCONT, &standard, NULL);
	return came;
}

/*
 * The terminal sends its signals to the whole foreground group: a task in pvasrun's group
 * must not get them twice. But if the terminal is closed, only the leader of its session
 * gets SIGHUP and SIGCONT.
 */
static bool was_sent_to_group(int signo, int code)
{
	return code == SI_KERNEL &&
	       !((signo == SIGHUP || signo == SIGCONT) && getsid(0) == getpid());
}

#define STOP_MS	200	/* a task may handle SIGTSTP, or ignore it */

static bool continue_is_pending(void)
{
	sigset_t pending;

	return !sigpending(&pending) && sigismember(&pending, SIGCONT);
}

/* A task that waits for an answer of the user backend's can't stop until pvasrun has given it. */
static void wait_until_stopped(struct job *job)
{
	const int64_t until = now_ms() + STOP_MS;

	do {
		job_reap(job);
		if (job_is_stopped(job) || continue_is_pending())
			return;
		usleep(1000);
	} while (now_ms() < until);
}

/*
 * Stop the tasks first, for pvasrun then stops itself. Nothing stops a process group
 * whose leader's parent is of another session (ssh -t HOST pvasrun, setsid, the first
 * process of a container): the kernel discards the signal, and no SIGCONT would follow.
 */
static void stop_all(struct job *job, bool own_groups_only)
{
	job_kill(job, SIGTSTP, own_groups_only);
	wait_until_stopped(job);
	if (stop_self())
		own_groups_only = was_sent_to_group(SIGCONT, continue_code);
	job_kill(job, SIGCONT, own_groups_only);
}

static void handle_end_request(struct job *job, int signo, bool own_groups_only)
{
	int64_t since = now_ms() - job->interrupted_at;
	bool again = job->interrupt && since < GRACE_MS;

	if (again && since < TWICE_MS)
		return;
	if (!job->live) {	/* main.c waits for output, and checks for this */
		job_interrupted(job, signo);
		if (job->exits_pending)
			job_end_after(job, signo);
		return;
	}
	if (again || job->ending) {
		job_kill_now(job, signo);
		report_note("second signal: killing %u tasks", job->live);
		return;
	}
	job_interrupted(job, signo);
	job_kill(job, signo, own_groups_only);
	job_reap(job);		/* some may have stopped since */
	stopped_continue(job);
}

static void handle_signal(struct job *job, int signo, int code)
{
	bool own_groups_only = was_sent_to_group(signo, code);

	if (asks_to_end(signo))
		handle_end_request(job, signo, own_groups_only);
	else if (signo == SIGTSTP)
		stop_all(job, own_groups_only);
	else
		job_kill(job, signo, own_groups_only);
}

static bool take_signal(struct signals *signals)
{
	struct signalfd_siginfo info;

	if (read(signals->event.fd, &info, sizeof(info)) != sizeof(info))
		return false;
	handle_signal(signals->job, info.ssi_signo, info.ssi_code);
	return true;
}

static void ready(struct event *event, uint32_t what)
{
	(void)what;
	take_signal((struct signals *)event);
}

static void child_ready(struct event *event, uint32_t what)
{
	struct child_signal *child = (struct child_signal *)event;
	struct signalfd_siginfo info;
	size_t i;

	(void)what;
	/*
	 * The terminal sends Ctrl-C to all of the group before any of it can end. So pvasrun's
	 * own signal is the reason why tasks end, and not a task's death from it.
	 */
	for (i = 0; i < NR_FORWARDED && take_signal(child->signals); i++)
		;
	if (read(event->fd, &info, sizeof(info)) == sizeof(info))
		job_reap(child->signals->job);
}

static int watch(struct event *event, struct loop *loop, const sigset_t *set)
{
	event->fd = signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (event->fd < 0)
		return -errno;
	return loop_watch(loop, event, EPOLLIN);
}

static int watch_all(struct signals *signals, struct loop *loop, const sigset_t *wanted)
{
	sigset_t child;
	int err;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, wanted, NULL) < 0 || sigprocmask(SIG_BLOCK, &child, NULL) < 0)
		return -errno;
	signals->event = (struct event){ .ready = ready, .fd = -1 };
	signals->child.event = (struct event){ .ready = child_ready, .fd = -1 };
	err = watch(&signals->event, loop, wanted);
	return err ? err : watch(&signals->child.event, loop, &child);
}

int signals_open(struct signals *signals, struct loop *loop, struct job *job)
{
	struct sigaction standard = { .sa_handler = SIG_DFL };
	sigset_t mask;
	size_t i;

	signals->job = job;
	signals->child.signals = signals;
	sigemptyset(&signals->ignored);
	sigemptyset(&signals->end);
	sigemptyset(&mask);
	for (i = 0; i < NR_FORWARDED; i++) {
		if (inherited_ignored(forwarded[i])) {
			sigaddset(&signals->ignored, forwarded[i]);
			/* SIGCONT continues also a process that ignores it */
			if (forwarded[i] != SIGCONT)
				continue;
		}
		/* a signalfd never reports an ignored signal */
		sigaction(forwarded[i], &standard, NULL);
		sigaddset(&mask, forwarded[i]);
		if (asks_to_end(forwarded[i]))
			sigaddset(&signals->end, forwarded[i]);
	}
	sigaction(SIGCHLD, &standard, NULL);
	ignore_own(&signals->ignored);
	return watch_all(signals, loop, &mask);
}

void signals_close(struct signals *signals)
{
	if (signals->event.fd >= 0)
		close(signals->event.fd);
	if (signals->child.event.fd >= 0)
		close(signals->child.event.fd);
}

void signals_die_from(int signo)
{
	struct rlimit no_core = { 0, 0 };
	sigset_t mask;

	setrlimit(RLIMIT_CORE, &no_core);	/* a core of pvasrun is of no use */
	signal(signo, SIG_DFL);
	sigemptyset(&mask);
	sigaddset(&mask, signo);
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
	raise(signo);
}
