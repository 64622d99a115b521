/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that only users can change whom the user of this program must trust anyway. */
#ifndef PVASRUN_TRUSTED_H
#define PVASRUN_TRUSTED_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * @program: the path of this program. Trusted users are root, this user and the owner of
 * the program. A file is trusted if it, and each directory above it, belongs to one of
 * them and is not writable for others. Directories above the program itself may belong
 * to any user, who could replace the program as well.
 *
 * Returns an O_PATH descriptor of the file or directory, or -errno (-EPERM: not
 * trusted). @real is its path without links, which only trusted users can redirect: use
 * the descriptor or @real, never @path.
 */
int trusted_open(const char *path, const char *program, char real[static PATH_MAX]);

/* Has the group @gid no member but @uid? */
bool trusted_group(uid_t uid, gid_t gid);

#endif
