// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * pvas-python3: the system's Python as a position-independent program, which can be a
 * task of a PVAS space. Debian links python3 itself at fixed addresses.
 *
 * pvasrun and pvasexec start it in the place of python3, under the name that the user
 * has typed. From that name Python derives sys.executable, the folders of its library and
 * the virtual environment: so child processes run python3 itself, as they are to.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>
#include <unistd.h>

/* The interpreter of this version, from the Makefile */
#ifndef INTERPRETER
#error "INTERPRETER: the path of the interpreter that is linked at fixed addresses"
#endif

/* Its own name would become sys.executable, and part of environments made by venv. */
static char *interpreter_name(char *name)
{
	static char interpreter[] = INTERPRETER;
	const char *base = strrchr(name, '/');

	base = base ? base + 1 : name;
	if (strncmp(base, "pvas-python", strlen("pvas-python")) || access(interpreter, X_OK))
		return name;
	return interpreter;
}

int main(int argc, char **argv)
{
	if (argc > 0)
		argv[0] = interpreter_name(argv[0]);
	return Py_BytesMain(argc, argv);
}
