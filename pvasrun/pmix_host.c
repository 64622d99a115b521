// SPDX-License-Identifier: GPL-2.0-only
/* The PMIx server: load it, describe the job to it, and read its reports. */
#include "pmix_host.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "component.h"
#include "handoff.h"
#include "report.h"

#define PLUGIN "pvasrun-pmix.so"
/* At the end of the job, how long to wait for a slow reader of PMIx_Log output */
#define FLUSH_MS 2000
#define RETRY_MS 10

/* ---- reports from the server ---- */

static void handle_event(struct pmix_host *host, const struct rank_event *event)
{
	const struct mpi_callbacks *callbacks = &host->job->callbacks;

	if (event->rank >= host->job->opt->tasks)
		return;
	switch (event->kind) {
	case RANK_INIT:
		callbacks->initialized(callbacks->arg, event->rank);
		break;
	case RANK_FINALIZE:
		callbacks->finalized(callbacks->arg, event->rank);
		break;
	case RANK_LOST:
		callbacks->lost(callbacks->arg, event->rank);
		break;
	case RANK_ABORT:
		callbacks->aborted(callbacks->arg, event->rank, event->status, event->text);
		break;
	case RANK_SPAWN:
		callbacks->spawn_refused(callbacks->arg, event->rank, event->text);
		break;
	}
}

void pmix_host_read(struct pmix_host *host)
{
	struct rank_event event;

	if (host->event.fd < 0)
		return;
	while (read(host->event.fd, &event, sizeof(event)) == sizeof(event))
		handle_event(host, &event);
}

static void ready(struct event *event, uint32_t what)
{
	(void)what;
	pmix_host_read((struct pmix_host *)event);
}

static int open_pipe(struct pmix_host *host)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	/* the writer is a thread of libpmix: it may block until this side reads */
	fcntl(ends[1], F_SETFL, 0);
	host->event.fd = ends[0];
	host->writer = ends[1];
	return loop_watch(host->job->loop, &host->event, EPOLLIN);
}

/* ---- the job, as the server needs it ---- */

static char **describe_cpus(const struct mpi_job *job)
{
	char **cpus = calloc(job->opt->tasks, sizeof(*cpus));
	unsigned int rank;

	for (rank = 0; cpus && rank < job->opt->tasks; rank++)
		cpus[rank] = places_text(job->places, rank);
	return cpus;
}

static unsigned int *describe_apps(const struct mpi_job *job)
{
	unsigned int *app_of = calloc(job->opt->tasks, sizeof(*app_of));
	unsigned int rank;

	for (rank = 0; app_of && rank < job->opt->tasks; rank++)
		app_of[rank] = mpi_job_app(job, rank);
	return app_of;
}

static void free_texts(char *const *texts, unsigned int nr)
{
	unsigned int i;

	for (i = 0; texts && i < nr; i++)
		free(texts[i]);
	free((void *)texts);
}

static void free_description(struct pmix_job *job)
{
	free_texts(job->cpus, job->tasks);
	free((void *)job->app_of);
}

static int describe(const struct pmix_host *host, struct pmix_job *to)
{
	const struct mpi_job *job = host->job;

	*to = (struct pmix_job){
		.nspace = job->name,
		.tmpdir = host->tmp.path,
		.tasks = job->opt->tasks,
		.nodes = job->opt->pretend.nodes ? job->opt->pretend.nodes : 1,
		.full = job->opt->pretend.full,
		.apps = job->opt->nr_apps,
		.app_of = describe_apps(job),
		.cpus = describe_cpus(job),
		.event_fd = host->writer,
		.out = host->text_fds[TEXT_OUT],
		.err = host->text_fds[TEXT_ERR],
		.library_err = host->text_fds[TEXT_LIBRARY],
	};
	return to->app_of ? 0 : -ENOMEM;
}

/* ---- start and stop ---- */

/* Each rank takes two descriptors of the proxy, and one of the server. */
static int raise_file_limit(const struct mpi_job *job, char *why, size_t len)
{
	rlim_t need = 128 + 5 * (rlim_t)job->opt->tasks;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
		return 0;
	if (limit.rlim_max >= need) {
		limit.rlim_cur = need;
		if (!setrlimit(RLIMIT_NOFILE, &limit))
			return 0;
	}
	snprintf(why, len, "the limit of %ju open files is too low for an MPI job: %ju are needed (raise it: ulimit -n)",
		 (uintmax_t)limit.rlim_max, (uintmax_t)need);
	return -EMFILE;
}

/* By its descriptor: another file may have been put at its path. It is never unloaded. */
static void *open_plugin(int fd, char *why, size_t len)
{
	char path[40];
	const char *error;
	void *plugin;
	bool itself;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	close(fd);
	if (plugin)
		return plugin;
	error = dlerror();
	itself = !strncmp(error, path, strlen(path));
	snprintf(why, len, "no PMIx server for MPI programs: %s%s (install libpmix2)",
		 itself ? PLUGIN : "", itself ? error + strlen(path) : error);
	return NULL;
}

