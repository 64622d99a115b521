/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Debian links /usr/bin/python3 at fixed addresses, so it can't be a task. The package
 * python3-pvas has pvas-python3.N: the same interpreter, from libpython, as a
 * position-independent program, which takes its place.
 */
#ifndef PVASRUN_PYTHON_H
#define PVASRUN_PYTHON_H

#include <limits.h>
#include <stddef.h>

/**
 * struct python_host - the program to start instead of the interpreter or of its script
 * @path:	the program
 * @argv:	its arguments, in one block for free(): the interpreter keeps its name, from
 *		which Python derives sys.executable and the library to use
 */
struct python_host {
	char path[PATH_MAX];
	char **argv;
	unsigned int nr_words;
};

/*
 * @path: a program, or a script that begins with #!; @argv: its arguments. Returns 1 and
 * sets @host if the system's Python would run it at fixed addresses; 0 if not;
 * -ENOEXEC with the reason, and what to do, in @why if there is no host for it; -ENOMEM.
 */
int python_host_find(const char *path, char *const *argv, struct python_host *host, char *why,
		     size_t len);

/* @argv with @nr words in the place of its first, in one block; NULL: no memory */
char **python_host_argv(const char *const *words, unsigned int nr, char *const *argv);

#endif
