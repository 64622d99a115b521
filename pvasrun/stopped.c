// SPDX-License-Identifier: GPL-2.0-only
/* Tasks that are stopped. */
#include "stopped.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "report.h"

/* A batch system suspends the processes of a job one by one, pvasrun perhaps last. */
#define STOP_MS 1000
#define TOGETHER_MS 200

/*
 * SIGTSTP comes from the terminal or from pvasrun, and stops the whole job, so nothing
 * is reported. Other signals stop one task, for which the job may wait for ever.
 */
static bool is_to_report(const struct task *task)
{
	return task->stopped && task->stopped != SIGTSTP && !task->ended &&
	       !task->stop_reported;
}

void stopped_update(struct job *job, struct task *task, int signo)
{
	task->stopped = signo;
	task->stopped_at = now_ms();
	if (is_to_report(task) && !job->stop_at)
		job->stop_at = task->stopped_at + STOP_MS;
}

/* When the first of them has to be reported; 0: none */
static int64_t first_due(const struct job *job)
{
	int64_t due, first = 0;
	unsigned int rank;

	for (rank = 0; rank < job->opt->tasks; rank++) {
		due = job->tasks[rank].stopped_at + STOP_MS;
		if (is_to_report(&job->tasks[rank]) && (!first || due < first))
			first = due;
	}
	return first;
}

static void format_hint(const struct job *job, const struct task *task, char *text, size_t len)
{
	const char *action = task->stopped == SIGTTIN ? "reads from" : "sets";

	if (task->stopped != SIGTTIN && task->stopped != SIGTTOU)
		snprintf(text, len, "to let it go on: kill -CONT %d", task->pid);
	else if (job->opt->stdin_to == STDIN_RANK)
		snprintf(text, len, "it %s the terminal, which rank %u has: see --stdin", action,
			 job->opt->stdin_rank);
	else
		snprintf(text, len, "it %s the terminal, which no rank has: see --stdin", action);
}

void stopped_report(struct job *job)
{
	const int64_t now = now_ms();
	const struct task *first = NULL;
	unsigned int rank, others = 0;
	char text[96], more[32] = "";

	job->stop_at = first_due(job);
	if (job->stop_at > now)
		return;
	for (rank = 0; rank < job->opt->tasks; rank++) {
		struct task *task = &job->tasks[rank];

		/* Those that were stopped together are reported together. */
		if (!is_to_report(task) || task->stopped_at + STOP_MS > now + TOGETHER_MS)
			continue;
		task->stop_reported = true;
		if (first)
			others++;
		else
			first = task;
	}
	job->stop_at = first_due(job);
	if (!first || job->ending)
		return;
	format_hint(job, first, text, sizeof(text));
	if (others)
		snprintf(more, sizeof(more), ", and %u more", others);
	report_warning("rank %td (pid %d, %s) is stopped by signal %d (%s)%s (%s)",
		       first - job->tasks, first->pid, first->app->argv[0], first->stopped,
		       strsignal(first->stopped), more, text);
}

void stopped_continue(const struct job *job)
{
	unsigned int rank;

	for (rank = 0; rank < job->opt->tasks; rank++) {
		const struct task *task = &job->tasks[rank];

		if (task->stopped && !task->ended)
			kill(task->pid, SIGCONT);
	}
}
