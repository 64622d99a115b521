// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that outlive the task that started them.
 *
 * pvasrun is their subreaper (PR_SET_CHILD_SUBREAPER), so they become its children.
 * With the kernel backend they are ordinary processes. With the user backend they keep
 * the seccomp filter, whose supervisor ends with pvasrun: then mmap(), brk() and
 * execve() fail with ENOSYS.
 */
#include "orphans.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask.h"
#include "clock.h"
#include "environment.h"
#include "proc_read.h"
#include "report.h"
#include "start_time.h"

#define COMM_MAX	64
#define POLL_MS		50
#define PATIENCE_MS	1000	/* for the environments of all processes */
#define SOON_MS		500	/* the other processes of a pipeline end by themselves */
#define SIGNALLED_MS	2000	/* these have got SIGTERM with their task */

struct orphan {
	pid_t pid;
	char comm[COMM_MAX];
};

struct list {
	struct orphan *all;
	unsigned int nr;
};

/* ---- find them ---- */

/* Not a process that pvasrun itself made for its own work: these send no signal when they end. */
static bool is_adopted(pid_t pid, bool *ended)
{
	siginfo_t info = { .si_pid = 0 };

	if (waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT))
		return false;
	*ended = info.si_pid;
	return true;
}

/* Without control characters, for it is printed on a terminal */
static void copy_name(struct orphan *orphan, const char *name)
{
	size_t i;

	for (i = 0; name[i] && name[i] != '\n'; i++)
		orphan->comm[i] = name[i] < ' ' || name[i] > '~' ? '?' : name[i];
	orphan->comm[i] = '\0';
}

/*
 * Not from /proc/PID/stat or status: their reader holds the process's memory, and lets go of it
 * last if the process is killed meanwhile. That can wait for a file server.
 */
static void read_name(struct orphan *orphan)
{
	char name[sizeof(orphan->comm)];

	proc_read(orphan->pid, "comm", name, sizeof(name));
	copy_name(orphan, name);
}

/* Of other users' processes, too. Nothing is read of processes that are no children. */
static bool is_child(const char *pid, struct orphan *orphan)
{
	bool ended;

	orphan->pid = atoi(pid);
	if (!is_adopted(orphan->pid, &ended) || ended)
		return false;
	read_name(orphan);
	return true;
}

/*
 * Has it, or the process that forked it, been started with a task's environment? pvasrun's
 * own children from before its execve() have not, nor their descendants. One that doesn't say
 * counts as a task's.
 */
static bool has_tasks_environment(struct subreaper *orphans, pid_t pid)
{
	char wanted[32];

	if (!orphans->mixed)
		return true;
	snprintf(wanted, sizeof(wanted), "PVAS_LAUNCHER=%d", getpid());
	return environment_has(pid, wanted, &orphans->patience) != ENVIRONMENT_HAS_NOT;
}

/* Pids in a /proc of another namespace are other processes' in ours. */
static bool proc_is_ours(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	int in_proc, in_next;
	bool ours = false;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "Pid:\t", 5))
			ours = atoi(line + 5) == getpid();
		else if (sscanf(line, "NSpid: %d %d", &in_proc, &in_next) == 2)
			ours = false;
	}
	if (file)
		fclose(file);
	return ours;
}

static void find_in(struct subreaper *orphans, DIR *proc, struct list *list)
{
	struct orphan orphan, *more;
	struct dirent *entry;

	while ((entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    !is_child(entry->d_name, &orphan) ||
		    !has_tasks_environment(orphans, orphan.pid))
			continue;
		more = reallocarray(list->all, list->nr + 1, sizeof(*more));
		if (!more)
			break;
		list->all = more;
		list->all[list->nr++] = orphan;
	}
}

/*
 * Thousands that a task has left, perhaps as another user, make this long: the next look is due
 * when as much time has been for other things.
 */
