/* SPDX-License-Identifier: GPL-2.0-only */
/* Convert words of the command line to values. */
#ifndef PVASRUN_PARSE_H
#define PVASRUN_PARSE_H

#include <stdint.h>

/* All return 0, -EINVAL if it is not a valid word, or -ERANGE. */
int parse_count(const char *text, unsigned int min, unsigned int max, unsigned int *value);
int parse_size(const char *text, uint64_t *bytes);
int parse_seconds(const char *text, int64_t *ms);

/* The index of @text in @names, which a NULL ends, or -EINVAL */
int parse_choice(const char *text, const char *const *names);

#endif
