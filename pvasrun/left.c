// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranks whose program has left the space. Nothing tells of that, so the list of tasks is
 * compared with the job: often at first, when wrappers start their programs.
 */
#include "left.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "report.h"

#define FIRST_MS	100
#define LONGEST_MS	10000
#define ENVIRONMENT_MAX	(1UL << 20)
#define STATUS_MAX	(1UL << 20)	/* there can be 65536 groups */

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

/* Read a file of a process, as a string that may contain zeros. Its length */
static size_t read_file(const char *pid, const char *name, char *text, size_t size)
{
	char path[64];
	size_t len = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	f = fopen(path, "re");
	if (f) {
		len = fread(text, 1, size - 1, f);
		fclose(f);
	}
	text[len] = '\0';
	return len;
}

static bool wants_to_leave(const char *pid)
{
	char *text = malloc(ENVIRONMENT_MAX);
	size_t len = text ? read_file(pid, "environ", text, ENVIRONMENT_MAX) : 0, at;
	bool found = false;

	for (at = 0; at < len && !found; at += strlen(text + at) + 1)
		found = !strcmp(text + at, "PVAS_EXEC=leave");
	free(text);
	return found;
}

/* The rest of the line with this name in the status of a process */
static void status_of(const char *pid, const char *name, char *value, size_t size)
{
	static char text[STATUS_MAX];
	const char *line;

	read_file(pid, "status", text, sizeof(text));
	line = strstr(text, name);
	line = line ? line + strlen(name) : "";
	snprintf(value, size, "%.*s", (int)strcspn(line, "\n"), line);
}

static bool differs(const char *pid, const char *name)
{
	char its[64], own[64];

	status_of(pid, name, its, sizeof(its));
	status_of("self", name, own, sizeof(own));
	return strcmp(its, own) != 0;
}

/* A task has the user backend's filter, and no_new_privs with it. */
static bool has_filter(const struct left *left, const char *pid)
{
	int filters = pvas_space_get_backend(left->space->space) == PVAS_BACKEND_USER;
	char its[64], own[64];

	status_of(pid, "\nSeccomp_filters:", its, sizeof(its));
	status_of("self", "\nSeccomp_filters:", own, sizeof(own));
	return atoi(its) > atoi(own) + filters;
}

/* The first of the reasons that can be seen from here */
static void explain(const struct left *left, pid_t task, const char *path, char *why, size_t size)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", task);
	if (pvas_program_check(path, why, size))
		return;
	if (wants_to_leave(pid))
		snprintf(why, size, "PVAS_EXEC=leave is in its environment");
	else if (has_filter(left, pid))
		snprintf(why, size, "it has a seccomp filter of its own");
	else if (differs(pid, "\nCapPrm:") || differs(pid, "\nCapBnd:"))
		snprintf(why, size, "it has other capabilities than the tasks");
	else
		snprintf(why, size, "see pvas(7) and doc/backends.md");
}

static void report(const struct left *left, const struct task *task, unsigned int rank)
{
	char link[32], path[PATH_MAX], why[256] = "";
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/exe", task->pid);
	len = readlink(link, path, sizeof(path) - 1);
	if (len <= 0)
		return;		/* it has ended */
	path[len] = '\0';
	explain(left, task->pid, path, why, sizeof(why));
	report_note("rank %u (pid %d) is no task any more: %s runs outside the space: %s", rank,
		    task->pid, path, why);
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
		report(left, task, rank);
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
