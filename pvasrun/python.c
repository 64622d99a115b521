// SPDX-License-Identifier: GPL-2.0-only
/* Find the position-independent host of the system's Python. */
#include "python.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../libpvas/pvas.h"
#include "component.h"
#include "script.h"

#define SYSTEM		"/usr/bin/python3."

/* ---- the #! line ---- */

/* "env python3" and "env -S python3 -u". Variables and other options are env's own matter. */
static int drop_env(struct script_words *w)
{
	char *name = strrchr(w->word[0], '/'), *at, *save;

	if (strcmp(name ? name + 1 : w->word[0], "env") || w->nr < 2)
		return 0;
	at = w->word[1];
	w->nr = 0;
	if (!strncmp(at, "-S", 2))
		at += 2;
	else if (strpbrk(at, " \t"))
		return -ENOENT;
	for (at = strtok_r(at, " \t", &save); at; at = strtok_r(NULL, " \t", &save)) {
		if (w->nr == SCRIPT_WORDS || strpbrk(at, "\"'\\$"))
			return -ENOEXEC;
		w->word[w->nr++] = at;
	}
	return w->nr ? 0 : -ENOEXEC;
}

/* The interpreter and its arguments; none if @path is no script. */
static int read_words(const char *path, struct script_words *w)
{
	int err = script_read(path, w);

	return err || !w->nr ? err : drop_env(w);
}

/* ---- the interpreter ---- */

/* The N of /usr/bin/python3.N, to which @path leads, be it from a venv; NULL: it doesn't. */
static const char *system_version(const char *path, char real[static PATH_MAX])
{
	const char *version = real + strlen(SYSTEM) - 2;
	const char *minor = version + 2;

	if (!realpath(path, real) || strncmp(real, SYSTEM, strlen(SYSTEM)))
		return NULL;
	return *minor && strspn(minor, "0123456789") == strlen(minor) ? version : NULL;
}

static int find_host(const char *version, char path[static PATH_MAX], char *why, size_t len)
{
	char built[64], installed[64];
	int fd;

	snprintf(built, sizeof(built), "../python/pvas-python%.8s", version);
	snprintf(installed, sizeof(installed), "pvas-python%.8s", version);
	fd = companion_open(built, installed, path);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (fd == -EPERM)
		snprintf(why, len, "not a position-independent executable, and other users may have put %.300s there, which would run it",
			 path);
	else
		snprintf(why, len, "not a position-independent executable, and %s, which would run it, is not there (install package python3-pvas, made for Python %.8s)",
			 installed, version);
	return -ENOEXEC;
}

/* ---- the arguments ---- */

static unsigned int count(char *const *argv)
{
	unsigned int nr = 0;

	while (argv[nr])
		nr++;
	return nr;
}

/* Pointers and strings in one block */
char **python_host_argv(const char *const *words, unsigned int nr, char *const *argv)
{
	const unsigned int more = count(argv + 1);
	size_t size = 0;
	unsigned int i;
	char **all, *at;

	for (i = 0; i < nr; i++)
		size += strlen(words[i]) + 1;
	all = malloc((nr + more + 1) * sizeof(*all) + size);
	if (!all)
		return NULL;
	at = (char *)(all + nr + more + 1);
	for (i = 0; i < nr; i++) {
		all[i] = at;
		at = stpcpy(at, words[i]) + 1;
	}
	memcpy(all + nr, argv + 1, (more + 1) * sizeof(*all));
	return all;
}

static void set_argv(struct python_host *host, const struct script_words *w, const char *script,
		     char *const *argv)
{
	const char *words[SCRIPT_WORDS + 2];
	unsigned int nr;

	for (nr = 0; nr < w->nr; nr++)
		words[nr] = w->word[nr];
	words[nr++] = w->nr ? script : argv[0];
	host->nr_words = nr;
	host->argv = python_host_argv(words, nr, argv);
}

/* 0: @path is not run by a system's Python that can't be a task itself */
static int find_version(const char *path, struct script_words *w, const char **version,
			char real[static PATH_MAX])
{
	char interp[PATH_MAX];

	if (read_words(path, w))
		return 0;
	if (w->nr && pvas_program_find(w->word[0], NULL, interp, sizeof(interp)))
		return 0;
	*version = system_version(w->nr ? interp : path, real);
	return *version && pvas_program_check(real, NULL, 0) == -ENOEXEC;
}

int python_host_find(const char *path, char *const *argv, struct python_host *host, char *why,
		     size_t len)
{
	const char *version;
	char real[PATH_MAX];
	struct script_words w;
	int err;

	if (!find_version(path, &w, &version, real))
		return 0;
	err = find_host(version, host->path, why, len);
	if (err)
		return err;
	set_argv(host, &w, path, argv);
	return host->argv ? 1 : -ENOMEM;
}
