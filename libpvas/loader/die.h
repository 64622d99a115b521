/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loader's error message and exit */
#ifndef PVAS_LOADER_DIE_H
#define PVAS_LOADER_DIE_H

/*
 * Write "pvas: @program: @what[ @name]: reason" to standard error, and exit with a
 * shell's status: 127 if something was not found, else 126. @name may be NULL.
 */
void pvas_die(const char *program, const char *what, const char *name, int err)
	__attribute__((noreturn));

#endif /* PVAS_LOADER_DIE_H */
