/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts of user_task: the task's partition, and mapping in it. */
#ifndef USER_TASK_H
#define USER_TASK_H

#include <stddef.h>
#include <sys/mman.h>

#include "task_check.h"

#define PAGE		4096UL
#define ANON		(MAP_PRIVATE | MAP_ANONYMOUS)
#define RW		(PROT_READ | PROT_WRITE)

#define MAP_FAILS(call, err)	((call) == MAP_FAILED && errno == (err))

/* Of the task's partition */
extern char *base;
extern size_t size;

static inline int inside(const void *p)
{
	return (const char *)p >= base && (const char *)p < base + size;
}

static inline void *map(size_t len)
{
	return mmap(NULL, len, RW, ANON, -1, 0);
}

/* Returns how many checks failed; -1: there is no such test. */
int test_memory(const char *what);
int test_plain(const char *what, const char *self);

/* The test of a program that is no task. Returns its status. */
int heap_of_kernel(void);

#endif /* USER_TASK_H */
