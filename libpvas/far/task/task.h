/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Far memory of a job with the module: a library that pvasrun has each task preload. The module
 * lets a task change its own partition only, so each task has a pager of its own, for its far
 * part; the faults of its peers there are served by it, too.
 *
 *	task.c		the pager's beginning, and its thread that makes calls for the program
 *	calls.c		the program's system calls
 *	heap.c		large blocks of malloc(): libc's own system calls can't be seen
 *
 * pvasrun sets the environment: see pvas-far(7), and PVASRUN_FAR is the threshold in bytes.
 */
#ifndef PVAS_FAR_TASK_H
#define PVAS_FAR_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../far_calls.h"

#define TASK_PUBLIC	__attribute__((visibility("default")))
#define TASK_THRESHOLD	"PVASRUN_FAR"

/* Is private memory of this size far, if the calling thread asks for it? */
bool task_is_far(uint64_t size);

/* Does [addr, addr + len) reach into the far part? Also in a fork child, where nothing is there */
bool task_has(uint64_t addr, uint64_t len);

/* Has this process a pager? A fork child has none. */
bool task_pages(void);

/* A system call of the program that may concern far memory: its result, or -errno */
int64_t task_call(int nr, const uint64_t args[static 6]);

#endif
