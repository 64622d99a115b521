// SPDX-License-Identifier: GPL-2.0-only
#include "far_task.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../libpvas/far/pvas_far.h"
#include "component.h"
#include "job.h"
#include "report.h"

#define LIBRARY	"pvasfar-task.so"
#define KEY	"PVAS_FAR_KEY"

static char library[PATH_MAX], key[PATH_MAX];

static int find_library(void)
{
	static const char *const installed[] = {
		"../lib/pvas/" LIBRARY, "../lib/x86_64-linux-gnu/pvas/" LIBRARY,
		"../lib64/pvas/" LIBRARY, NULL
	};
	const int err = companion_find("../libpvasfar/" LIBRARY, installed, library);

	if (err == -EPERM)
		report_error("--ram: other users could have changed %s (install all of PVAS)", library);
	else if (err < 0)
		report_error("--ram: %s is missing (install libpvasfar)", LIBRARY);
	else if (strpbrk(library, ": "))
		report_error("--ram: the path of %s has a colon or a space, and so can't be preloaded",
			     library);
	else
		return 0;
	return STATUS_FAILED;
}

/* Each task reads it, and may have another working directory. */
static int find_key(const char *name)
{
	if (!name || !*name)
		return 0;
	if (realpath(name, key))
		return 0;
	report_error("--far-key %s: %s (with the module it is a file's name)", name, strerror(errno));
	return STATUS_FAILED;
}

int far_task_prepare(const struct options *opt)
{
	int status = find_library();

	return status ? status : find_key(opt->far.key ? opt->far.key : getenv(KEY));
}

static int set_number(struct env *env, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return value ? env_set(env, name, text) : 0;
}

static int set_preload(struct env *env)
{
	const char *old = env_get(env, "LD_PRELOAD");
	char *text;
	int err;

	if (asprintf(&text, "%s%s%s", library, old && *old ? ":" : "", old ? old : "") < 0)
		return -ENOMEM;
	err = env_set(env, "LD_PRELOAD", text);
	free(text);
	return err;
}

int far_task_env(struct env *env, const struct pvas_far_attr *attr, uint64_t threshold)
{
	int err = set_preload(env);

	if (!err)
		err = env_set(env, "PVAS_FAR", attr->stores);
	if (!err)
		err = env_set(env, "PVAS_FAR_PROTOCOL", attr->protocol);
	if (!err)
		err = set_number(env, "PVAS_FAR_RAM", attr->ram);
	if (!err)
		err = set_number(env, "PVAS_FAR_SIZE", attr->far);
	if (!err && attr->page == PVAS_FAR_PAGE_AUTO)
		err = env_set(env, "PVAS_FAR_PAGE", "auto");
	else if (!err)
		err = set_number(env, "PVAS_FAR_PAGE", attr->page);
	if (!err)
		err = set_number(env, "PVAS_FAR_COPIES", attr->copies);
	if (!err)
		err = set_number(env, "PVAS_FAR_THREADS", attr->threads);
	if (!err && key[0])
		err = env_set(env, KEY, key);
	return err ? err : set_number(env, "PVASRUN_FAR", threshold);
}
