// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranks whose program has left the space. Nothing tells of that, so the list of tasks is
 * compared with the job: often at first, when wrappers start their programs.
 */
#include "left.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "report.h"

#define FIRST_MS	100
#define LONGEST_MS	10000

void left_begin(struct left *left, struct job *job, const struct job_space *space)
{
	left->job = job;
	left->space = space;
	left->pause = FIRST_MS;
	left->at = job->opt->verbose ? now_ms() + FIRST_MS : 0;
}

static bool is_listed(const struct pvas_task_info *tasks, int nr, pid_t pid)
{
	int i;

	for (i = 0; i < nr; i++)
		if (tasks[i].pid == pid)
			return true;
	return false;
}

static void report(const struct task *task, unsigned int rank)
{
	char link[32], path[PATH_MAX], why[256] = "";
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/exe", task->pid);
	len = readlink(link, path, sizeof(path) - 1);
	if (len <= 0)
		return;		/* it has ended */
	path[len] = '\0';
	pvas_program_check(path, why, sizeof(why));
	report_note("rank %u (pid %d) is no task any more: %s runs outside the space%s%s", rank,
		    task->pid, path, why[0] ? ": " : "", why);
}

static void compare(const struct left *left, const struct pvas_task_info *tasks, int nr)
{
	unsigned int rank;

	for (rank = 0; rank < left->job->opt->tasks; rank++) {
		struct task *task = &left->job->tasks[rank];

		if (!task->pid || task->ended || task->left_reported ||
		    is_listed(tasks, nr, task->pid))
			continue;
		task->left_reported = true;
		report(task, rank);
	}
}

static void look(const struct left *left)
{
	/* Others can be in the space, too. */
	size_t room = 2 * left->job->opt->tasks + 64;
	struct pvas_task_info *tasks = calloc(room, sizeof(*tasks));
	int nr = tasks ? pvas_task_list(left->space->space, tasks, room) : -1;

	if (nr >= 0 && (size_t)nr <= room)
		compare(left, tasks, nr);
	free(tasks);
}

int64_t left_report(struct left *left, int64_t now, int64_t until)
{
	if (!left->at)
		return until;
	if (now >= left->at) {
		look(left);
		left->pause = left->pause < LONGEST_MS / 2 ? 2 * left->pause : LONGEST_MS;
		left->at = now + left->pause;
	}
	return until < 0 || until > left->at ? left->at : until;
}
