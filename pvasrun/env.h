/* SPDX-License-Identifier: GPL-2.0-only */
/* The tasks' environment. */
#ifndef PVASRUN_ENV_H
#define PVASRUN_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"

#define ENV_PER_RANK 8

/* For one program; its tasks differ only in variables that contain the rank. */
struct env {
	char **vars;		/* for execve() */
	size_t room;		/* entries in @vars, the NULL included */
	char **own;		/* allocated strings in @vars */
	size_t nr_own;
	struct {
		const char *name;
		uint32_t rank0;	/* its value for rank 0 */
		char text[48];
	} ranked[ENV_PER_RANK];
	unsigned int nr_ranked;
};

int env_init(struct env *env, char *const *inherited, const struct app *app,
	     unsigned int tasks, uint32_t space);

/* Set a variable; or set it unless it is set already. */
int env_set(struct env *env, const char *name, const char *value);
int env_default(struct env *env, const char *name, const char *value);

/* No program is to start a pager; those variables that -x names are left as they are. */
int env_set_pagers(struct env *env, const struct app *app);

/* A variable whose value is @rank0 plus the task's rank */
int env_set_ranked(struct env *env, const char *name, uint32_t rank0);

/* The value, NULL if there is none */
const char *env_get(const struct env *env, const char *name);

/* Remove all variables that begin with @prefix, except those that begin with @except. */
void env_drop(struct env *env, const char *prefix, const char *except);

/* Set tunables of malloc, unless the user has set some: see malloc_tunables.h. */
int env_set_malloc_tunables(struct env *env, unsigned long far_threshold);

void env_set_rank(struct env *env, unsigned int rank);
void env_free(struct env *env);

#endif
