// SPDX-License-Identifier: GPL-2.0-only
/*
 * Far memory of the job. With the user backend the pager's threads run here, in the process whose
 * mm is the space; they and libpvas call each other, and this file only brings them together.
 * With the module each task has a pager: far_task.h.
 */
#include "far.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../libpvas/far/pvas_far.h"
#include "../libpvas/far_ops.h"
#include "../libpvas/pvas.h"
#include "component.h"
#include "far_live.h"
#include "far_start.h"
#include "far_task.h"
#include "report.h"

#define TEXT_(x)	#x
#define TEXT(x)		TEXT_(x)
#define LIBRARY		"libpvasfar.so." TEXT(PVAS_VERSION_MAJOR)
#define KEY		"PVAS_FAR_KEY"

static const struct pvas_far_ops *pager;
static struct pvas_far_ops ours;	/* the pager's, with another @open */
static struct pvas_far_attr attr;
static char failure[512];
static int served_by_kernel;
static uint64_t task_threshold;	/* 0: the tasks have no pagers */

/* The pager's last words, and the job that they end */
static struct {
	struct event event;
	struct job *job;
	char why[512];
	unsigned int dying;
} death = { .event.fd = -1 };

/* ---- the library ---- */

static int find_library(char path[static PATH_MAX])
{
	static const char *const installed[] = {
		"../lib/" LIBRARY, "../lib/x86_64-linux-gnu/" LIBRARY, "../lib64/" LIBRARY, NULL
	};

	return companion_find("../libpvasfar/" LIBRARY, installed, path);
}

static int load(void)
{
	char path[PATH_MAX];
	int err = find_library(path);
	void *library;

	if (err < 0) {
		report_error(err == -EPERM ?
			     "--ram: other users could have changed %s (install all of PVAS)" :
			     "--ram: %s is missing (install libpvasfar)",
			     err == -EPERM ? path : LIBRARY);
		return STATUS_FAILED;
	}
	/* Never unloaded: it has threads. */
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		report_error("--ram: %s", dlerror());
		return STATUS_FAILED;
	}
	pager = dlsym(library, PVAS_FAR_JOB_OPS);
	if (pager && pager->version == PVAS_FAR_OPS_VERSION)
		return 0;
	report_error("--ram: %s is of another version of PVAS (install all of one)", path);
	return STATUS_FAILED;
}

/* ---- the pager ---- */

static int open_pager(const struct pvas_far_attr *unused, const struct pvas_far_rows *rows,
		      int *kernel)
{
	int err = pager->open(&attr, rows, kernel);

	(void)unused;
	failure[0] = '\0';
	if (err)
		snprintf(failure, sizeof(failure), "%s",
			 pager->error()[0] ? pager->error() : strerror(-err));
	served_by_kernel = *kernel;
	return err;
}

const char *far_failure(void)
{
	return failure[0] ? failure : NULL;
}

/* The last page of a mapping is used in part only: of many small ones, that is much. */
static int plan(struct pvas_far_config *config)
{
	const char *page = getenv("PVAS_FAR_PAGE");
	int err;

	if (!attr.page && page && !strcmp(page, "auto"))
		attr.page = PVAS_FAR_PAGE_AUTO;
	err = pager->plan(&attr, &config->size, &config->page);
	if (err || attr.page)
		return err;
	while (config->page > PVAS_FAR_PAGE_MIN && config->page > config->threshold / 4)
		config->page /= 2;
	attr.page = config->page;
	return 0;
}

/* ---- servers of its own ---- */

/* Pages go to the stores in turn: see stripe.c of the library. */
static uint64_t bytes_each(const struct pvas_far_config *config, const struct far_options *far)
{
	uint64_t pages = (config->size + config->page - 1) / config->page;
	unsigned int stores = far->nr_start;
	const char *c;

	for (c = far->stores; c; c = strchr(c, ','), c = c ? c + 1 : NULL)
		stores++;
	return (pages + stores - 1) / stores * config->page * (far->copies ? far->copies : 1);
}

static int fail_start(const char *why)
{
	report_error("--far-start: %s", why);
	return STATUS_FAILED;
}

/* Once for all servers: a descriptor can be read once. */
static int read_key(const char *file)
{
	char line[PVAS_FAR_KEY_TEXT];
	int err = pager->key(file, line);

	explicit_bzero(line, sizeof(line));
	if (!err)
		return 0;
	report_error("--far-key: %s", pager->error());
	return STATUS_FAILED;
}

static int start_with_key(const struct pvas_far_config *config, const struct options *opt)
{
	const struct far_options *far = &opt->far;
	const char *file = far->key ? far->key : getenv(KEY);
	char line[PVAS_FAR_KEY_TEXT], why[160];
	int status;

	if (far_hosts_resolve(far->start, far->nr_start, why, sizeof(why)))
		return fail_start(why);
	if (pager->key(file && *file ? file : NULL, line))
		return fail_start(pager->error());
	status = far_start(opt, bytes_each(config, far), line);
	explicit_bzero(line, sizeof(line));
	return status;
}

