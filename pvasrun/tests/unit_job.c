// SPDX-License-Identifier: GPL-2.0-only
/* Children that change without end, as those of other users may. */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../clock.h"
#include "../job.h"
#include "../signals.h"
#include "unit.h"

#define STRANGER	1	/* a process that is no child */
#define SECONDS		60	/* to fail after, instead of never */

static bool flood;

/* Instead of libc's: as if a stranger had changed each time that somebody asks for all. */
pid_t waitpid(pid_t pid, int *wait_status, int options)
{
	if (!flood || pid != -1)
		return wait4(pid, wait_status, options, NULL);
	*wait_status = 0xffff;		/* WIFCONTINUED() */
	return STRANGER;
}

static void turns(struct loop *loop, unsigned int nr)
{
	while (nr--)
		loop_turn(loop, 0);
}

static void changes(struct job *job, struct loop *loop, pid_t pid)
{
	siginfo_t info;

	kill(pid, SIGSTOP);
	check(!waitid(P_PID, pid, &info, WSTOPPED | WNOWAIT));
	turns(loop, 4);
	check(job->tasks[0].stopped == SIGSTOP);
	/* of the signals that are forwarded, one that comes after SIGCHLD */
	raise(SIGCONT);
	turns(loop, 8);
	check(!job->tasks[0].stopped);
	kill(pid, SIGKILL);
	check(!waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
	turns(loop, 4);
	check(job->tasks[0].ended && !job->live);
}

static void in_flood(void)
{
	const struct app app = { .argv = (char *[]){ "task", NULL }, .tasks = 1 };
	const struct options opt = { .tasks = 1, .apps = (struct app *)&app, .nr_apps = 1,
				     .no_kill = true };
	struct signals signals;
	struct loop loop;
	struct job job;
	pid_t pid;

	alarm(SECONDS);
	check(!loop_open(&loop) && !job_init(&job, &opt));
	check(!signals_open(&signals, &loop, &job));
	pid = fork();
	while (!pid)
		pause();
	job_started(&job, 0, pid, false);
	job.ending = true;	/* its end is no news */
	flood = true;
	raise(SIGCHLD);
	changes(&job, &loop, pid);
	flood = false;
	signals_close(&signals);
	job_free(&job);
	loop_close(&loop);
}

/* Tasks that SIGKILL does not end are left behind in the end; each end of one begins it anew. */
static void test_left_behind(void)
{
	struct options opt = { .tasks = 2, .nr_apps = 0 };
	struct job job;
	int64_t now = now_ms();

	check(!job_init(&job, &opt));
	job.live = 2;
	job.ending = true;
	job.leave_at = now + 100;
	check(job_deadline(&job, now) == now + 100 && job.live == 2);
	check(job_deadline(&job, now + 100) == -1 && !job.live);
	job_free(&job);
}

/* The peer's last messages have not been read yet. */
static const char *too_early(void *asked, unsigned int rank, bool *maybe)
{
	++*(unsigned int *)asked;
	*maybe = true;
	return rank == 1 ? "too early" : NULL;
}

static void zombie(struct job *job, unsigned int rank, int status)
{
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(status);
	job_started(job, rank, pid, false);
	check(!waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
}

static void end_of_task(struct job *job, unsigned int rank, int status)
{
	zombie(job, rank, status);
	job_reap(job);
}

/* A rank fails because a peer has left, and pvasrun does not know yet why that has ended. */
static void test_cause(bool in_time)
{
	struct app app = { .argv = (char *[]){ "task", NULL }, .tasks = 2 };
	const struct options opt = { .tasks = 2, .apps = &app, .nr_apps = 1 };
	unsigned int asked = 0;
	struct job job;
	int64_t now;

	check(!job_init(&job, &opt));
	job.left_early = too_early;
	job.left_early_arg = &asked;
	end_of_task(&job, 1, 0);
	check(!job.ending && job.exits_pending == 1 && asked == 1);
	end_of_task(&job, 0, 1);
	/* pvasrun goes on meanwhile, and is not over */
	now = now_ms();
	check(!job.failed && !job.live && job_goes_on(&job));
	check(job_deadline(&job, now) <= now + 10 && !job.failed);
	if (in_time) {
		/* The server has read all: the job has ended because of rank 1. */
		job_resolve_exit(&job, 1);
		check(job.ending && job.status == 1 && !job.exits_pending);
	}
	job_deadline(&job, now + 2000);
	check(job.status == 1 && job.failed && !job.cause_until);
	check(in_time == !job.exits_pending);
	job_deadline(&job, now + 4000);
	check(!job_goes_on(&job));
	job_free(&job);
}

static const char *never_early(void *asked, unsigned int rank, bool *maybe)
{
	(void)asked;
	(void)rank;
	*maybe = false;
	return NULL;
}

/*
 * The status of a rank that could not complete an access to an ended peer comes first. With
 * @other 1 nothing tells them apart.
 */
static void one_failure(int other, int status)
{
	struct app app = { .argv = (char *[]){ "task", NULL }, .tasks = 3 };
	const struct options opt = { .tasks = 3, .apps = &app, .nr_apps = 1 };
	struct job job;

	check(!job_init(&job, &opt));
	job.left_early = never_early;
	zombie(&job, 0, 1);
	zombie(&job, 1, other);
	zombie(&job, 2, 1);
	job_reap(&job);
	job_deadline(&job, now_ms());
	check(job.status == status && job.failed && !job.live && !job_goes_on(&job));
	job_free(&job);
}

static void test_several_failures(void)
{
	one_failure(9, 9);
	one_failure(1, 1);
	one_failure(0, 1);
}

/* With --no-kill, or if it is no job of MPI, each failure is reported at once. */
static void test_no_cause(bool no_kill)
{
	struct app app = { .argv = (char *[]){ "task", NULL }, .tasks = 3 };
	const struct options opt = { .tasks = 3, .apps = &app, .nr_apps = 1, .no_kill = no_kill };
	unsigned int asked = 0;
	struct job job;

	check(!job_init(&job, &opt));
	job.left_early = no_kill ? too_early : NULL;
	job.left_early_arg = &asked;
	end_of_task(&job, 2, 0);
	end_of_task(&job, 0, 1);
	check(job.failed && job.status == 1 && !job.cause_until && job.ending == !no_kill);
	job_free(&job);
}

/* The user's signals are not waited for: both end the job with what is known. */
static void test_cause_and_signal(void)
{
	struct app app = { .argv = (char *[]){ "task", NULL }, .tasks = 2 };
	const struct options opt = { .tasks = 2, .apps = &app, .nr_apps = 1 };
	unsigned int asked = 0;
	struct job job;

	check(!job_init(&job, &opt));
	job.left_early = too_early;
	job.left_early_arg = &asked;
	end_of_task(&job, 1, 0);
	end_of_task(&job, 0, 1);
	check(job.cause_until);
	job_kill_now(&job, SIGINT);
	job_deadline(&job, now_ms() + 10);
	check(!job_goes_on(&job) && job.status == STATUS_SIGNAL + SIGINT);
	job_free(&job);
}

void test_job(void)
{
	int wait_status;
	pid_t pid = fork();

	if (!pid) {
		in_flood();
		_exit(check_failures() > 0);
	}
	check(waitpid(pid, &wait_status, 0) == pid && !wait_status);
	test_left_behind();
	test_cause(true);
	test_cause(false);
	test_no_cause(true);
	test_no_cause(false);
	test_cause_and_signal();
	test_several_failures();
}
