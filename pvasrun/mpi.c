// SPDX-License-Identifier: GPL-2.0-only
/* MPI programs as tasks. */
#include "mpi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "parse.h"
#include "report.h"

enum { NOT_SEEN, INSIDE, LEFT };

/* ---- the life of a rank ---- */

static const char without_init[] = "without MPI_Init, for which other ranks wait";
static const char without_finalize[] = "without MPI_Finalize";

/* Asked by the job: may a task end so? What it said last is read first. */
static const char *left_early(void *arg, unsigned int rank, bool *maybe)
{
	struct mpi *mpi = arg;

	pmix_host_read(mpi);
	pmi1_read(&mpi->pmi, rank);
	/* a library of PMIx gives up waiting for an answer to its farewell */
	*maybe = mpi->host;
	if (mpi->state[rank] == INSIDE)
		return without_finalize;
	*maybe = false;
	return mpi->state[rank] == NOT_SEEN && mpi->seen ? without_init : NULL;
}

void mpi_entered(struct mpi *mpi, unsigned int rank)
{
	unsigned int i;

	mpi->state[rank] = INSIDE;
	if (mpi->seen)
		return;
	mpi->seen = true;
	for (i = 0; i < mpi->opt->tasks; i++)
		if (mpi->job->tasks[i].ended && mpi->state[i] == NOT_SEEN)
			job_ended_early(mpi->job, i, without_init);
}

void mpi_left(struct mpi *mpi, unsigned int rank)
{
	mpi->state[rank] = LEFT;
	job_settle(mpi->job, rank);
}

void mpi_lost(struct mpi *mpi, unsigned int rank)
{
	job_settle(mpi->job, rank);
}

/* As a status a process can have; an aborted job has not succeeded. */
static int abort_status(int code)
{
	return code & 0xff ? code & 0xff : STATUS_FAILED;
}

void mpi_aborted(struct mpi *mpi, unsigned int rank, int code, const char *text)
{
	const struct task *task = &mpi->job->tasks[rank];

	mpi->state[rank] = LEFT;
	/* most likely because it has seen another one go */
	job_settle_all(mpi->job);
	if (mpi->job->ending)
		return;
	if (!strcmp(text, "N/A"))	/* Open MPI has nothing to say */
		text = "";
	complain("rank %u (pid %d, %s) called MPI_Abort: code %d%s%s", rank, task->pid,
		 task->app->argv[0], code, *text ? ", " : "", text);
	job_end(mpi->job, abort_status(code));
}

void mpi_spawn_refused(struct mpi *mpi, unsigned int rank, const char *program)
{
	complain("rank %u (pid %d): MPI_Comm_spawn of %s: not supported (start all ranks at once, several programs with ':')",
		 rank, mpi->job->tasks[rank].pid, *program ? program : "a program");
}

void mpi_failed(struct mpi *mpi, const char *why)
{
	if (!mpi->job->ending)
		complain("%s", why);
	job_end(mpi->job, STATUS_FAILED);
}

/* ---- begin and end ---- */

/*
 * Whoever knows it is a rank, see handshake.c: the library believes each caller
 * whom he says he is, and any user can call. So nobody can guess it, and it is in
 * no file's name.
 */
static int make_name(struct mpi *mpi)
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(mpi->name, sizeof(mpi->name), "pvasrun-%d-%016jx%016jx", getpid(),
		 (uintmax_t)random[0], (uintmax_t)random[1]);
	return 0;
}

#define SHARED_MEMORY "/dev/shm"

/*
 * There before ranks are told of it: a name that they know and nobody has could
 * be anybody's. Without it no rank is served, see pmix_host.c; but programs that
 * are no ranks do not miss it.
 */
static void make_shared_directory(struct mpi *mpi)
{
	if (access(SHARED_MEMORY, W_OK | X_OK))
		return;
	scratch_make(&mpi->shm, SHARED_MEMORY, mpi->no_shm, sizeof(mpi->no_shm));
}

