/* SPDX-License-Identifier: GPL-2.0-only */
/* The job: its tasks, what became of them, and how it comes to its end. */
#ifndef PVASRUN_JOB_H
#define PVASRUN_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "options.h"

#define STATUS_FAILED		1	/* pvasrun itself */
#define STATUS_TIMEOUT		124	/* as timeout(1) */
#define STATUS_CANNOT_EXECUTE	126	/* as a shell */
#define STATUS_NOT_FOUND	127
#define STATUS_SIGNAL		128	/* + its number */

/* Between asking tasks to end (SIGTERM, or the user's signal) and SIGKILL */
#define GRACE_MS 3000

struct task {
	pid_t pid;		/* 0: not started */
	unsigned int index;	/* its partition */
	bool ended;
	bool exit_pending;		/* with status 0, but has it said farewell? */
	bool in_own_group;	/* leads a process group, else it is in pvasrun's */
	bool stop_reported;
	int stopped;		/* by this signal, 0: it is not */
	const struct app *app;
};

/* pid -> rank; open addressing, never more than half full */
struct pid_map {
	unsigned int *ranks;	/* rank + 1, 0: free */
	unsigned int mask;
};

struct job {
	const struct options *opt;
	struct task *tasks;
	struct pid_map map;
	unsigned int started;
	unsigned int live;
	unsigned int exits_pending;	/* tasks that are exit_pending */
	int64_t exit_pending_until;

	int status;		/* pvasrun's exit status; the first failing task's */
	int death_signal;	/* the signal that killed that task, 0 if none */
	bool failed;		/* @status is final */
	bool ending;		/* the tasks were told to end */
	int64_t timeout_at;	/* when its time is over; 0: never */
	int64_t kill_at;	/* when those left get SIGKILL; 0: never */
	int64_t stop_at;	/* when tasks that are stopped are reported; 0: none is */
	int interrupt;		/* the last INT, TERM, HUP or QUIT passed on, 0: none */
	int64_t interrupted_at;

	/*
	 * Was it too early for this rank to end, though with status 0? Returns
	 * what is wrong with it, or NULL. @maybe: what it said last can still be
	 * on its way; job_resolve_exit() follows. May be NULL itself.
	 */
	const char *(*left_early)(void *arg, unsigned int rank, bool *maybe);
	void *left_early_arg;
};

int job_init(struct job *job, const struct options *opt);
void job_free(struct job *job);

/* Rank was started as pid. */
void job_started(struct job *job, unsigned int rank, pid_t pid, bool in_own_group);

/* Collect all children that have ended, and see which are stopped. */
void job_reap(struct job *job);

/* Rank has ended, with status 0, but others count on it: the end of the job. */
void job_ended_early(struct job *job, unsigned int rank, const char *how);

/* All that rank has said is known: if it is exit_pending, judge it. */
void job_resolve_exit(struct job *job, unsigned int rank);
void job_resolve_exits(struct job *job);

/* Send a signal to all tasks; with @own_groups_only not to those in pvasrun's group. */
void job_kill(struct job *job, int signo, bool own_groups_only);

/* Tell the tasks to end, and see to it that they do. */
void job_end(struct job *job, int status);

/* The user wants it to end: @signo was passed on to the tasks. */
void job_interrupted(struct job *job, int signo);

/* No more patience: SIGKILL, on behalf of the user's @signo. */
void job_kill_now(struct job *job, int signo);

/* The same after the grace, for tasks that have @signo already. */
void job_end_after(struct job *job, int signo);

/* Do what is due; returns when the next thing will be, or -1. */
int64_t job_deadline(struct job *job, int64_t now);

#endif
