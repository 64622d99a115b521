/* SPDX-License-Identifier: GPL-2.0-only */
/* The environment of another process, which may be another user's. */
#ifndef PVASRUN_ENVIRONMENT_H
#define PVASRUN_ENVIRONMENT_H

#include <stdint.h>
#include <sys/types.h>

enum environment {
	ENVIRONMENT_HAS_NOT,
	ENVIRONMENT_HAS,
	ENVIRONMENT_UNKNOWN,	/* no answer in time */
};

/*
 * Is @variable ("NAME=VALUE") among those that process @pid was started with? Of an
 * environment that is longer than any execve(2) allows, only the begin counts: a process can
 * make any of its memory its environment. *@patience, in milliseconds, is how long all calls
 * together wait for the kernel's answers.
 */
enum environment environment_has(pid_t pid, const char *variable, int64_t *patience);

#endif
