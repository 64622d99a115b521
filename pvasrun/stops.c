// SPDX-License-Identifier: GPL-2.0-only
/* Ranks that are stopped. */
#include "stops.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "report.h"

/* A batch system suspends and resumes the processes of a job one by one. */
#define STOP_MS 1000

/*
 * SIGTSTP stops the whole job, by the terminal's keys or by pvasrun: no news. All
 * other stops concern one task, for which the job may wait for ever.
 */
void stops_note(struct job *job, struct task *task, int signo)
{
	task->stopped = signo == SIGTSTP ? 0 : signo;
	if (task->stopped && !task->stop_reported && !job->stop_at)
		job->stop_at = now_ms() + STOP_MS;
}

static void hint(const struct job *job, const struct task *task, char *text, size_t len)
{
	const char *wants = task->stopped == SIGTTIN ? "reads from" : "sets";

	if (task->stopped != SIGTTIN && task->stopped != SIGTTOU)
		snprintf(text, len, "to let it go on: kill -CONT %d", task->pid);
	else if (job->opt->stdin_to == STDIN_RANK)
		snprintf(text, len, "it %s the terminal, which rank %u has: see --stdin", wants,
			 job->opt->stdin_rank);
	else
		snprintf(text, len, "it %s the terminal, which no rank has: see --stdin", wants);
}

void stops_report(struct job *job)
{
	const struct task *first = NULL;
	unsigned int rank, others = 0;
	char text[96], more[32] = "";

	job->stop_at = 0;
	for (rank = 0; rank < job->opt->tasks; rank++) {
		struct task *task = &job->tasks[rank];

		if (!task->stopped || task->ended || task->stop_reported)
			continue;
		task->stop_reported = true;
		if (first)
			others++;
		else
			first = task;
	}
	if (!first || job->ending)
		return;
	hint(job, first, text, sizeof(text));
	if (others)
		snprintf(more, sizeof(more), ", and %u more", others);
	warn("rank %td (pid %d, %s) is stopped by signal %d (%s)%s (%s)", first - job->tasks,
	     first->pid, first->app->argv[0], first->stopped, strsignal(first->stopped), more,
	     text);
}

void stops_wake(const struct job *job)
{
	unsigned int rank;

	for (rank = 0; rank < job->opt->tasks; rank++) {
		const struct task *task = &job->tasks[rank];

		if (task->stopped && !task->ended)
			kill(task->pid, SIGCONT);
	}
}
