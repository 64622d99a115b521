/* SPDX-License-Identifier: GPL-2.0-only */
/* Tasks that are stopped: the job waits for them, so the user is warned. */
#ifndef PVASRUN_STOPPED_H
#define PVASRUN_STOPPED_H

#include "job.h"

/* As waitpid() reports: @task was stopped by @signo, or (0) continued. */
void stopped_update(struct job *job, struct task *task, int signo);

/* At job->stop_at: warn of tasks that are still stopped. */
void stopped_report(struct job *job);

/* Continue stopped tasks, so that they handle a pending signal. */
void stopped_continue(const struct job *job);

#endif
