/* SPDX-License-Identifier: GPL-2.0-only */
/* Ranks that are stopped: the job waits for them, so the user is told. */
#ifndef PVASRUN_STOPS_H
#define PVASRUN_STOPS_H

#include "job.h"

/* As waitpid() reports it: @task was stopped by @signo, or (0) goes on. */
void stops_note(struct job *job, struct task *task, int signo);

/* Due at job->stop_at: say which tasks are still stopped. */
void stops_report(struct job *job);

/* Let those that are stopped act on a signal they have got. */
void stops_wake(const struct job *job);

#endif
