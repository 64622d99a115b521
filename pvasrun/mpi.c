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

#include "cause.h"
#include "elf_needed.h"
#include "parse.h"
#include "report.h"

/* ---- the life of a rank ---- */

static const char without_init[] = "without MPI_Init, for which other ranks wait";
static const char without_finalize[] = "without MPI_Finalize";

/* Was it too early for a task to exit? Called by the job; see job.h. */
static const char *left_early(void *arg, unsigned int rank, bool *maybe)
{
	struct mpi *mpi = arg;

	pmix_host_read(&mpi->host);
	pmi1_read(&mpi->pmi, rank);
	/* clients of PMIx exit even if the server has not answered their finalize request */
	*maybe = mpi->host.started;
	if (mpi->states[rank] == RANK_INITIALIZED)
		return without_finalize;
	*maybe = false;
	return mpi->states[rank] == RANK_NOT_INITIALIZED && mpi->any_rank ? without_init : NULL;
}

static void rank_initialized(void *arg, unsigned int rank)
{
	struct mpi *mpi = arg;
	unsigned int i;

	mpi->states[rank] = RANK_INITIALIZED;
	if (mpi->any_rank)
		return;
	mpi->any_rank = true;
	for (i = 0; i < mpi->common.opt->tasks; i++)
		if (mpi->job->tasks[i].ended && mpi->states[i] == RANK_NOT_INITIALIZED)
			job_ended_early(mpi->job, i, without_init);
}

static void rank_finalized(void *arg, unsigned int rank)
{
	struct mpi *mpi = arg;

	mpi->states[rank] = RANK_FINALIZED;
	job_resolve_exit(mpi->job, rank);
}

static void rank_lost(void *arg, unsigned int rank)
{
	struct mpi *mpi = arg;

	job_resolve_exit(mpi->job, rank);
}

/* As an exit status; it must not be 0, for an aborted job has failed. */
static int abort_status(int code)
{
	return code & 0xff ? code & 0xff : STATUS_FAILED;
}

static void rank_aborted(void *arg, unsigned int rank, int code, const char *text)
{
	struct mpi *mpi = arg;
	const struct task *task = &mpi->job->tasks[rank];

	mpi->states[rank] = RANK_FINALIZED;
	/* the first decides, also if others are read while it asks about the ended ranks */
	if (mpi->aborting)
		return;
	mpi->aborting = true;
	/* it probably aborted because a peer ended: report that one first */
	cause_reap_ending(mpi->job, rank);
	job_resolve_exits(mpi->job);
	cause_settle(mpi->job);
	if (mpi->job->ending)
		return;
	if (!strcmp(text, "N/A"))	/* Open MPI's text if there is none */
		text = "";
	job_end(mpi->job, abort_status(code));
	report_error("rank %u (pid %d, %s) called MPI_Abort: code %d%s%s", rank, task->pid,
		     task->app->argv[0], code, *text ? ", " : "", text);
}

static void spawn_refused(void *arg, unsigned int rank, const char *program)
{
	const struct mpi *mpi = arg;

	report_error("rank %u (pid %d): MPI_Comm_spawn of %s: not supported (start all ranks at once, several programs with ':')",
		     rank, mpi->job->tasks[rank].pid, *program ? program : "a program");
}

static void server_failed(void *arg, const char *why)
{
	struct mpi *mpi = arg;
	const bool news = !mpi->job->ending;

	job_end(mpi->job, STATUS_FAILED);
	if (news)
		report_error("%s", why);
}

/* ---- the memory of the PMIx server ---- */

#define SERVER_HEAP (128UL << 20)
#define SERVER_HEAP_RANK (1UL << 20)

/* Far memory in zip, by default 16 times --ram, lies in this process's heap, too. */
static size_t heap_max(const struct options *opt)
{
	size_t far = opt->far.size ? opt->far.size : 16 * opt->far.ram;

	return SERVER_HEAP + opt->tasks * SERVER_HEAP_RANK + far;
}

static void server_is_full(void *arg, unsigned int rank)
{
	struct mpi *mpi = arg;
	const struct task *task = &mpi->job->tasks[rank];
	const bool news = !mpi->job->ending;

	job_end(mpi->job, STATUS_FAILED);
	if (news)
		report_error("rank %u (pid %d, %s): the PMIx server takes no more: what ranks have put and published fills %zu MiB",
			     rank, task->pid, task->app->argv[0],
			     mpi->proxy.heap_max >> 20);
}

/* ---- open and close ---- */

/*
 * The name is a secret: libpmix trusts any client that knows it, and any local user
 * can connect. So it is random, and never part of a file name. See handshake.c.
 */
static int make_name(struct mpi *mpi)
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(mpi->common.name, sizeof(mpi->common.name), "pvasrun-%d-%016jx%016jx", getpid(),
		 (uintmax_t)random[0], (uintmax_t)random[1]);
	return 0;
}

#define SHARED_MEMORY "/dev/shm"

/*
 * Created before ranks learn its name, so that no other user can create it first. Others
 * may have taken all that SHARED_MEMORY has room for; ranks that share one address space
 * create nothing there, so $TMPDIR will do. A failure is an error only once a rank
 * connects: other programs do not need it.
 */
static void create_shared_directory(struct mpi *mpi)
{
	if (access(SHARED_MEMORY, W_OK | X_OK))
		return;
	if (!session_dir_create(&mpi->shm, SHARED_MEMORY, mpi->shm_error, sizeof(mpi->shm_error)))
		return;
	report_note("%s", mpi->shm_error);
	if (session_dir_create(&mpi->shm, NULL, mpi->shm_error, sizeof(mpi->shm_error)))
		mpi->host.refusal = mpi->shm_error;
}

