// SPDX-License-Identifier: GPL-2.0
/* The tasks' environment. */
#include "env.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static size_t name_len(const char *var)
{
	return strcspn(var, "=");
}

static bool same_name(const char *a, const char *b)
{
	return name_len(a) == name_len(b) && !memcmp(a, b, name_len(a));
}

/* vars has room for one more */
static void put(char **vars, char *var)
{
	while (*vars && !same_name(*vars, var))
		vars++;
	*vars = var;
}

static bool has(char **vars, const char *name)
{
	while (*vars && !same_name(*vars, name))
		vars++;
	return *vars;
}

static void put_exports(char **vars, const struct app *app)
{
	unsigned int i;

	for (i = 0; i < app->nr_exports; i++) {
		const char *export = app->exports[i];

		if (strchr(export, '='))
			put(vars, (char *)export);
		else if (!has(vars, export))
			warn("-x %s: not set here, so the tasks don't get it (say -x %s=VALUE)",
			     export, export);
	}
}

int env_init(struct env *env, char *const *inherited, const struct app *app,
	     unsigned int tasks, uint32_t space)
{
	size_t nr = 0;

	while (inherited[nr])
		nr++;
	env->tunables = NULL;
	env->vars = calloc(nr + app->nr_exports + 5, sizeof(*env->vars));
	if (!env->vars)
		return -ENOMEM;
	memcpy(env->vars, inherited, nr * sizeof(*env->vars));
	put_exports(env->vars, app);
	snprintf(env->size, sizeof(env->size), "PVAS_SIZE=%u", tasks);
	snprintf(env->space, sizeof(env->space), "PVAS_SPACE=%u", space);
	env_set_rank(env, app->first_rank);
	put(env->vars, env->rank);
	put(env->vars, env->size);
	put(env->vars, env->space);
	return 0;
}

/* In place: the array points at the text. */
void env_set_rank(struct env *env, unsigned int rank)
{
	snprintf(env->rank, sizeof(env->rank), "PVAS_RANK=%u", rank);
}

/*
 * With the user backend a call that asks the kernel for memory is a round trip
 * to us: let glibc's malloc ask for more at a time. What the user has said
 * about malloc stands.
 */
int env_tune_malloc(struct env *env)
{
	static const char tuning[] = "glibc.malloc.mmap_threshold=16777216:"
		"glibc.malloc.trim_threshold=67108864:glibc.malloc.top_pad=8388608";
	const char *old = "";
	char **var;

	for (var = env->vars; *var; var++)
		if (same_name(*var, "GLIBC_TUNABLES="))
			old = *var + strlen("GLIBC_TUNABLES=");
	if (strstr(old, "glibc.malloc."))
		return 0;
	if (asprintf(&env->tunables, "GLIBC_TUNABLES=%s%s%s", old, *old ? ":" : "", tuning) < 0) {
		env->tunables = NULL;
		return -ENOMEM;
	}
	put(env->vars, env->tunables);
	return 0;
}

void env_free(struct env *env)
{
	free(env->vars);
	free(env->tunables);
	env->vars = NULL;
	env->tunables = NULL;
}
