// SPDX-License-Identifier: GPL-2.0-only
/* The job: its tasks, their exit status, and its end. */
#include "job.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cause.h"
#include "clock.h"
#include "input.h"
#include "report.h"
#include "stopped.h"

/* ---- from pid to rank ---- */

static int map_init(struct pid_map *map, unsigned int tasks)
{
	unsigned int room = 4;

	while (room < 2 * tasks)
		room *= 2;
	map->mask = room - 1;
	map->ranks = calloc(room, sizeof(*map->ranks));
	return map->ranks ? 0 : -ENOMEM;
}

/* Pids come in sequence, so the low bits alone spread them well. */
static unsigned int *map_slot(const struct job *job, pid_t pid)
{
	unsigned int at = pid & job->map.mask;

	while (job->map.ranks[at] && job->tasks[job->map.ranks[at] - 1].pid != pid)
		at = (at + 1) & job->map.mask;
	return &job->map.ranks[at];
}

/* A pid can be reused during a job: then the slot of the ended task is overwritten. */
static void map_add(struct job *job, pid_t pid, unsigned int rank)
{
	*map_slot(job, pid) = rank + 1;
}

int job_init(struct job *job, const struct options *opt)
{
	unsigned int i, rank;

	*job = (struct job){ .opt = opt, .timeout_at = opt->timeout_at };
	job->tasks = calloc(opt->tasks, sizeof(*job->tasks));
	if (!job->tasks || map_init(&job->map, opt->tasks))
		return -ENOMEM;
	for (i = 0; i < opt->nr_apps; i++)
		for (rank = 0; rank < opt->apps[i].tasks; rank++)
			job->tasks[opt->apps[i].first_rank + rank].app = &opt->apps[i];
	return 0;
}

void job_free(struct job *job)
{
	free(job->tasks);
	free(job->map.ranks);
}

void job_started(struct job *job, unsigned int rank, pid_t pid, bool in_own_group)
{
	map_add(job, pid, rank);
	job->tasks[rank].pid = pid;
	job->tasks[rank].in_own_group = in_own_group;
	job->started++;
	job->live++;
}

/* ---- signals to all ---- */

/*
 * The task is not reaped yet, so its pid is valid. Its group is not known: a task that
 * was started in pvasrun's may have created its own, as interactive shells do, and one
 * that had its own may have left it to its children. So signal both, but not twice.
 */
static void kill_task(const struct task *task, int signo, bool own_groups_only)
{
	bool group = !kill(-task->pid, signo);
	pid_t now;

	if (group && signo != SIGKILL) {
		now = getpgid(task->pid);
		if (now == task->pid || (own_groups_only && now == getpgrp()))
			return;
	}
	kill(task->pid, signo);
}

void job_kill(struct job *job, int signo, bool own_groups_only)
{
	unsigned int rank;

	for (rank = 0; rank < job->opt->tasks; rank++) {
		struct task *task = &job->tasks[rank];

		if (!task->pid || task->ended || (own_groups_only && !task->in_own_group))
			continue;
		if (signo == SIGTERM)
			task->sigterm_at = clock_ns(CLOCK_BOOTTIME);
		kill_task(task, signo, own_groups_only);
	}
}

void job_signal(const struct job *job, unsigned int rank, int signo)
{
	const struct task *task = &job->tasks[rank];

	if (task->pid && !task->ended)
		kill_task(task, signo, false);
}

/* ---- the end ---- */

void job_end(struct job *job, int status)
{
	if (!job->failed)
		job->status = status;
	job->failed = true;
	if (job->ending)
		return;
	job->ending = true;
	job->kill_at = now_ms() + GRACE_MS;
	job_kill(job, SIGTERM, false);
	/* a stopped task would not handle it */
	job_kill(job, SIGCONT, false);
}

void job_interrupted(struct job *job, int signo)
{
	job->interrupt = signo;
	job->interrupted_at = now_ms();
}

/* Tasks can survive a signal, and go on for days: then an end has another cause. */
static bool was_lately_interrupted(const struct job *job)
{
	return job->interrupt && now_ms() < job->interrupted_at + GRACE_MS;
}

/* Did the task end because of the user's signal? */
static bool was_interrupted(const struct job *job, int wait_status)
{
	if (job->interrupt && WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == job->interrupt)
		return true;
	return was_lately_interrupted(job);
}

static void record_signal(struct job *job, int signo)
{
	if (job->failed)
		return;
	job->failed = true;
	job->death_signal = signo;
	job->status = STATUS_SIGNAL + signo;
}

