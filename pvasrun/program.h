/* SPDX-License-Identifier: GPL-2.0-only */
/* Which file a program's name means, and whether it can be a task. */
#ifndef PVASRUN_PROGRAM_H
#define PVASRUN_PROGRAM_H

#include <limits.h>
#include <stddef.h>

/*
 * Find a program as execvp(3) does, a relative path from @wdir (NULL: from here), and
 * check it. @path is set if a file was found, else empty. Returns 0, or -errno with the
 * reason, and what to do, in @why.
 */
int program_find(const char *name, const char *wdir, char path[static PATH_MAX], char *why,
		 size_t len);

/* "not with ...": when this program can't be a task, though it looks as if; NULL: unknown */
const char *program_condition(const char *path);

/* --check: print a line for this program; as the next */
int program_check(char *name);

/*
 * --check: print a line for each program, on standard output. Returns 0 if all can be
 * tasks, else the exit status of pvasrun that the first other one would bring about.
 */
int program_check_all(char **names);

#endif
