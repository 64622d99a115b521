/* SPDX-License-Identifier: GPL-2.0-only */
/* Causes of an error that its errno value does not tell */
#ifndef PVASRUN_DIAGNOSE_H
#define PVASRUN_DIAGNOSE_H

#include <stdbool.h>
#include <stddef.h>

/* Is memory limited by ulimit -d or -v? Then @text describes the limit. */
bool diagnose_memory_limit(char *text, size_t len);

/* Is pvasrun itself a task of the user backend? Such a job can not contain another one. */
bool diagnose_inside_job(void);

/* Is it forbidden to make writable memory executable? The user backend has to do that. */
bool diagnose_write_execute(void);

#endif
