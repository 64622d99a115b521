/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that only those can change whom this program is trusted to by running it */
#ifndef PVASRUN_TRUSTED_H
#define PVASRUN_TRUSTED_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * @program: the path of this program. What its owner, root and this user can change
 * is trusted, and what is in no directory that others may write to; the directories
 * above the program itself are, since it could be exchanged as well.
 *
 * An O_PATH descriptor of the file or directory, or -errno (-EPERM: not trusted).
 * @real has its path without links, which none but trusted users can make lead
 * elsewhere: use the descriptor or that, never @path.
 */
int trusted_open(const char *path, const char *program, char real[static PATH_MAX]);

/* May a file of @uid be writable for the group @gid, and still be @uid's alone? */
bool trusted_group(uid_t uid, gid_t gid);

#endif
