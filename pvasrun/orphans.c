// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that outlive the task that started them.
 *
 * pvasrun adopts them (PR_SET_CHILD_SUBREAPER), so they are its children once
 * all tasks have ended. With the kernel backend they are ordinary processes; with
 * the user backend they keep the seccomp filter, whose supervisor ends with
 * pvasrun: from then on their mmap(), brk() and execve() fail with ENOSYS.
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

#include "clock.h"
#include "report.h"

#define COMM_MAX	64
#define POLL_MS		50
#define SOON_MS		500	/* the rest of a shell's pipeline ends by itself */

struct orphan {
	pid_t pid;
	char comm[COMM_MAX];
};

struct list {
	struct orphan *all;
	unsigned int nr;
};

/* ---- finding them ---- */

/* It is shown: a terminal must not take it for a command. */
static void keep_name(struct orphan *orphan, const char *name, size_t len)
{
	size_t i;

	if (len > sizeof(orphan->comm) - 1)
		len = sizeof(orphan->comm) - 1;
	for (i = 0; i < len; i++)
		orphan->comm[i] = name[i] < ' ' || name[i] > '~' ? '?' : name[i];
	orphan->comm[len] = '\0';
}

/* /proc/PID/stat: "pid (comm) state ppid ..."; comm may hold anything. */
static bool is_child(const char *pid, struct orphan *orphan)
{
	char path[64], line[512], state;
	char *open, *close;
	int parent;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	line[fread(line, 1, sizeof(line) - 1, file)] = '\0';
	fclose(file);
	open = strchr(line, '(');
	close = strrchr(line, ')');
	if (!open || !close || sscanf(close + 1, " %c %d", &state, &parent) != 2 ||
	    parent != getpid() || state == 'Z' || state == 'X')
		return false;
	orphan->pid = atoi(pid);
	keep_name(orphan, open + 1, close - open - 1);
	return true;
}

static bool was_before(const struct run *run, pid_t pid)
{
	unsigned int i;

	for (i = 0; i < run->nr_before; i++)
		if (run->before[i] == pid)
			return true;
	return false;
}

static void find(const struct run *run, struct list *list)
{
	struct orphan orphan, *more;
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	*list = (struct list){ 0 };
	if (!proc)
		return;
	while ((entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    !is_child(entry->d_name, &orphan) || was_before(run, orphan.pid))
			continue;
		more = reallocarray(list->all, list->nr + 1, sizeof(*more));
		if (!more)
			break;
		list->all = more;
		list->all[list->nr++] = orphan;
	}
	closedir(proc);
}

/* Cheap, for the usual case that there are none */
static bool no_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

static bool none_left(const struct run *run)
{
	struct list list;

	if (no_children())
		return true;
	if (!run->nr_before)
		return false;
	find(run, &list);
	free(list.all);
	return !list.nr;
}

/* A process keeps its children through exec, so there may be some of another program's. */
void orphans_watch(struct run *run)
{
	bool user = pvas_space_get_backend(run->space) == PVAS_BACKEND_USER;
	struct list list;
	unsigned int i;

	if (run->opt->orphans == ORPHANS_WARN && !user)
		return;
	if (!no_children()) {
		find(run, &list);
		run->before = calloc(list.nr ? list.nr : 1, sizeof(*run->before));
		for (i = 0; run->before && i < list.nr; i++)
			run->before[run->nr_before++] = list.all[i].pid;
		free(list.all);
	}
	run->adopts = !prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* ---- what becomes of them ---- */

/* Until @until, or for ever if it is -1. True: none is left. */
static bool wait_for_them(struct run *run, int64_t until)
{
	while (!none_left(run)) {
		int64_t now = now_ms();

		if (run->job.interrupt || (until >= 0 && now >= until))
			return false;
		loop_turn(&run->loop, until < 0 ? -1 : (int)(until - now));
		job_reap(&run->job);
	}
	return true;
}

static void signal_all(const struct list *list, const struct list *done, int signo)
{
	unsigned int i, j;

	for (i = 0; i < list->nr; i++) {
		for (j = 0; done && j < done->nr && done->all[j].pid != list->all[i].pid; j++)
			;
		if (!done || j == done->nr) {
			kill(list->all[i].pid, signo);
			kill(list->all[i].pid, SIGCONT);
		}
	}
}

/* The end of one makes its own children pvasrun's: until there are none. */
static void kill_them(struct run *run, int signo)
{
	int64_t begin = now_ms();
	struct list list, done = { 0 };

	run->job.interrupt = 0;
	while (!none_left(run) && now_ms() < begin + 2 * GRACE_MS) {
		bool hard = run->job.interrupt || now_ms() >= begin + GRACE_MS;

		find(run, &list);
		signal_all(&list, hard ? NULL : &done, hard ? SIGKILL : signo);
		free(done.all);
		done = list;
		loop_turn(&run->loop, POLL_MS);
		job_reap(&run->job);
	}
	free(done.all);
}

static void warn_of_them(const struct run *run)
{
	char more[32] = "";
	struct list list;

	find(run, &list);
	if (list.nr > 1)
		snprintf(more, sizeof(more), " and %u more", list.nr - 1);
	if (list.nr)
		warn("%s (pid %d)%s, left running by a task, can map no memory once pvasrun has ended (keep it in the foreground, or see --orphans)",
		     list.all[0].comm, list.all[0].pid, more);
	free(list.all);
}

static int wait_or_kill(struct run *run)
{
	struct job *job = &run->job;
	int signo;

	if (wait_for_them(run, job->timeout_at ? job->timeout_at : -1))
		return 0;
	signo = job->interrupt;
	if (!signo) {
		complain("--timeout %s: the time is over, ending what tasks left running",
			 run->opt->timeout_text);
		job->status = STATUS_TIMEOUT;
	}
	kill_them(run, signo ? signo : SIGTERM);
	return signo;
}

int orphans_end(struct run *run)
{
	struct job *job = &run->job;
	bool ended_by_us = job->ending;

	if (!run->adopts || none_left(run))
		return 0;
	job->interrupt = 0;
	if (run->opt->orphans == ORPHANS_WAIT && !ended_by_us)
		return wait_or_kill(run);
	if (wait_for_them(run, now_ms() + SOON_MS))
		return 0;
	if (run->opt->orphans == ORPHANS_WARN)
		warn_of_them(run);
	else
		kill_them(run, SIGTERM);
	return 0;
}
