/* SPDX-License-Identifier: GPL-2.0-only */
/* Start the tasks. */
#ifndef PVASRUN_LAUNCH_H
#define PVASRUN_LAUNCH_H

#include <signal.h>
#include <sys/resource.h>

#include "bind.h"
#include "event.h"
#include "guard.h"
#include "input.h"
#include "job.h"
#include "mpi.h"
#include "output.h"
#include "space.h"

/* The parts of a run that starting a task needs */
struct launcher {
	const struct options *opt;
	struct loop *loop;
	struct job *job;
	struct job_space *space;
	struct mpi *mpi;
	const struct places *places;
	const struct memory *memory;
	struct output *output;
	struct guard *guard;
	struct input *input;
	const sigset_t *ignored;	/* signals that tasks ignore, too */
	struct rlimit files;		/* of each task */
	struct rlimit processor_time;
};

/*
 * Start all tasks. An error is reported and becomes the job's status; then, or if a
 * task has failed already, no more tasks are started.
 */
void launch(const struct launcher *launcher);

/* In the guard's thread: a start hangs. As launch() at its end, and the job ends. */
void launch_given_up(const struct launcher *launcher);

#endif
