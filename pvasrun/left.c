// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranks whose program has left the space. Nothing tells of that, so the list of tasks is
 * compared with the job: often at first, when wrappers start their programs.
 *
 * Such a program can have other rights than pvasrun, and a mount namespace of its own: its path
 * is text, and its file, or the interpreter that this names, can be on a server of that user's
 * that doesn't answer. Even the link to it waits, with Linux 6.18, for an execve() that has
 * begun. So a child looks at both, by /proc: see ask.h.
 */
#include "left.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ask.h"
#include "clock.h"
#include "report.h"

#define FIRST_MS	100
#define LONGEST_MS	10000
#define PATIENCE_MS	1000	/* for all answers of a job */

void left_begin(struct left *left, struct job *job, const struct job_space *space)
{
	left->job = job;
	left->space = space;
	left->pause = FIRST_MS;
	left->patience = PATIENCE_MS;
	left->more_patience = PATIENCE_MS;
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

/* The answer of a child */
struct found {
	char path[PATH_MAX];	/* empty: the process has ended */
	char why[256];		/* its program can't be a task; or empty */
};

/* The name alone says enough if the rest takes too long. */
static void check_program(const void *about)
{
	struct found found = { .path = "" };
	char file[32];

	snprintf(file, sizeof(file), "/proc/%d/exe", *(const pid_t *)about);
	if (readlink(file, found.path, sizeof(found.path) - 1) < 0)
		found.path[0] = '\0';
	if (write(STDIN_FILENO, found.path, sizeof(found.path)) < 0)
		return;
	pvas_program_check(file, found.why, sizeof(found.why));
	if (write(STDIN_FILENO, found.why, sizeof(found.why)) < 0)
		return;
}

/* False: the process has ended. All that isn't known in time is empty. */
static bool find(struct left *left, pid_t pid, struct found *found)
{
	struct ask ask;
	bool known;

	*found = (struct found){ .path = "" };
	if (left->patience <= 0 || ask_begin(&ask, check_program, &pid))
		return true;
	known = ask_read(&ask, found->path, sizeof(found->path), &left->patience);
	if (known && !ask_read(&ask, found->why, sizeof(found->why), &left->more_patience))
		found->why[0] = '\0';
	ask_end(&ask);
	return !known || found->path[0];
}

static void report(struct left *left, const struct task *task, unsigned int rank)
{
	struct found found;

	if (!find(left, task->pid, &found))
		return;
	report_note("rank %u (pid %d) is no task any more: %s runs outside the space%s%s", rank,
		    task->pid, found.path[0] ? found.path : "its program",
		    found.why[0] ? ": " : " (see PVAS_EXEC in pvas(7))", found.why);
}

static void compare(struct left *left, const struct pvas_task_info *tasks, int nr)
{
	unsigned int rank;

	for (rank = 0; rank < left->job->opt->tasks; rank++) {
		struct task *task = &left->job->tasks[rank];

		if (!task->pid || task->ended || task->left_reported ||
		    is_listed(tasks, nr, task->pid))
			continue;
		task->left_reported = true;
		report(left, task, rank);
	}
}

static void look(struct left *left)
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
