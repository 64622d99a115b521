// SPDX-License-Identifier: GPL-2.0-only
/* The PMIx server: loading it, describing the job to it, hearing from it. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <hwloc/export.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "component.h"
#include "handoff.h"
#include "locality.h"
#include "mpi.h"
#include "pmix/plugin.h"
#include "report.h"

#define PLUGIN "pvasrun-pmix.so"
/* As long as a job's end waits for whoever reads what ranks wanted to be written */
#define FLUSH_MS 2000

struct pmix_host {
	struct event event;	/* what the server tells */
	struct mpi *mpi;
	int writer;		/* its end of the pipe */
	pmix_flush_fn flush;	/* once it is loaded */
};

/* ---- what the server tells ---- */

static void hear(struct mpi *mpi, const struct pmix_news *news)
{
	if (news->rank >= mpi->opt->tasks)
		return;
	switch (news->kind) {
	case NEWS_INIT:
		mpi_entered(mpi, news->rank);
		break;
	case NEWS_FINALIZE:
		mpi_left(mpi, news->rank);
		break;
	case NEWS_LOST:
		mpi_lost(mpi, news->rank);
		break;
	case NEWS_ABORT:
		mpi_aborted(mpi, news->rank, news->status, news->text);
		break;
	case NEWS_SPAWN:
		mpi_spawn_refused(mpi, news->rank, news->text);
		break;
	}
}

void pmix_host_read(struct mpi *mpi)
{
	struct pmix_news news;

	if (!mpi->host)
		return;
	while (read(mpi->host->event.fd, &news, sizeof(news)) == sizeof(news))
		hear(mpi, &news);
}

static void ready(struct event *event, uint32_t what)
{
	(void)what;
	pmix_host_read(((struct pmix_host *)event)->mpi);
}

static int open_pipe(struct pmix_host *host)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	/* the writer is a thread of the library's: it may wait for us */
	fcntl(ends[1], F_SETFL, 0);
	host->event = (struct event){ .fd = ends[0], .ready = ready };
	host->writer = ends[1];
	return loop_watch(host->mpi->loop, &host->event, EPOLLIN);
}

/* ---- what it is told ---- */

static char *describe_machine(hwloc_topology_t topology)
{
	char *xml, *copy;
	int len;

	if (hwloc_topology_export_xmlbuffer(topology, &xml, &len, 0))
		return NULL;
	copy = strdup(xml);
	hwloc_free_xmlbuffer(topology, xml);
	return copy;
}

static char **describe_cpus(const struct mpi *mpi)
{
	char **cpus = calloc(mpi->opt->tasks, sizeof(*cpus));
	unsigned int rank;

	for (rank = 0; cpus && rank < mpi->opt->tasks; rank++) {
		hwloc_const_cpuset_t set = places_set(mpi->places, rank);

		if (set && hwloc_bitmap_list_asprintf(&cpus[rank], set) < 0)
			cpus[rank] = NULL;
	}
	return cpus;
}

/* Only of those that stay where they are: what do they share with others? */
static char **describe_localities(const struct mpi *mpi, hwloc_topology_t topology)
{
	char **localities = calloc(mpi->opt->tasks, sizeof(*localities));
	unsigned int rank;

	for (rank = 0; localities && rank < mpi->opt->tasks; rank++) {
		hwloc_const_cpuset_t set = places_set(mpi->places, rank);

		if (set)
			localities[rank] = locality_of(topology, set);
	}
	return localities;
}

/* Each rank would look at all of /sys otherwise. */
static void describe_topology(const struct mpi *mpi, struct pmix_job *job)
{
	hwloc_topology_t topology;

	if (hwloc_topology_init(&topology))
		return;
	if (!hwloc_topology_load(topology)) {
		job->topology = describe_machine(topology);
		job->localities = describe_localities(mpi, topology);
	}
	hwloc_topology_destroy(topology);
}

static unsigned int *describe_apps(const struct mpi *mpi)
{
	unsigned int *app_of = calloc(mpi->opt->tasks, sizeof(*app_of));
	unsigned int rank;

	for (rank = 0; app_of && rank < mpi->opt->tasks; rank++)
		app_of[rank] = mpi->job->tasks[rank].app - mpi->opt->apps;
	return app_of;
}

