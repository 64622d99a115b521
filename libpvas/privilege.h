/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs to which execve() gives more rights than their caller has: never tasks. */
#ifndef PVAS_PRIVILEGE_H
#define PVAS_PRIVILEGE_H

#include <sys/stat.h>

/*
 * Why the open file is such a program, as text; NULL if it is not. Raw system
 * calls only, for new processes that share their parent's memory.
 */
const char *pvas_privilege_of(int fd, mode_t mode);

#endif
