// SPDX-License-Identifier: GPL-2.0-only
/* The tasks' environment. */
#include "env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"
#include "malloc_tunables.h"

static size_t name_len(const char *var)
{
	return strcspn(var, "=");
}

static bool same_name(const char *a, const char *b)
{
	return name_len(a) == name_len(b) && !memcmp(a, b, name_len(a));
}

/* The place of a variable of this name, or the NULL at the end */
static char **place(char **vars, const char *name)
{
	while (*vars && !same_name(*vars, name))
		vars++;
	return vars;
}

/* vars has room for one more */
static void put(char **vars, char *var)
{
	char **at = place(vars, var);

	if (!*at)
		at[1] = NULL;
	*at = var;
}

static void put_exports(char **vars, const struct app *app)
{
	unsigned int i;

	for (i = 0; i < app->nr_exports; i++) {
		const char *export = app->exports[i];

		if (strchr(export, '='))
			put(vars, (char *)export);
		else if (!*place(vars, export))
			report_warning("-x %s: not set here, so the tasks don't get it (say -x %s=VALUE)",
				       export, export);
	}
}

/* Make room for one more. */
static int grow(struct env *env)
{
	size_t nr = 0;
	char **more;

	while (env->vars[nr])
		nr++;
	if (nr + 2 <= env->room)
		return 0;
	more = reallocarray(env->vars, 2 * env->room, sizeof(*more));
	if (!more)
		return -ENOMEM;
	env->vars = more;
	env->room *= 2;
	return 0;
}

int env_set(struct env *env, const char *name, const char *value)
{
	char **own, *text;
	int err = grow(env);

	if (err)
		return err;
	own = reallocarray(env->own, env->nr_own + 1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	env->own = own;
	if (asprintf(&text, "%s=%s", name, value) < 0)
		return -ENOMEM;
	env->own[env->nr_own++] = text;
	put(env->vars, text);
	return 0;
}

const char *env_get(const struct env *env, const char *name)
{
	const char *var = *place(env->vars, name);

	return var && var[name_len(var)] ? var + name_len(var) + 1 : NULL;
}

int env_default(struct env *env, const char *name, const char *value)
{
	return env_get(env, name) ? 0 : env_set(env, name, value);
}

/* @vars points to the text, which env_set_rank() changes in place. */
int env_set_ranked(struct env *env, const char *name, uint32_t rank0)
{
	unsigned int i = env->nr_ranked;
	int err = i < ENV_PER_RANK ? grow(env) : -ENOSPC;

	if (err)
		return err;
	env->ranked[i].name = name;
	env->ranked[i].rank0 = rank0;
	snprintf(env->ranked[i].text, sizeof(env->ranked[i].text), "%s=%u", name, rank0);
	put(env->vars, env->ranked[i].text);
	env->nr_ranked++;
	return 0;
}

static bool is_exported(const struct app *app, const char *name)
{
	unsigned int i;

	for (i = 0; i < app->nr_exports; i++)
		if (same_name(app->exports[i], name))
			return true;
	return false;
}

int env_set_pagers(struct env *env, const struct app *app)
{
	/* git's and systemd's settings have precedence over PAGER, and so have their defaults */
	static const char *const names[] = { "PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER" };
	unsigned int i;
	int err = 0;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !err; i++)
		if (!is_exported(app, names[i]))
			err = env_set(env, names[i], "cat");
	return err;
}

void env_drop(struct env *env, const char *prefix, const char *except)
{
	char **from, **to = env->vars;

	for (from = env->vars; *from; from++)
		if (strncmp(*from, prefix, strlen(prefix)) ||
		    (except && !strncmp(*from, except, strlen(except))))
			*to++ = *from;
	*to = NULL;
}

int env_init(struct env *env, char *const *inherited, const struct app *app,
	     unsigned int tasks, uint32_t space)
{
	char text[16];
	size_t nr = 0;
	int err;

	while (inherited[nr])
		nr++;
	*env = (struct env){ .room = nr + app->nr_exports + 6 };
	env->vars = calloc(env->room, sizeof(*env->vars));
	if (!env->vars)
		return -ENOMEM;
	memcpy(env->vars, inherited, nr * sizeof(*env->vars));
	put_exports(env->vars, app);
	err = env_set_ranked(env, "PVAS_RANK", 0);
	snprintf(text, sizeof(text), "%u", tasks);
	if (!err)
		err = env_set(env, "PVAS_SIZE", text);
	snprintf(text, sizeof(text), "%u", space);
	if (!err)
		err = env_set(env, "PVAS_SPACE", text);
	snprintf(text, sizeof(text), "%d", getpid());
	if (!err)
		err = env_set(env, "PVAS_LAUNCHER", text);
	env_set_rank(env, app->first_rank);
	return err;
}

void env_set_rank(struct env *env, unsigned int rank)
{
	unsigned int i;

	for (i = 0; i < env->nr_ranked; i++)
		snprintf(env->ranked[i].text, sizeof(env->ranked[i].text), "%s=%u",
			 env->ranked[i].name, env->ranked[i].rank0 + rank);
}

int env_set_malloc_tunables(struct env *env, unsigned long far_threshold)
{
	char *text = malloc_tunables(env_get(env, TUNABLES), far_threshold);
	int err;

	if (!text)
		return -errno;
	err = env_set(env, TUNABLES, text);
	free(text);
	return err;
}

void env_free(struct env *env)
{
	while (env->nr_own)
		free(env->own[--env->nr_own]);
	free(env->own);
	free(env->vars);
	env->own = NULL;
	env->vars = NULL;
}
