/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A root directory in memory, for tests that let the kernel's allocations fail: other
 * file systems, above all those of a server, take such a failure for worse than it is.
 */
#ifndef OWN_ROOT_H
#define OWN_ROOT_H

#include <stdbool.h>

/* Is the root of this process a tmpfs? */
bool own_root_is_here(void);
/*
 * Runs this program, which must be static and root's, in such a root: nothing is in it but
 * the program, the kernel's own file systems, and an empty /tmp. Its exit status.
 */
int own_root_run(char **argv);

#endif /* OWN_ROOT_H */
