/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For programs that run as tasks: print and count failed checks. */
#ifndef TASK_CHECK_H
#define TASK_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(cond)							\
	do {								\
		errno = 0;						\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: %s: errno %d (%s)\n", __FILE__, \
				__LINE__, #cond, errno, strerror(errno)); \
			failures++;					\
		}							\
	} while (0)

#define FAILS(call, err)	((call) == -1 && errno == (err))

#endif /* TASK_CHECK_H */
