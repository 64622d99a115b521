/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that only those can change whom this program is trusted to by running it */
#ifndef PVASRUN_TRUSTED_H
#define PVASRUN_TRUSTED_H

#include <stdbool.h>

/*
 * @program: the path of this program. What its owner, root and this user can change
 * is trusted, and what is in no directory that others may write to; the directories
 * above the program itself are, since it could be exchanged as well.
 */
bool trusted_path(const char *path, const char *program);

#endif
