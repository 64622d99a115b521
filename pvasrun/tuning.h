/* SPDX-License-Identifier: GPL-2.0-only */
/* What tasks' libraries are told, so that they suit a space. */
#ifndef PVASRUN_TUNING_H
#define PVASRUN_TUNING_H

#define TUNABLES "GLIBC_TUNABLES"

/**
 * tuning_of_malloc - a value of TUNABLES with which glibc's malloc asks the kernel for
 * memory, and gives it back, more rarely
 * @old:	the value there is, or NULL. If it says something of malloc it stands.
 *
 * To be freed. NULL: nothing is to be changed, or errno is set.
 */
char *tuning_of_malloc(const char *old);

#endif
