/* SPDX-License-Identifier: GPL-2.0-only */
/* Turning words of the command line into values. */
#ifndef PVASRUN_PARSE_H
#define PVASRUN_PARSE_H

#include <stdint.h>

/* All return 0, or -EINVAL: no such value, or -ERANGE: outside what fits. */
int parse_count(const char *text, unsigned int min, unsigned int max, unsigned int *value);
int parse_size(const char *text, uint64_t *bytes);
int parse_seconds(const char *text, int64_t *ms);

/* The names of an enumeration: index = value, NULL ends it. Value or -EINVAL. */
int parse_choice(const char *text, const char *const *names);

#endif