static void record_status(struct job *job, int wait_status)
{
	if (WIFSIGNALED(wait_status))
		record_signal(job, WTERMSIG(wait_status));
	else if (!job->failed)
		job->status = WEXITSTATUS(wait_status);
	job->failed = true;
}

void job_kill_now(struct job *job, int signo)
{
	record_signal(job, signo);
	job->ending = true;
	job->kill_at = 0;
	job->leave_at = now_ms() + KILLED_MS;
	job_kill(job, SIGKILL, false);
}

/* No SIGTERM: tasks may be handling @signo, for instance saving their state. */
void job_end_after(struct job *job, int signo)
{
	record_signal(job, signo);
	if (job->ending)
		return;
	job->ending = true;
	job->kill_at = now_ms() + GRACE_MS;
}

void job_fail(struct job *job, const struct failure *failure)
{
	const struct task *task = &job->tasks[failure->rank];
	const bool first = !job->failed;
	const char *condition;

	record_status(job, failure->wait_status);
	if (job->ending)
		return;		/* it was told to end */
	if (was_interrupted(job, failure->wait_status)) {
		if (!job->opt->no_kill)
			job_end_after(job, job->interrupt);
		return;
	}
	if (!job->opt->no_kill)
		job_end(job, job->status);
	report_failure(failure->rank, task->pid, task->app->argv[0], failure->wait_status);
	condition = first ? task->app->condition : NULL;
	if (condition)
		report_warning("%s: can be a task, but %s", task->app->argv[0], condition);
}

static void task_failed(struct job *job, unsigned int rank, int wait_status)
{
	const struct failure failure = { rank, wait_status };

	if (!cause_seek(job, &failure))
		job_fail(job, &failure);
}

void job_ended_early(struct job *job, unsigned int rank, const char *how)
{
	const struct task *task = &job->tasks[rank];

	if (job->ending)
		return;
	job_end(job, STATUS_FAILED);
	report_error("rank %u (pid %d, %s) exited %s", rank, task->pid, task->app->argv[0], how);
}

/*
 * A rank may also leave because of the user's signal, for instance when it has saved its
 * state. Others may do the same, or wait for it for ever.
 */
static void rank_left_early(struct job *job, unsigned int rank, const char *how)
{
	if (!was_lately_interrupted(job)) {
		job_ended_early(job, rank, how);
	} else if (!job->ending) {
		job->ending = true;
		job->kill_at = now_ms() + GRACE_MS;
	}
}

/* A busy PMIx server may read a rank's finalize request only after its exit. */
#define EXIT_PENDING_MS 10000

/*
 * The question can read what other ranks have asked for, and so lead to an abort that asks
 * about this exit too: the exit is pending from before the question to after the answer.
 */
static void resolve_exit(struct job *job, unsigned int rank, bool wait)
{
	const char *early;
	bool maybe;

	early = job->left_early(job->left_early_arg, rank, &maybe);
	if (!job->tasks[rank].exit_pending || (early && maybe && wait))
		return;
	job->tasks[rank].exit_pending = false;
	job->exits_pending--;
	if (early)
		rank_left_early(job, rank, early);
}

static void ended_well(struct job *job, unsigned int rank)
{
	if (!job->left_early)
		return;
	job->tasks[rank].exit_pending = true;
	job->exits_pending++;
	job->exit_pending_until = now_ms() + EXIT_PENDING_MS;
	resolve_exit(job, rank, true);
}

void job_resolve_exit(struct job *job, unsigned int rank)
{
	if (job->tasks[rank].exit_pending)
		resolve_exit(job, rank, false);
}

void job_resolve_exits(struct job *job)
{
	unsigned int rank;

	for (rank = 0; rank < job->opt->tasks; rank++)
		job_resolve_exit(job, rank);
}

static void task_ended(struct job *job, unsigned int rank, int wait_status)
{
	struct task *task = &job->tasks[rank];

	task->ended = true;
	task->terminated = job->ending && task->in_own_group && WIFSIGNALED(wait_status) &&
			   WTERMSIG(wait_status) == SIGTERM;
	job->live--;
	if (job->input)
		input_rank_ended(job->input, rank);
	if (job->leave_at)
		job->leave_at = now_ms() + KILLED_MS;
	if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status))
		task_failed(job, rank, wait_status);
	else
		ended_well(job, rank);
}

