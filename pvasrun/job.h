/* SPDX-License-Identifier: GPL-2.0-only */
/* The job: its tasks, their exit status, and its end. */
#ifndef PVASRUN_JOB_H
#define PVASRUN_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "options.h"

#define STATUS_FAILED		1	/* an error of pvasrun itself */
#define STATUS_TIMEOUT		124	/* as timeout(1) */
#define STATUS_CANNOT_EXECUTE	126	/* as a shell */
#define STATUS_NOT_FOUND	127
#define STATUS_SIGNAL		128	/* + its number */

/* Between SIGTERM, or the user's signal, and SIGKILL */
#define GRACE_MS 3000
/* After SIGKILL, and after each task's end since, until those that don't end are left behind */
#define KILLED_MS 30000

struct task {
	pid_t pid;		/* 0: not started */
	unsigned int index;	/* its partition */
	bool ended;
	bool exit_pending;	/* status 0, but its finalize request has not arrived yet */
	bool in_own_group;	/* started as leader of a group; else in pvasrun's group */
	bool stop_reported;
	bool left_reported;	/* its program is not in the space any more */
	bool terminated;	/* died of the SIGTERM that its group got, too */
	int64_t sigterm_at;	/* when that was sent, the last one: CLOCK_BOOTTIME, nanoseconds */
	int stopped;		/* by this signal; 0: not stopped */
	int64_t stopped_at;
	const struct app *app;
};

/* How a task has failed. */
struct failure {
	unsigned int rank;
	int wait_status;
};

/* pid -> rank; open addressing, never more than half full */
struct pid_map {
	unsigned int *ranks;	/* rank + 1, 0: free */
	unsigned int mask;
};

struct job {
	const struct options *opt;
	const struct pvas_space *space;	/* NULL: not yet */
	const struct input *input;	/* of --stdin all; NULL: none */
	struct task *tasks;
	struct pid_map map;
	unsigned int started;
	unsigned int live;
	unsigned int exits_pending;	/* tasks with exit_pending */
	int64_t exit_pending_until;

	int status;		/* pvasrun's exit status; the first failing task's */
	int death_signal;	/* the signal that killed that task, 0 if none */
	bool failed;		/* @status is final */
	bool ending;		/* the tasks were told to end */
	int64_t timeout_at;	/* of --timeout; 0: never */
	struct failure cause;	/* of those whose cause is sought; see cause.h */
	int64_t cause_until;	/* the end of that; 0: none is sought */
	int64_t cause_look_at;	/* when to look again; 0: never */
	int64_t kill_at;	/* when remaining tasks get SIGKILL; 0: never */
	int64_t leave_at;	/* when those SIGKILL has not ended are left; 0: never */
	int64_t stop_at;	/* when to report stopped tasks; 0: never */
	int interrupt;		/* the last INT, TERM, HUP or QUIT passed on, 0: none */
	int64_t interrupted_at;

	/*
	 * Called if a rank has exited with status 0. Returns why that was too early, or
	 * NULL. @maybe: its last messages may not have been read yet; then
	 * job_resolve_exit() is called later. The pointer may be NULL.
	 */
	const char *(*left_early)(void *arg, unsigned int rank, bool *maybe);
	void *left_early_arg;
};

int job_init(struct job *job, const struct options *opt);
void job_free(struct job *job);

/* @rank was started as @pid. */
void job_started(struct job *job, unsigned int rank, pid_t pid, bool in_own_group);

/*
 * Wait for children that have ended, stopped or continued: for all tasks. If others are left
 * after two milliseconds, there is a SIGCHLD again.
 */
void job_reap(struct job *job);

/*
 * If @pgid is the group of a task that SIGTERM has ended, after pvasrun sent it to the whole group:
 * when that was, as in struct task. 0: it is not.
 */
int64_t job_group_terminated_at(const struct job *job, pid_t pgid);

/* There are tasks, or their ends are not decided yet. */
bool job_goes_on(const struct job *job);

/* A signal has stopped each task that has not ended. */
bool job_is_stopped(const struct job *job);

/* Tasks were started, and all of them have been waited for: none was left behind. */
bool job_is_over(const struct job *job);

/* End the job because of this, unless the user wants it to go on. */
void job_fail(struct job *job, const struct failure *failure);

/* @rank has exited with status 0, but peers depend on it: end the job. */
void job_ended_early(struct job *job, unsigned int rank, const char *how);

/* All messages of @rank have been read: decide, if its exit is pending. */
void job_resolve_exit(struct job *job, unsigned int rank);
void job_resolve_exits(struct job *job);
/* Send a signal to all tasks; with @own_groups_only not to those in pvasrun's group. */
void job_kill(struct job *job, int signo, bool own_groups_only);

/* Send a signal to one, unless it has ended. */
void job_signal(const struct job *job, unsigned int rank, int signo);

/*
 * End all tasks: SIGTERM, and SIGKILL after GRACE_MS. Before a message tells why: another writer
 * to the same file can hold that up.
 */
void job_end(struct job *job, int status);

/* @signo, by which the user asks the job to end, was forwarded to the tasks. */
void job_interrupted(struct job *job, int signo);

/* SIGKILL at once, because of the user's second @signo. */
void job_kill_now(struct job *job, int signo);

/* SIGKILL after GRACE_MS, for tasks that have got @signo already. */
void job_end_after(struct job *job, int signo);

/* Do what is due at @now; returns the next deadline, or -1. */
int64_t job_deadline(struct job *job, int64_t now);

#endif
