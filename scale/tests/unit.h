/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks of the library, counted. */
#ifndef SCALE_UNIT_H
#define SCALE_UNIT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

/* @name says which case of a table it is. */
void expect(bool good, const char *name, const char *file, int line);
void expect_number(uint64_t got, uint64_t wanted, const char *name, const char *file, int line);
void expect_text(const char *got, const char *wanted, const char *name, const char *file, int line);
/* To as many digits as @wanted prints */
void expect_printed(double got, const char *wanted, const char *name, const char *file, int line);

#define EXPECT(condition)	expect(condition, #condition, __FILE__, __LINE__)
#define CASE(condition, name)	expect(condition, name, __FILE__, __LINE__)
#define NUMBER(got, wanted)	expect_number(got, wanted, #got, __FILE__, __LINE__)
#define NUMBER_CASE(got, wanted, name)	expect_number(got, wanted, name, __FILE__, __LINE__)
#define STRING(got, wanted)	expect_text(got, wanted, #got, __FILE__, __LINE__)
#define STRING_CASE(got, wanted, name)	expect_text(got, wanted, name, __FILE__, __LINE__)
#define PRINTED(got, wanted)	expect_printed(got, wanted, #got, __FILE__, __LINE__)

void test_lean(void);
void test_kcomputer(void);
void test_pvas(void);
void test_neighbour(void);
void test_fit(void);
void test_words(void);

#endif
