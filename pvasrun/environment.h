/* SPDX-License-Identifier: GPL-2.0-only */
/* Which processes were started with a variable, asked without waiting for those that hang. */
#ifndef PVASRUN_ENVIRONMENT_H
#define PVASRUN_ENVIRONMENT_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * @variable: NAME=VALUE. Stores whether each process, or the one that forked it, has been started
 * with it. One that gives no answer in time counts as one that has.
 */
void environment_ask(const char *variable, const pid_t *pids, unsigned int nr, bool *has);

#endif