static void forget_texts(char *const *texts, unsigned int nr)
{
	unsigned int i;

	for (i = 0; texts && i < nr; i++)
		free(texts[i]);
	free((void *)texts);
}

static void forget(struct pmix_job *job)
{
	forget_texts(job->cpus, job->tasks);
	forget_texts(job->localities, job->tasks);
	free((void *)job->app_of);
	free((void *)job->topology);
}

static int describe(struct pmix_host *host, struct pmix_job *job)
{
	const struct mpi *mpi = host->mpi;

	*job = (struct pmix_job){
		.nspace = mpi->name,
		.tmpdir = mpi->tmp.path,
		.tasks = mpi->opt->tasks,
		.apps = mpi->opt->nr_apps,
		.app_of = describe_apps(mpi),
		.cpus = describe_cpus(mpi),
		.news = host->writer,
	};
	describe_topology(mpi, job);
	return job->app_of ? 0 : -ENOMEM;
}

/* ---- start and stop ---- */

/* A rank costs the gate two descriptors, and the server one. */
static int enough_files(const struct mpi *mpi, char *why, size_t len)
{
	rlim_t need = 128 + 5 * (rlim_t)mpi->opt->tasks;
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

/* The file that was looked at, whatever is at its path by now. It stays loaded. */
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
	int fd = beside_us(PLUGIN, "../lib/pvas/" PLUGIN, path);

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

static int make_directories(struct mpi *mpi, char *why, size_t len)
{
	if (mpi->no_shm[0]) {
		snprintf(why, len, "%s", mpi->no_shm);
		return -ENOENT;
	}
	return scratch_make(&mpi->tmp, NULL, why, len);
}

/*
 * libpmix waits with select() for what it listens on, which takes no numbers from
 * FD_SETSIZE on; a job may have more tasks than that by then.
 */
void pmix_host_reserve(struct mpi *mpi)
{
	unsigned int i;

	for (i = 0; i < LOW_NUMBERS; i++)
		mpi->low[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void free_numbers(struct mpi *mpi)
{
	unsigned int i;

	for (i = 0; i < LOW_NUMBERS; i++) {
		if (mpi->low[i] >= 0)
			close(mpi->low[i]);
		mpi->low[i] = -1;
	}
}

static int make_room(const struct mpi *mpi, char *why, size_t len)
{
	int highest = mpi->low[LOW_NUMBERS - 1];

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

	if (enough_files(host->mpi, why, len) || load(host, &start_server, why, len) ||
	    make_directories(host->mpi, why, len))
		return -1;
	if (open_pipe(host) || describe(host, &job) || handoff_open())
		err = snprintf(why, len, "no PMIx server for MPI programs: %s", strerror(ENOMEM));
	else
		err = make_room(host->mpi, why, len);
	free_numbers(host->mpi);
	if (!err)
		err = start_server(&job, why, len);
	forget(&job);
	if (err || handoff_works())
		return err;
	snprintf(why, len, "no PMIx server for MPI programs: this libpmix does not listen (install libpmix2 4.2)");
	return -1;
}

int pmix_host_start(void *arg)
{
	struct mpi *mpi = arg;
	char why[512] = "";
	int err;

	mpi->host = calloc(1, sizeof(*mpi->host));
	if (!mpi->host) {
		mpi_failed(mpi, strerror(ENOMEM));
		return -1;
	}
	mpi->host->mpi = mpi;
	mpi->host->event.fd = mpi->host->writer = -1;
	err = start(mpi->host, why, sizeof(why));
	if (err)
		mpi_failed(mpi, why);
	return err;
}

/* The server has nobody left to serve, and ends with us: see plugin.h. */
void pmix_host_stop(struct mpi *mpi)
{
	struct pmix_host *host = mpi->host;

	free_numbers(mpi);
	if (!host)
		return;
	if (host->flush)
		host->flush(FLUSH_MS);
	loop_forget(mpi->loop, &host->event);
	mpi->host = NULL;
}
