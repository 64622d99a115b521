/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the parts of the program that tests a job's far memory */
#ifndef FAR_TESTS_JOB_H
#define FAR_TESTS_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIB		((size_t)1 << 20)
#define RAM		(16 * MIB)	/* run.sh has the same */
#define PAGE		((size_t)4096)
#define ALLOWANCE	(24 * MIB)	/* programs, libraries, compressed pages of a few values */

/* A line with the place, and the end of the task */
#define check(condition)	check_at(!!(condition), #condition, __func__, __LINE__)
void check_at(bool ok, const char *condition, const char *where, int line);

/* In the second quarter of the caller's partition? */
bool is_far(const void *p);

/* Where the caller's far part begins */
char *far_start(const void *p);

/* Memory that is far */
char *far_memory(size_t size);

/* Touch so much other far memory that nothing else is resident. */
void evict(void);

/* Does a load from there get SIGSEGV? A store? */
bool faults(const void *p);
bool rejects_stores(void *p);

/* Another task's memory, which it exports as "far" */
volatile uint64_t *memory_of(unsigned int rank);

/* Bytes of this mm that are resident */
size_t resident(void);

void test_calls(void);
void test_messages(void);
void test_waiting(void);
void test_peer(void);
void test_file(void);
void test_protection(void);
void test_heap(void);
void test_closed(void);
void test_again(void);
void test_leaving(void);
void test_large(void);
void test_rounds(void);
void test_fuzz(void);
void test_watched(void);
void test_core(void);
void test_device(void);

#endif
