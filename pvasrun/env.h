/* SPDX-License-Identifier: GPL-2.0-only */
/* The tasks' environment. */
#ifndef PVASRUN_ENV_H
#define PVASRUN_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"

#define ENV_PER_RANK 8

/* Of one program; only variables that have the rank in them differ among its tasks. */
struct env {
	char **vars;		/* for execve() */
	size_t room;		/* entries in @vars, the NULL included */
	char **own;		/* texts of ours, to be freed */
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

/* Set a variable; or only if nobody has said anything of it. */
int env_set(struct env *env, const char *name, const char *value);
int env_default(struct env *env, const char *name, const char *value);

/* One whose value is @rank0 plus the task's rank */
int env_set_ranked(struct env *env, const char *name, uint32_t rank0);

/* The value, NULL if there is none */
const char *env_get(const struct env *env, const char *name);

/* Take out all whose names begin so, but for those that begin with @except. */
void env_drop(struct env *env, const char *prefix, const char *except);

/* Have glibc's malloc ask for memory more rarely, if the user has said nothing of it. */
int env_tune_malloc(struct env *env);

void env_set_rank(struct env *env, unsigned int rank);
void env_free(struct env *env);

#endif
