/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs that execve() gives more rights than their caller's: never tasks. */
#ifndef PVAS_PRIVILEGE_H
#define PVAS_PRIVILEGE_H

#include <sys/stat.h>

/*
 * What makes the open file such a program, as text; NULL: nothing. Raw system
 * calls only, for new processes that share their parent's memory.
 */
const char *pvas_privilege_of(int fd, mode_t mode);

#endif
