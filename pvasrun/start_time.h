/* SPDX-License-Identifier: GPL-2.0-only */
/* When a process was started. */
#ifndef PVASRUN_START_TIME_H
#define PVASRUN_START_TIME_H

#include <stdint.h>
#include <sys/types.h>

#define START_TIME_UNKNOWN UINT64_MAX

/*
 * In clock ticks since the machine's start; 0: there is no such process of this user.
 * START_TIME_UNKNOWN if that can't be found out in a second, in all: the kernel waits for a
 * process that is in the middle of an execve(2), which can hang in closing a file.
 */
uint64_t start_time_of(pid_t pid);

/* The same of any user's process, in *@patience milliseconds: see ask_read(). */
uint64_t start_time_of_any(pid_t pid, int64_t *patience);

#endif
