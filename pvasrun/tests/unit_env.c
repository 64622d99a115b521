// SPDX-License-Identifier: GPL-2.0-only
/* The tasks' environment */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../env.h"
#include "../report.h"
#include "unit.h"

static const char *joined(const struct env *env)
{
	static char text[512];
	size_t used = 0;
	char **var;

	for (var = env->vars; *var; var++)
		used += snprintf(text + used, sizeof(text) - used, "%s%s",
				 var == env->vars ? "" : " ", *var);
	return text;
}

void test_env(void)
{
	char a[] = "A=1", ab[] = "AB=2", old[] = "PVAS_RANK=99", odd[] = "NOEQUALS";
	char *inherited[] = { a, ab, old, odd, NULL };
	const char *exports[] = { "A=new", "B=x=y", "AB", "MISSING", "B=last" };
	struct app app = { .first_rank = 5, .exports = exports, .nr_exports = 5 };
	char tuned[64] = "GLIBC_TUNABLES=glibc.cpu.x=1";
	char launcher[32], all[128], rank[128];
	struct env env;

	snprintf(launcher, sizeof(launcher), "PVAS_LAUNCHER=%d", getpid());
	snprintf(all, sizeof(all), "A=new AB=2 PVAS_RANK=5 NOEQUALS B=last PVAS_SIZE=240 PVAS_SPACE=7 %s",
		 launcher);
	snprintf(rank, sizeof(rank),
		 "A=new AB=2 PVAS_RANK=239 NOEQUALS B=last PVAS_SIZE=240 PVAS_SPACE=7 %s", launcher);
	report_setup(false, true);	/* no warning about the missing variable */
	check(env_init(&env, inherited, &app, 240, 7) == 0);
	check_text(joined(&env), all, "all");
	env_set_rank(&env, 239);
	check_text(joined(&env), rank, "rank");
	check_text(inherited[2], "PVAS_RANK=99", "our own is untouched");
	check(env_set_malloc_tunables(&env, 0) == 0);
	check(strstr(joined(&env), " GLIBC_TUNABLES=glibc.malloc.mmap_threshold=") != NULL);
	env_free(&env);

	inherited[1] = tuned;
	check(env_init(&env, inherited, &app, 240, 7) == 0);
	check(env_set_malloc_tunables(&env, 0) == 0);
	check(strstr(joined(&env), " GLIBC_TUNABLES=glibc.cpu.x=1:glibc.malloc.mmap_") != NULL);
	env_free(&env);
	strcpy(tuned, "GLIBC_TUNABLES=glibc.malloc.y=1");
	check(env_init(&env, inherited, &app, 240, 7) == 0);
	check(env_set_malloc_tunables(&env, 0) == 0);
	check(strstr(joined(&env), " GLIBC_TUNABLES=glibc.malloc.y=1 ") != NULL);
	env_free(&env);
}
