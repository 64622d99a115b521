// SPDX-License-Identifier: GPL-2.0-only
/* Signals that pvasrun gets, and what of them reaches the tasks. */
#include "signals.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "report.h"
#include "stopped.h"

/*
 * timeout(1), and whoever signals a process and then its group, send the same
 * signal twice at once. Only a second one after this is somebody's impatience.
 */
#define TWICE_MS 200

static const int passed_on[] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT,
};

#define NR_PASSED_ON (sizeof(passed_on) / sizeof(passed_on[0]))

static bool asks_to_end(int signo)
{
	return signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT;
}

/* What is ignored by inheritance stays ignored, here and in the tasks. */
static bool inherited_ignored(int signo)
{
	struct sigaction now;

	return asks_to_end(signo) && signo != SIGTERM && !sigaction(signo, NULL, &now) &&
	       now.sa_handler == SIG_IGN;
}

/*
 * The tasks first: once pvasrun is stopped it does nothing more. Nothing stops a process
 * group without a parent in its session (ssh -t HOST pvasrun, setsid, a container's first
 * process): the kernel discards the signal there, and no SIGCONT would ever follow.
 */
static void stop_all(struct job *job, bool own_groups_only)
{
	sigset_t stop, pending;

	job_kill(job, SIGTSTP, own_groups_only);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	raise(SIGTSTP);		/* returns after SIGCONT, which is then in the queue */
	sigprocmask(SIG_BLOCK, &stop, NULL);
	if (!sigpending(&pending) && !sigismember(&pending, SIGCONT))
		job_kill(job, SIGCONT, own_groups_only);
}

static void end_asked(struct job *job, int signo, bool own_groups_only)
{
	int64_t since = now_ms() - job->interrupted_at;
	bool again = job->interrupt && since < GRACE_MS;

	if (again && since < TWICE_MS)
		return;
	if (!job->live) {	/* only output is waited for: main.c looks at this */
		job_interrupted(job, signo);
		return;
	}
	if (again || job->ending) {
		note("second signal: killing %u tasks", job->live);
		job_kill_now(job, signo);
		return;
	}
	job_interrupted(job, signo);
	job_kill(job, signo, own_groups_only);
	job_reap(job);		/* some may have stopped since */
	stopped_continue(job);
}

/*
 * A signal from the terminal's keys (SI_KERNEL) has reached every process of
 * pvasrun's own group already: a task that is in it must not get it twice.
 */
static void got(struct job *job, int signo, int code)
{
	bool own_groups_only = code == SI_KERNEL;

	if (asks_to_end(signo))
		end_asked(job, signo, own_groups_only);
	else if (signo == SIGTSTP)
		stop_all(job, own_groups_only);
	else
		job_kill(job, signo, own_groups_only);
}

static void ready(struct event *event, uint32_t what)
{
	struct signals *signals = (struct signals *)event;
	struct signalfd_siginfo info;

	(void)what;
	while (read(event->fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			job_reap(signals->job);
		else
			got(signals->job, info.ssi_signo, info.ssi_code);
	}
}

int signals_open(struct signals *signals, struct loop *loop, struct job *job)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction standard = { .sa_handler = SIG_DFL };
	sigset_t mask;
	size_t i;

	signals->job = job;
	sigemptyset(&signals->ignored);
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	for (i = 0; i < NR_PASSED_ON; i++) {
		if (inherited_ignored(passed_on[i])) {
			sigaddset(&signals->ignored, passed_on[i]);
			continue;
		}
		/* an ignored signal never gets to a signalfd */
		sigaction(passed_on[i], &standard, NULL);
		sigaddset(&mask, passed_on[i]);
	}
	sigaction(SIGCHLD, &standard, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return -errno;
	signals->event = (struct event){ .ready = ready };
	signals->event.fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
	if (signals->event.fd < 0)
		return -errno;
	return loop_watch(loop, &signals->event, EPOLLIN);
}

void signals_close(struct signals *signals)
{
	if (signals->event.fd >= 0)
		close(signals->event.fd);
}

void signals_die_from(int signo)
{
	struct rlimit no_core = { 0, 0 };
	sigset_t mask;

	setrlimit(RLIMIT_CORE, &no_core);	/* ours would only be in the way */
	signal(signo, SIG_DFL);
	sigemptyset(&mask);
	sigaddset(&mask, signo);
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
	raise(signo);
}