/* A shell that starts an MPI program, for one, starts it outside of the space. */
static void check_programs(struct mpi *mpi)
{
	unsigned int i, flags;

	mpi->all_direct = true;
	for (i = 0; i < mpi->common.opt->nr_apps; i++) {
		flags = mpi->common.opt->apps[i].elf;
		if (flags & ELF_NEEDS_MPI)
			mpi->any_direct = true;
		else
			mpi->all_direct = false;
		if (flags & ELF_HAS_RPATH)
			mpi->own_paths = true;
	}
}

static int open_protocols(struct mpi *mpi)
{
	/* the ids are those that pmix/job.c registers */
	const struct handshake expected = {
		.nspace = mpi->common.name, .tasks = mpi->common.opt->tasks,
		.uid = getuid(), .gid = getgid(),
	};
	int err = 0;

	if (mpi->pmix)
		err = pmix_proxy_open(&mpi->proxy, mpi->common.loop, &expected, pmix_host_start,
				      &mpi->host);
	mpi->proxy.heap_max = heap_max(mpi->common.opt);
	mpi->proxy.is_over = server_is_full;
	mpi->proxy.is_over_arg = mpi;
	if (!err && mpi->pmi1)
		err = pmi1_open(&mpi->pmi);
	return err;
}

/* If pvasrun is itself a rank of another job, its tasks must not inherit that PMI_FD. */
static void hide_outer_pmi_fd(void)
{
	const char *fd = getenv("PMI_FD");
	unsigned int number;

	if (fd && !parse_count(fd, 3, INT_MAX, &number))
		fcntl(number, F_SETFD, FD_CLOEXEC);
}

static void init(struct mpi *mpi, const struct options *opt, struct loop *loop, struct job *job,
		 const struct places *places, struct output *output)
{
	*mpi = (struct mpi){
		.job = job,
		.common = {
			.opt = opt, .loop = loop, .tasks = job, .places = places,
			.output = output,
			.callbacks = {
				.arg = mpi,
				.initialized = rank_initialized,
				.finalized = rank_finalized,
				.lost = rank_lost,
				.aborted = rank_aborted,
				.spawn_refused = spawn_refused,
				.failed = server_failed,
			},
		},
		.pmix = opt->mpi == MPI_AUTO || opt->mpi == MPI_PMIX,
		.pmi1 = opt->mpi == MPI_AUTO || opt->mpi == MPI_PMI1,
	};
	pmix_proxy_init(&mpi->proxy);
	pmix_host_init(&mpi->host, &mpi->common);
	pmi1_init(&mpi->pmi, &mpi->common);
}

static void prepare(struct mpi *mpi)
{
	mpi->job->left_early = left_early;
	mpi->job->left_early_arg = mpi;
	if (!mpi->pmix)
		return;
	pmix_host_reserve_fds(&mpi->host);
	pmix_host_open_texts(&mpi->host);
	create_shared_directory(mpi);
}

int mpi_open(struct mpi *mpi, const struct options *opt, struct loop *loop, struct job *job,
	     const struct places *places, struct output *output)
{
	int err;

	init(mpi, opt, loop, job, places, output);
	if (opt->mpi == MPI_NONE)
		return 0;
	hide_outer_pmi_fd();
	err = make_name(mpi);
	if (err)
		return err;
	check_programs(mpi);
	mpi->states = calloc(opt->tasks, sizeof(*mpi->states));
	if (!mpi->states)
		return -ENOMEM;
	err = open_protocols(mpi);
	if (!err) {
		prepare(mpi);
		return 0;
	}
	mpi_close(mpi);
	/* Each rank would believe that it is alone, and the job would seem to succeed. */
	if (opt->mpi != MPI_AUTO || mpi->any_direct)
		return err;
	report_warning("cannot listen on 127.0.0.1: %s: a task that loads MPI at run time will be a job of one rank",
		       strerror(-err));
	return 0;
}

int mpi_prepare_rank(struct mpi *mpi, unsigned int rank)
{
	return mpi->pmi1 ? pmi1_prepare_rank(&mpi->pmi, rank) : 0;
}

int mpi_setup_child(const struct mpi *mpi)
{
	return mpi->pmi1 ? pmi1_setup_child(&mpi->pmi) : 0;
}

int mpi_child_fd(const struct mpi *mpi)
{
	return mpi->pmi1 ? mpi->pmi.child_fd_number : -1;
}

void mpi_rank_started(struct mpi *mpi)
{
	if (mpi->pmi1)
		pmi1_rank_started(&mpi->pmi);
}

/*
 * Not before all tasks are started, so that none inherits anything of a server. Ranks
 * that connect earlier wait, as they would have to wait for the others.
 */
void mpi_serve(struct mpi *mpi)
{
	int err = 0;

	if (mpi->pmix)
		err = pmix_proxy_serve(&mpi->proxy);
	if (!err && mpi->pmi1)
		err = pmi1_serve(&mpi->pmi);
	if (err)
		server_failed(mpi, strerror(-err));
}

bool mpi_texts_wait(struct mpi *mpi)
{
	return texts_wait(&mpi->host.texts);
}

void mpi_flush(struct mpi *mpi)
{
	if (mpi->states && mpi->pmix)
		pmix_host_flush(&mpi->host);
}

void mpi_close(struct mpi *mpi)
{
	if (!mpi->states)
		return;
	if (mpi->pmix) {
		pmix_proxy_close(&mpi->proxy);
		pmix_host_close(&mpi->host);
		session_dir_remove(&mpi->shm);
	}
	if (mpi->pmi1)
		pmi1_close(&mpi->pmi);
	mpi->pmix = mpi->pmi1 = false;
	free(mpi->states);
	mpi->states = NULL;
}
