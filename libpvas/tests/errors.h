/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For errors.c: calls that must fail, and the conditions that make them fail. */
#ifndef PVAS_TEST_ERRORS_H
#define PVAS_TEST_ERRORS_H

#include <sys/resource.h>

/* Number of calls with an unexpected result, in this test or task */
extern int failed;

void fails(const char *file, int line, const char *call, int want, int got);

/* @call is pvas_NAME(), or a function NAME() here that calls it and returns its result. */
#define FAILS(error, call) fails(__FILE__, __LINE__, #call, -(error), call)

int space_create(int backend);

/* With a key that no other process has */
int space_join(void);

int program_check(const char *path);

/* errors_task.c: run as a task; returns @failed. */
int errors_as_task(void);

void set_limit(int resource, rlim_t soft);

/* Only @left more files can be opened. */
void leave_files(int left);

/* Nothing can be mapped, and malloc() has nothing left. */
void leave_no_memory(void);
void give_memory_back(void);

/* Become an ordinary user: RLIMIT_NPROC does not hold for root. */
void be_ordinary(void);

/* Programs that can't run, and a path that is too long; the first four are files in /tmp. */
extern char bad_interp[64], fifo_interp[64], fifo[80], bad_link[72], long_path[5000];

void make_bad_programs(void);
void remove_bad_programs(void);

/* Returns 0 if the file took @text. */
int write_text(const char *path, const char *text);

#endif /* PVAS_TEST_ERRORS_H */
