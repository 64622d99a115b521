// SPDX-License-Identifier: LGPL-2.1-or-later
/* The store HOST:PORT, whose code is in a library that is loaded when it is first needed */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/plugin.h"
#include "key.h"

#ifndef FAR_PLUGINS
#define FAR_PLUGINS "/usr/local/lib/pvas"
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct far_store_ops *loaded;

/* Beside this code, which is in a library or a program: as built, as installed */
static int find_beside(char *path, size_t len)
{
	static const char *const places[] = { "", "pvas/", "../libpvasfar/", "../lib/pvas/" };
	const char *slash;
	Dl_info here;
	size_t i;

	if (!dladdr(&loaded, &here) || !here.dli_fname)
		return -ENOENT;
	slash = strrchr(here.dli_fname, '/');
	if (!slash)
		return -ENOENT;
	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(path, len, "%.*s%s" FAR_PLUGIN, (int)(slash + 1 - here.dli_fname),
			 here.dli_fname, places[i]);
		if (!access(path, R_OK))
			return 0;
	}
	return -ENOENT;
}

static int load(const char *spec)
{
	char path[PATH_MAX];
	far_plugin_fn *start;
	void *plugin;

	if (find_beside(path, sizeof(path)))
		snprintf(path, sizeof(path), FAR_PLUGINS "/" FAR_PLUGIN);
	if (access(path, R_OK))
		return far_fail(-ELIBACC, "server %s: no memory servers in this installation: %s is missing "
				"(stores file:PATH and zip need nothing)", spec, FAR_PLUGIN);
	plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!plugin)
		return far_fail(-ELIBACC, "server %s: %s (install libucx0)", spec, dlerror());
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

static int open_host(const struct far_store_config *config, struct far_store **store)
{
	const char *name = getenv("PVAS_FAR_KEY");
	int err = 0;

	pthread_mutex_lock(&lock);
	if (!loaded)
		err = load(config->spec);
	pthread_mutex_unlock(&lock);
	if (err)
		return err;
	if (name && *name)
		return open_with_key(config, name, store);
	return loaded->open(config, store);
}

const struct far_store_ops far_store_host = {
	.scheme = "host",
	.open = open_host,
};