/* What a shell starts, for one, is a process outside of the space. */
static void look_at_programs(struct mpi *mpi)
{
	unsigned int i, said;

	mpi->all_direct = true;
	for (i = 0; i < mpi->opt->nr_apps; i++) {
		said = needs(mpi->opt->apps[i].path);
		if (!(said & NEEDS_MPI))
			mpi->all_direct = false;
		if (said & NEEDS_OWN_PATH)
			mpi->own_paths = true;
	}
}

static int open_ways(struct mpi *mpi)
{
	/* the ids are those that the server is told of */
	const struct handshake wanted = {
		.nspace = mpi->name, .tasks = mpi->opt->tasks, .uid = getuid(), .gid = getgid(),
	};
	int err = 0;

	if (mpi->pmix)
		err = gate_open(&mpi->gate, mpi->loop, &wanted, pmix_host_start, mpi);
	if (!err && mpi->pmi1)
		err = pmi1_open(&mpi->pmi, mpi);
	return err;
}

/* The descriptor by which pvasrun itself is a rank of an outer job is not its tasks'. */
static void keep_outer_job(void)
{
	const char *fd = getenv("PMI_FD");
	unsigned int number;

	if (fd && !parse_count(fd, 3, INT_MAX, &number))
		fcntl(number, F_SETFD, FD_CLOEXEC);
}

int mpi_open(struct mpi *mpi, const struct options *opt, struct loop *loop, struct job *job,
	     const struct places *places)
{
	int err;

	*mpi = (struct mpi){ .opt = opt, .loop = loop, .job = job, .places = places };
	mpi->gate.event.fd = mpi->gate.callers.netlink = -1;
	mpi->gate.pause.event.fd = mpi->gate.patience.event.fd = -1;
	mpi->pmi.loop.self.fd = mpi->pmi.number = -1;
	memset(mpi->low, -1, sizeof(mpi->low));
	mpi->pmix = opt->mpi == MPI_AUTO || opt->mpi == MPI_PMIX;
	mpi->pmi1 = opt->mpi == MPI_AUTO || opt->mpi == MPI_PMI1;
	if (opt->mpi == MPI_NONE)
		return 0;
	keep_outer_job();
	err = make_name(mpi);
	if (err)
		return err;
	look_at_programs(mpi);
	mpi->state = calloc(opt->tasks, sizeof(*mpi->state));
	if (!mpi->state)
		return -ENOMEM;
	err = open_ways(mpi);
	if (!err) {
		job->left_early = left_early;
		job->left_early_arg = mpi;
		if (mpi->pmix) {
			make_shared_directory(mpi);
			pmix_host_reserve(mpi);
		}
		return 0;
	}
	mpi_close(mpi);
	if (opt->mpi != MPI_AUTO)
		return err;
	note("no MPI: cannot listen on 127.0.0.1: %s", strerror(-err));
	return 0;
}

int mpi_give(struct mpi *mpi, unsigned int rank)
{
	return mpi->pmi1 ? pmi1_give(&mpi->pmi, rank) : 0;
}

int mpi_inherit(const struct mpi *mpi)
{
	return mpi->pmi1 ? pmi1_inherit(&mpi->pmi) : 0;
}

void mpi_given(struct mpi *mpi)
{
	if (mpi->pmi1)
		pmi1_given(&mpi->pmi);
}

/*
 * Not before all tasks are there: a server's threads and descriptors then
 * concern none of them. Who calls earlier waits, as he would for the others.
 */
void mpi_serve(struct mpi *mpi)
{
	int err = 0;

	if (mpi->pmix)
		err = gate_serve(&mpi->gate);
	if (!err && mpi->pmi1)
		err = pmi1_serve(&mpi->pmi);
	if (err)
		mpi_failed(mpi, strerror(-err));
}

void mpi_close(struct mpi *mpi)
{
	if (!mpi->state)
		return;
	if (mpi->pmix) {
		gate_close(&mpi->gate);
		pmix_host_stop(mpi);
		scratch_remove(&mpi->tmp);
		scratch_remove(&mpi->shm);
	}
	if (mpi->pmi1)
		pmi1_close(&mpi->pmi);
	mpi->pmix = mpi->pmi1 = false;
	free(mpi->state);
	mpi->state = NULL;
}
