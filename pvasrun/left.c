// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranks whose program has left the space. Nothing tells of that, so the list of tasks is
 * compared with the job: often at first, when wrappers start their programs.
 *
 * Such a program can have other rights than pvasrun, and a mount namespace of its own: its path
 * is text, and its file, or the interpreter that this names, can be on a server of that user's
 * that doesn't answer. So a child looks at the file, by /proc, and nobody waits for that child.
 */
#include "left.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"
#include "report.h"

#define FIRST_MS	100
#define LONGEST_MS	10000
#define PATH_LEN	2048	/* written at once */
#define WHY_LEN		256
#define PATIENCE_MS	1000	/* for all names of a job, and for all other answers */

void left_begin(struct left *left, struct job *job, const struct job_space *space)
{
	left->job = job;
	left->space = space;
	left->pause = FIRST_MS;
	left->for_names = left->for_files = PATIENCE_MS;
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

/*
 * It keeps no file of pvasrun's: if it hangs, it holds up no reader of them. Already the name can
 * take long: since Linux 6.18 its reader waits for an execve() that has begun.
 */
static void __attribute__((noreturn)) look_in_child(pid_t pid, int to)
{
	char file[32], path[PATH_LEN] = "", why[WHY_LEN] = "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(to, STDIN_FILENO);
	close_range(STDIN_FILENO + 1, ~0U, 0);
	snprintf(file, sizeof(file), "/proc/%d/exe", pid);
	if (readlink(file, path, sizeof(path) - 1) > 0 &&
	    write(STDIN_FILENO, path, sizeof(path)) == sizeof(path))
		pvas_program_check(file, why, sizeof(why));
	_exit(write(STDIN_FILENO, why, sizeof(why)) != sizeof(why));
}

/* Returns whether there is an answer in time. */
static bool read_answer(int64_t *patience, int fd, char *text, size_t len)
{
	const int64_t begin = now_ms();
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	bool whole = *patience > 0 && poll(&answer, 1, (int)*patience) == 1 &&
		     read(fd, text, len) == (ssize_t)len;

	*patience -= now_ms() - begin;
	return whole;
}

/*
 * The path of its program, and why that can't be a task; empty: it can, or nothing is known in
 * time. Returns false if the process has ended.
 */
static bool ask_child(struct left *left, pid_t pid, char path[static PATH_LEN],
		      char why[static WHY_LEN])
{
	bool known = false;
	int ends[2];
	pid_t child;

	if (left->for_names <= 0 || pipe2(ends, O_CLOEXEC) < 0)
		return true;
	child = fork();
	if (!child)
		look_in_child(pid, ends[1]);
	close(ends[1]);
	if (child > 0)
		known = read_answer(&left->for_names, ends[0], path, PATH_LEN);
	if (known && !read_answer(&left->for_files, ends[0], why, WHY_LEN))
		why[0] = '\0';
	close(ends[0]);
	/* job_reap() waits for it. */
	if (child > 0)
		kill(child, SIGKILL);
	return known || left->for_names <= 0;
}

/* It is printed on a terminal. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static void report(struct left *left, const struct task *task, unsigned int rank)
{
	char path[PATH_LEN] = "", why[WHY_LEN] = "";

	if (!ask_child(left, task->pid, path, why))
		return;
	make_printable(path);
	report_note("rank %u (pid %d) is no task any more: %s runs outside the space%s%s", rank,
		    task->pid, path[0] ? path : "its program", why[0] ? ": " : "", why);
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