/* Its stores are those of --far, and theirs. */
static int start_servers(const struct pvas_far_config *config, const struct options *opt)
{
	const struct far_options *far = &opt->far;
	static char stores[4096];
	size_t at = 0;
	int status;

	if (!far->nr_start)
		return far->key ? read_key(far->key) : 0;
	status = start_with_key(config, opt);
	if (status)
		return status;
	if (far->stores)
		at = (size_t)snprintf(stores, sizeof(stores), "%s,", far->stores);
	if (at >= sizeof(stores) || far_start_stores(stores + at, sizeof(stores) - at))
		return fail_start("the list of stores is too long");
	attr.stores = stores;
	return 0;
}

static void set_attr(const struct options *opt)
{
	attr = (struct pvas_far_attr){
		.size = sizeof(attr), .stores = opt->far.stores ? opt->far.stores : "zip",
		.ram = opt->far.ram, .far = opt->far.size, .page = opt->far.page,
		.copies = opt->far.copies,
		.protocol = opt->far.protocol ? opt->far.protocol : "pvas",
	};
}

/* With the module each task has a pager of its own, and an equal share of all. */
static void share_attr(const struct options *opt)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	attr.ram /= opt->tasks;
	attr.far = (attr.far + opt->tasks - 1) / opt->tasks;
	if (!getenv("PVAS_FAR_THREADS") && processors < 4L * opt->tasks)
		attr.threads = processors < 2L * opt->tasks ? 1 : 2;
}

static int prepare_tasks(const struct options *opt, const struct pvas_far_config *config)
{
	/* It was here to check the options. */
	pager = NULL;
	task_threshold = config->threshold;
	return far_task_prepare(opt);
}

int far_env(struct env *env)
{
	return task_threshold ? far_task_env(env, &attr, task_threshold) : 0;
}

int far_prepare(const struct options *opt)
{
	bool by_tasks = opt->backend == PVAS_BACKEND_KERNEL;
	static struct pvas_far_config config;
	int status;

	if (!opt->far.ram)
		return 0;
	status = load();
	if (status)
		return status;
	set_attr(opt);
	if (by_tasks)
		share_attr(opt);
	config.threshold = opt->far.threshold;
	config.rows = 2 * opt->tasks + 8;	/* some may be in use by libraries of pvasrun */
	if (plan(&config)) {
		report_error("--ram: %s%s", by_tasks ? "for each task: " : "", pager->error());
		return STATUS_FAILED;
	}
	if (by_tasks)
		return prepare_tasks(opt, &config);
	status = start_servers(&config, opt);
	if (status)
		return status;
	ours = *pager;
	ours.open = open_pager;
	config.ops = &ours;
	libpvas_set_far(&config);
	return 0;
}

/* ---- its end ---- */

/* In a thread of the pager: the first one speaks. */
static void die(const char *why)
{
	uint64_t one = 1;

	if (__atomic_exchange_n(&death.dying, 1, __ATOMIC_ACQ_REL))
		return;
	snprintf(death.why, sizeof(death.why), "%s", why);
	if (write(death.event.fd, &one, sizeof(one)) != sizeof(one))
		_exit(STATUS_FAILED);
}

/* The tasks that wait for the page never get it. */
static void on_death(struct event *event, uint32_t what)
{
	uint64_t count;

	(void)what;
	if (read(event->fd, &count, sizeof(count)) != sizeof(count))
		return;
	job_end(death.job, STATUS_FAILED);
	report_error("far memory: %s: the job ends", death.why);
}

int far_watch(struct loop *loop, struct job *job)
{
	if (!pager)
		return 0;
	death.job = job;
	death.event.ready = on_death;
	death.event.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (death.event.fd < 0)
		return -errno;
	*pager->when_dying = die;
	pager->key(NULL, NULL);
	report_note("far memory: system calls on it are served by %s",
		    served_by_kernel ? "the kernel" : "pvasrun, as this user's userfaultfd serves none");
	if (far_start_watch(loop) || far_live_begin(loop, pager, job->space))
		return -EIO;
	return loop_watch(loop, &death.event, EPOLLIN);
}

void far_end(void)
{
	far_start_end();
}

void far_report(void)
{
	struct pvas_far_totals t;

	if (!pager)
		return;
	far_live_end();
	pager->totals(&t);
	report_note("far memory: %llu faults took %llu ms, %llu MiB came in, %llu MiB went out",
		    (unsigned long long)t.faults, (unsigned long long)t.waited / 1000,
		    (unsigned long long)(t.fetched * t.page >> 20),
		    (unsigned long long)(t.put * t.page >> 20));
}
