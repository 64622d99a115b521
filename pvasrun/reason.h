/* SPDX-License-Identifier: GPL-2.0-only */
/* Reasons for an error that the errno value does not tell, and what to do about them. */
#ifndef PVASRUN_REASON_H
#define PVASRUN_REASON_H

#include <stdbool.h>
#include <stddef.h>

/* Is memory limited by ulimit -d or -v? Then one line of text, else false. */
bool reason_memory_limit(char *text, size_t len);

/* Is pvasrun itself inside a job of the user backend, where no second one can be? */
bool reason_inside_job(void);

/* May no memory become executable that was writable? The user backend needs it. */
bool reason_write_execute(void);

#endif