static void find(struct subreaper *orphans, struct list *list)
{
	const int64_t begin = now_ms();
	DIR *proc = orphans->blind ? NULL : opendir("/proc");
	int64_t took;

	*list = (struct list){ 0 };
	if (proc) {
		find_in(orphans, proc, list);
		closedir(proc);
	}
	took = now_ms() - begin;
	orphans->look_at = now_ms() + (took > POLL_MS ? took : POLL_MS);
}

/* Cheaper than reading /proc: usually there are none. */
static bool no_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

/* Some may be left as long as no look is due. */
static bool none_left(struct subreaper *orphans)
{
	struct list list;

	if (no_children())
		return true;
	if (!orphans->mixed || now_ms() < orphans->look_at)
		return false;
	find(orphans, &list);
	free(list.all);
	return !list.nr;
}

void orphans_open(struct subreaper *orphans, struct loop *loop, struct job *job, bool user_backend)
{
	*orphans = (struct subreaper){ .loop = loop, .job = job, .patience = PATIENCE_MS };
	if (job->opt->orphans == ORPHANS_WARN && !user_backend)
		return;
	orphans->mixed = !no_children();
	orphans->blind = !proc_is_ours();
	orphans->adopts = !prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* ---- wait or kill ---- */

/* Until @until; -1: without a limit. True: none is left. */
static bool wait_for_all(struct subreaper *orphans, int64_t until)
{
	while (!none_left(orphans)) {
		const int64_t now = now_ms();
		int64_t next = until;

		if (orphans->job->interrupt || (until >= 0 && now >= until))
			return false;
		/* A child's end can have woken pvasrun before that. */
		if (orphans->mixed && now < orphans->look_at &&
		    (until < 0 || orphans->look_at < until))
			next = orphans->look_at;
		loop_turn(orphans->loop, next < 0 ? -1 : next > now ? (int)(next - now) : 0);
		job_reap(orphans->job);
	}
	return true;
}

/* A pid that is no child's may be anybody's. */
static void signal_child(pid_t pid, int signo)
{
	bool ended;

	if (!is_adopted(pid, &ended))
		return;
	kill(pid, signo);
	kill(pid, SIGCONT);
}

/* Both lists have the order of /proc, that of pids. */
static void signal_all(const struct list *list, const struct list *done, int signo)
{
	unsigned int i, j = 0;

	for (i = 0; i < list->nr; i++) {
		while (done && j < done->nr && done->all[j].pid < list->all[i].pid)
			j++;
		if (!done || j == done->nr || done->all[j].pid != list->all[i].pid)
			signal_child(list->all[i].pid, signo);
	}
}

/* Does a process neither handle nor ignore SIGTERM? In a child of pvasrun's: see read_name(). */
static void answer_dies(const void *about)
{
	const unsigned long long bit = 1ULL << (SIGTERM - 1);
	unsigned long long ignored = bit, caught = bit;
	char text[4096];
	const char *at;
	bool dies;

	proc_read(*(const pid_t *)about, "status", text, sizeof(text));
	at = strstr(text, "\nSigIgn:");
	if (at)
		sscanf(at, " SigIgn: %llx", &ignored);
	at = strstr(text, "\nSigCgt:");
	if (at)
		sscanf(at, " SigCgt: %llx", &caught);
	dies = !(ignored & bit) && !(caught & bit);
	if (write(STDIN_FILENO, &dies, sizeof(dies)) < 0)
		return;
}

static bool dies_of_sigterm(pid_t pid, int64_t *patience)
{
	bool dies = false;
	struct ask ask;

	if (*patience <= 0 || ask_begin(&ask, answer_dies, &pid))
		return false;
	if (!ask_read(&ask, &dies, sizeof(dies), patience))
		dies = false;
	ask_end(&ask);
	return dies;
}

/*
 * fork() blocks signals: one that comes to the group meanwhile ends the parent afterwards, and
 * the child, which is made after it has come, has none. An older process has got it, even if its
 * handler has restored the default since, so that a second signal ends it at once.
 */
static bool has_missed_sigterm(struct subreaper *orphans, pid_t pid)
{
	const int64_t sent = job_group_terminated_at(orphans->job, getpgid(pid));
	uint64_t started;

	if (!sent || !dies_of_sigterm(pid, &orphans->patience))
		return false;
	started = start_time_of_any(pid, &orphans->patience);
	return started != START_TIME_UNKNOWN &&
	       started >= (uint64_t)(sent / (CLOCK_NS_PER_S / sysconf(_SC_CLK_TCK)));
}

static void signal_missed(struct subreaper *orphans)
{
	const int64_t until = now_ms() + SOON_MS;
	struct list list;
	unsigned int i;

	find(orphans, &list);
	for (i = 0; i < list.nr && now_ms() < until; i++)
		if (has_missed_sigterm(orphans, list.all[i].pid))
			signal_child(list.all[i].pid, SIGTERM);
	free(list.all);
}

static void report_blind(void)
{
	report_warning("can't find what tasks left running: /proc is missing or of another pid namespace (mount it anew: unshare --mount-proc)");
}

/* When one ends, pvasrun adopts its children: repeat until there are none. */
static void kill_all(struct subreaper *orphans, int signo)
{
	int64_t begin = now_ms();
	struct list list, done = { 0 };

	if (orphans->blind) {
		report_blind();
		return;
	}
	orphans->job->interrupt = 0;
	orphans->look_at = 0;
	while (!no_children() && now_ms() < begin + 2 * GRACE_MS) {
		if (now_ms() >= orphans->look_at) {
			bool hard = orphans->job->interrupt || now_ms() >= begin + GRACE_MS;

			find(orphans, &list);
			if (orphans->mixed && !list.nr)
				break;
			signal_all(&list, hard ? NULL : &done, hard ? SIGKILL : signo);
			free(done.all);
			done = list;
		}
		loop_turn(orphans->loop, POLL_MS);
		job_reap(orphans->job);
	}
	free(done.all);
}

static void report_orphans(struct subreaper *orphans)
{
	char more[32] = "";
	struct list list;

	find(orphans, &list);
	if (list.nr > 1)
		snprintf(more, sizeof(more), " and %u more", list.nr - 1);
	if (list.nr)
		report_warning("%s (pid %d)%s, left running by a task, can map no memory once pvasrun has ended (keep it in the foreground, or see --orphans)",
			       list.all[0].comm, list.all[0].pid, more);
	free(list.all);
}

static int wait_or_kill(struct subreaper *orphans)
{
	struct job *job = orphans->job;
	int signo;

	if (wait_for_all(orphans, job->timeout_at ? job->timeout_at : -1))
		return 0;
	signo = job->interrupt;
	if (!signo) {
		report_error("--timeout %s: the time is over, ending what tasks left running",
			     job->opt->timeout_text);
		job->status = STATUS_TIMEOUT;
	}
	kill_all(orphans, signo ? signo : SIGTERM);
	return signo;
}

int orphans_end(struct subreaper *orphans)
{
	struct job *job = orphans->job;
	bool ended_by_us = job->ending;

	if (!orphans->adopts || no_children())
		return 0;
	if (orphans->blind && orphans->mixed) {
		report_blind();
		return 0;
	}
	job->interrupt = 0;
	if (job->opt->orphans == ORPHANS_WAIT && !ended_by_us)
		return wait_or_kill(orphans);
	if (ended_by_us)
		signal_missed(orphans);
	if (wait_for_all(orphans, now_ms() + (ended_by_us ? SIGNALLED_MS : SOON_MS)))
		return 0;
	if (job->opt->orphans == ORPHANS_WARN)
		report_orphans(orphans);
	else
		kill_all(orphans, SIGTERM);
	return 0;
}
