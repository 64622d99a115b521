/* SPDX-License-Identifier: GPL-2.0-only */
/* Tunables of glibc's malloc that suit a shared address space */
#ifndef PVASRUN_MALLOC_TUNABLES_H
#define PVASRUN_MALLOC_TUNABLES_H

#define TUNABLES "GLIBC_TUNABLES"

/**
 * malloc_tunables - a value for GLIBC_TUNABLES that makes malloc(3) request and return
 *		     memory less often
 * @old:	the present value, or NULL. If it sets tunables of malloc, it is kept.
 * @far_threshold: blocks of this size must be mapped, to be far memory; 0: there is none
 *
 * To be freed. NULL with errno 0: keep the present value.
 */
char *malloc_tunables(const char *old, unsigned long far_threshold);

#endif