static int load(struct pmix_host *host, pmix_start_fn *start, char *why, size_t len)
{
	char path[PATH_MAX];
	void *plugin;
	int fd = companion_open(PLUGIN, "../lib/pvas/" PLUGIN, path);

	if (fd < 0) {
		snprintf(why, len, fd == -EPERM ?
			 "no PMIx server for MPI programs: other users could have changed %s (install all of PVAS)" :
			 "no PMIx server for MPI programs: %s is missing (install all of PVAS)",
			 fd == -EPERM ? path : PLUGIN);
		return fd;
	}
	plugin = open_plugin(fd, why, len);
	if (!plugin)
		return -ELIBACC;
	*start = (pmix_start_fn)dlsym(plugin, "pvasrun_pmix_start");
	host->flush = (pmix_flush_fn)dlsym(plugin, "pvasrun_pmix_flush");
	if (*start && host->flush)
		return 0;
	snprintf(why, len, "no PMIx server for MPI programs: this %s is not pvasrun's (install all of PVAS)",
		 PLUGIN);
	return -ELIBBAD;
}

static int create_directories(struct pmix_host *host, char *why, size_t len)
{
	if (host->refusal) {
		snprintf(why, len, "%s", host->refusal);
		return -ENOENT;
	}
	return session_dir_create(&host->tmp, NULL, why, len);
}

/*
 * libpmix calls select() on its listening socket, which must have a number below
 * FD_SETSIZE; a job with many tasks has used all of those when the server starts.
 */
void pmix_host_reserve_fds(struct pmix_host *host)
{
	unsigned int i;

	for (i = 0; i < PMIX_LOW_FDS; i++)
		host->low_fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void free_low_fds(struct pmix_host *host)
{
	unsigned int i;

	for (i = 0; i < PMIX_LOW_FDS; i++) {
		if (host->low_fds[i] >= 0)
			close(host->low_fds[i]);
		host->low_fds[i] = -1;
	}
}

static int check_low_fds(const struct pmix_host *host, char *why, size_t len)
{
	int highest = host->low_fds[PMIX_LOW_FDS - 1];

	if (highest >= 0 && highest < FD_SETSIZE)
		return 0;
	snprintf(why, len, "no PMIx server for MPI programs: too many files are open already (start pvasrun with fewer)");
	return -EMFILE;
}

static int start(struct pmix_host *host, char *why, size_t len)
{
	pmix_start_fn start_server;
	struct pmix_job job = { 0 };
	int err;

	if (raise_file_limit(host->job, why, len) || load(host, &start_server, why, len) ||
	    create_directories(host, why, len))
		return -1;
	if (open_pipe(host) || texts_begin(&host->texts, host->text_fds) || describe(host, &job) ||
	    handoff_open())
		err = snprintf(why, len, "no PMIx server for MPI programs: %s", strerror(ENOMEM));
	else
		err = check_low_fds(host, why, len);
	free_low_fds(host);
	if (!err)
		err = start_server(&job, why, len);
	free_description(&job);
	if (err || handoff_works())
		return err;
	snprintf(why, len, "no PMIx server for MPI programs: this libpmix does not listen (install libpmix2 4.2)");
	return -1;
}

int pmix_host_start(void *arg)
{
	struct pmix_host *host = arg;
	const struct mpi_callbacks *callbacks = &host->job->callbacks;
	char why[512] = "";
	int err;

	host->started = true;
	err = start(host, why, sizeof(why));
	if (err)
		callbacks->failed(callbacks->arg, why);
	return err;
}

void pmix_host_init(struct pmix_host *host, const struct mpi_job *job)
{
	*host = (struct pmix_host){ .job = job, .writer = -1 };
	host->event = (struct event){ .fd = -1, .ready = ready };
	memset(host->low_fds, -1, sizeof(host->low_fds));
}

void pmix_host_open_texts(struct pmix_host *host)
{
	texts_open(&host->texts, host->job->loop, host->job->output);
}

void pmix_host_flush(struct pmix_host *host)
{
	const int64_t until = now_ms() + FLUSH_MS;

	while (host->flush && !host->flush(RETRY_MS) && now_ms() < until)
		texts_read(&host->texts);
	texts_finish(&host->texts, FLUSH_MS);
}

/* The server ends with the process, so its end of the pipe stays open: see plugin.h. */
void pmix_host_close(struct pmix_host *host)
{
	free_low_fds(host);
	texts_close(&host->texts);
	loop_forget(host->job->loop, &host->event);
	session_dir_remove(&host->tmp);
}
