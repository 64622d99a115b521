// SPDX-License-Identifier: GPL-2.0-only
/* Of the failures of a job's ranks, the one that caused the others. */
#include "cause.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../libpvas/pvas.h"
#include "clock.h"

#define LOOK_MS		5

/* ---- tasks that are ending ---- */

#define ENDING_MS	5000	/* to free a large memory */
#define GONE_MS		3000	/* from then to the end of the process, if it does end */

static bool is_live(const struct job *job, pid_t pid)
{
	unsigned int rank;

	for (rank = 0; rank < job->opt->tasks; rank++)
		if (job->tasks[rank].pid == pid && !job->tasks[rank].ended)
			return true;
	return false;
}

/* Of the live tasks but @rank: are some ending, or only not in the space any more? */
static void look_for_ending(const struct job *job, unsigned int rank, bool *ending, bool *gone)
{
	const unsigned int tasks = job->opt->tasks;
	struct pvas_task_info *info = calloc(tasks, sizeof(*info));
	int i, nr = info && job->space ? pvas_task_list(job->space, info, tasks) : -1;
	unsigned int running = 0;

	*ending = *gone = false;
	for (i = 0; i < nr && i < (int)tasks; i++) {
		running += info[i].state == PVAS_TASK_RUNNING;
		if (info[i].state == PVAS_TASK_ENDING && info[i].pid != job->tasks[rank].pid &&
		    is_live(job, info[i].pid))
			*ending = true;
	}
	if (nr >= 0)
		*gone = running < job->live;
	free(info);
}

/*
 * Peers see by the table of the space that a task ends, with the module long before its
 * parent can.
 */
void cause_reap_ending(struct job *job, unsigned int rank)
{
	const int64_t begin = now_ms();
	bool ending = true, gone = true;

	for (;;) {
		job_reap(job);
		if (job->ending)
			return;
		look_for_ending(job, rank, &ending, &gone);
		if (!(ending && now_ms() < begin + ENDING_MS) &&
		    !(gone && now_ms() < begin + GONE_MS))
			return;
		usleep(LOOK_MS * 1000);
	}
}

/* ---- the cause ---- */

#define CAUSE_MS	1000

/* As a rank ends whose access to a peer's memory can't be completed: see the components. */
static bool may_be_a_consequence(int wait_status)
{
	return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == STATUS_FAILED;
}

bool cause_seek(struct job *job, const struct failure *failure)
{
	const bool consequence = may_be_a_consequence(failure->wait_status);

	if (job->ending || job->opt->no_kill || !job->left_early)
		return false;
	if (job->cause_until) {
		if (!consequence && may_be_a_consequence(job->cause.wait_status))
			job->cause = *failure;
		return true;
	}
	if (!consequence && !job->exits_pending)
		return false;
	job->cause = *failure;
	job->cause_look_at = now_ms();
	job->cause_until = job->cause_look_at + CAUSE_MS;
	return true;
}

void cause_settle(struct job *job)
{
	if (!job->cause_until)
		return;
	job->cause_until = job->cause_look_at = 0;
	/* if a peer that left too early has ended it, that is what was reported */
	job_fail(job, &job->cause);
}

void cause_look(struct job *job, int64_t now)
{
	bool ending = false, gone = false;

	if (!job->cause_until || now < job->cause_look_at)
		return;
	if (may_be_a_consequence(job->cause.wait_status))
		look_for_ending(job, job->cause.rank, &ending, &gone);
	if (!job->ending && now < job->cause_until && (job->exits_pending || ending || gone))
		job->cause_look_at = now + LOOK_MS;
	else
		cause_settle(job);
}
