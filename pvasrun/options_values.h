/* SPDX-License-Identifier: GPL-2.0-only */
/* The values of options, while the command line is parsed (options.c). */
#ifndef PVASRUN_OPTIONS_VALUES_H
#define PVASRUN_OPTIONS_VALUES_H

#include "options.h"

/* Open MPI counts ranks in an int, and PMIx keeps the highest numbers for itself. */
#define MAX_RANKS (1U << 30)

/* @app: whose options are being parsed; @why: what is wrong, @len bytes */
struct parser {
	struct options *opt;
	struct app *app;
	char *why;
	size_t len;
};

/* Store why the command line is not accepted. Returns -EINVAL. */
__attribute__((format(printf, 2, 3)))
int options_refuse(struct parser *p, const char *format, ...);

/* The same if there is no memory: -ENOMEM */
int options_refuse_memory(struct parser *p);

/* An option with a value, and one without. 0 or -errno */
int options_take_value(struct parser *p, int key, const char *text);
void options_take_flag(struct options *opt, int key);

#endif