static void child_changed(struct job *job, pid_t pid, int wait_status)
{
	unsigned int slot = *map_slot(job, pid);

	/* other children: from before execve(), or adopted */
	if (!slot || job->tasks[slot - 1].ended)
		return;
	if (WIFSTOPPED(wait_status))
		stopped_update(job, &job->tasks[slot - 1], WSTOPSIG(wait_status));
	else if (WIFCONTINUED(wait_status))
		stopped_update(job, &job->tasks[slot - 1], 0);
	else
		task_ended(job, slot - 1, wait_status);
}

static bool wait_for(struct job *job, pid_t which)
{
	int wait_status;
	pid_t pid = waitpid(which, &wait_status, WNOHANG | WUNTRACED | WCONTINUED);

	if (pid > 0)
		child_changed(job, pid, wait_status);
	return pid > 0;
}

#define REAP_MS 2

/* Returns whether there may be more. */
static bool wait_for_some(struct job *job)
{
	const int64_t until = now_ms() + REAP_MS;

	while (now_ms() < until)
		if (!wait_for(job, -1))
			return false;
	return true;
}

static void wait_for_tasks(struct job *job)
{
	unsigned int rank;

	for (rank = 0; rank < job->opt->tasks; rank++)
		if (job->tasks[rank].pid && !job->tasks[rank].ended)
			wait_for(job, job->tasks[rank].pid);
}

/*
 * Each call looks at all children. Thousands that a task has left, perhaps as another user,
 * can stop and continue faster than that. Then the tasks are looked at one by one, and the
 * rest has to wait for the loop's next turn.
 */
void job_reap(struct job *job)
{
	if (!wait_for_some(job))
		return;
	wait_for_tasks(job);
	raise(SIGCHLD);
}

int64_t job_group_terminated_at(const struct job *job, pid_t pgid)
{
	const unsigned int slot = *map_slot(job, pgid);

	return slot && job->tasks[slot - 1].terminated ? job->tasks[slot - 1].sigterm_at : 0;
}

bool job_goes_on(const struct job *job)
{
	return job->live || job->exits_pending || job->cause_until;
}

bool job_is_stopped(const struct job *job)
{
	unsigned int rank;

	for (rank = 0; rank < job->opt->tasks; rank++) {
		const struct task *task = &job->tasks[rank];

		if (task->pid && !task->ended && !task->stopped)
			return false;
	}
	return true;
}

bool job_is_over(const struct job *job)
{
	unsigned int rank;

	for (rank = 0; job->started && rank < job->opt->tasks; rank++)
		if (job->tasks[rank].pid && !job->tasks[rank].ended)
			return false;
	return job->started;
}

/* ---- deadlines ---- */

static void timeout_expired(struct job *job)
{
	job->failed = false;	/* with --no-kill a task may have failed before */
	job_end(job, STATUS_TIMEOUT);
	report_error("--timeout %s: the time is over, ending %u tasks", job->opt->timeout_text,
		     job->live);
}

static void kill_rest(struct job *job)
{
	if (job->interrupt)
		record_signal(job, job->interrupt);
	job->kill_at = 0;
	job->leave_at = now_ms() + KILLED_MS;
	job_kill(job, SIGKILL, false);
	report_note("%u tasks did not end in time: killing them", job->live);
}

/*
 * A call that can't be interrupted, of a file server that doesn't answer for example, keeps even
 * a killed task. It ends with the call.
 */
static void leave_rest(struct job *job)
{
	report_error("%u tasks can't be killed: left behind (a file server or a device doesn't answer?)",
		     job->live);
	job->leave_at = 0;
	job->live = 0;
}

/* The earlier of two times; 0 means none. */
static int64_t earlier(int64_t a, int64_t b)
{
	return a && (!b || a < b) ? a : b;
}

int64_t job_deadline(struct job *job, int64_t now)
{
	int64_t next;

	if (job->timeout_at && now >= job->timeout_at && !job->ending)
		timeout_expired(job);
	if (job->kill_at && now >= job->kill_at)
		kill_rest(job);
	if (job->leave_at && job->live && now >= job->leave_at)
		leave_rest(job);
	if (job->exits_pending && (job->ending || now >= job->exit_pending_until))
		job_resolve_exits(job);
	if (job->stop_at && now >= job->stop_at)
		stopped_report(job);
	cause_look(job, now);
	next = earlier(job->kill_at, job->stop_at);
	if (job->live)
		next = earlier(next, job->leave_at);
	if (job->exits_pending)
		next = earlier(next, job->exit_pending_until);
	next = earlier(next, job->cause_look_at);
	if (!job->ending)
		next = earlier(next, job->timeout_at);
	return next ? next : -1;
}
