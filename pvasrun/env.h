/* SPDX-License-Identifier: GPL-2.0 */
/* The tasks' environment. */
#ifndef PVASRUN_ENV_H
#define PVASRUN_ENV_H

#include <stdint.h>

#include "options.h"

/* Of one program; only PVAS_RANK differs among its tasks. */
struct env {
	char **vars;		/* for execve() */
	char rank[32];
	char size[32];
	char space[32];
	char *tunables;		/* NULL: as they were */
};

int env_init(struct env *env, char *const *inherited, const struct app *app,
	     unsigned int tasks, uint32_t space);

/* For the user backend: have glibc's malloc ask for memory more rarely. */
int env_tune_malloc(struct env *env);

void env_set_rank(struct env *env, unsigned int rank);
void env_free(struct env *env);

#endif
