// SPDX-License-Identifier: LGPL-2.1-or-later
/* The store HOST:PORT, whose code is in a library that is loaded when it is first needed */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/plugin.h"
#include "job_key.h"
#include "key.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct far_store_ops *loaded;

/* A dlopen() in a thread of its own */
struct loading {
	const char *path;
	void *plugin;
	char why[200];
};

/* UCX's constructors take signals, SIGHUP among them: the program's own way is better. */
static void *load_with_signals_kept(const char *path)
{
	struct sigaction before[NSIG], after;
	void *plugin;
	int sig;

	for (sig = 1; sig < NSIG; sig++)
		sigaction(sig, NULL, &before[sig]);
	plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	for (sig = 1; sig < NSIG; sig++)
		if (!sigaction(sig, NULL, &after) && after.sa_handler != before[sig].sa_handler)
			sigaction(sig, &before[sig], NULL);
	return plugin;
}

/*
 * UCX obeys a file ucx.conf of the current directory, in which others may be able to create
 * files: such a file names programs to run and files to write. So its constructors run in a
 * thread whose directory is /.
 */
static void *load_elsewhere(void *arg)
{
	struct loading *l = arg;

	if (unshare(CLONE_FS) || chdir("/")) {
		snprintf(l->why, sizeof(l->why), "can't leave the current directory: %s",
			 strerror(errno));
		return NULL;
	}
	l->plugin = load_with_signals_kept(l->path);
	if (!l->plugin)
		snprintf(l->why, sizeof(l->why), "%s (install libucx0)", dlerror());
	return NULL;
}

static void *load_plugin(const char *path, const char *spec)
{
	struct loading l = { .path = path };
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, load_elsewhere, &l);
	if (!err)
		pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!l.plugin)
		far_fail(-ELIBACC, "server %s: %s", spec, err ? strerror(err) : l.why);
	return l.plugin;
}

/*
 * Only from where it was installed, or the user says: beside a program, and the folders above
 * it, others may be able to create files.
 */
static int load(const char *spec)
{
	const char *folder = secure_getenv("PVAS_FAR_PLUGINS");
	char path[PATH_MAX];
	far_plugin_fn *start;
	void *plugin;

	if (!folder || *folder != '/')
		folder = FAR_PLUGINS;
	snprintf(path, sizeof(path), "%s/" FAR_PLUGIN, folder);
	if (access(path, R_OK))
		return far_fail(-ELIBACC, "server %s: no memory servers in this installation: %s is missing "
				"(stores file:PATH and zip need nothing)", spec, path);
	plugin = load_plugin(path, spec);
	if (!plugin)
		return -ELIBACC;
	start = (far_plugin_fn *)dlsym(plugin, FAR_PLUGIN_START);
	loaded = start ? start(FAR_PLUGIN_VERSION, far_fail) : NULL;
	if (loaded)
		return 0;	/* it stays: UCX has threads */
	dlclose(plugin);
	return far_fail(-ELIBBAD, "server %s: %s is of another version of PVAS", spec, path);
}

/* A file's name is no secret, its contents are. */
static int open_with_key(const struct far_store_config *config, const char *name,
			 struct far_store **store)
{
	struct far_store_config own = *config;
	uint8_t key[FAR_KEY_BYTES];
	char why[160];
	int err;

	err = far_key_read(name, key, why, sizeof(why));
	if (err)
		return far_fail(err, "server %s: key %s (PVAS_FAR_KEY): %s", config->spec, name, why);
	own.key = key;
	err = loaded->open(&own, store);
	far_wipe(key, sizeof(key));
	return err;
}

static int open_with_job_key(const struct far_store_config *config, struct far_store **store)
{
	struct far_store_config own = *config;

	own.key = far_key_of_job();
	return loaded->open(&own, store);
}

static int open_host(const struct far_store_config *config, struct far_store **store)
{
	const char *name = secure_getenv("PVAS_FAR_KEY");
	int err = 0;

	pthread_mutex_lock(&lock);
	if (!loaded)
		err = load(config->spec);
	pthread_mutex_unlock(&lock);
	if (err)
		return err;
	if (far_key_of_job())
		return open_with_job_key(config, store);
	if (name && *name)
		return open_with_key(config, name, store);
	return loaded->open(config, store);
}

const struct far_store_ops far_store_host = {
	.scheme = "host",
	.open = open_host,
};
