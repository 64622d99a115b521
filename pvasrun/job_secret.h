/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A random secret that the first rank of a job on a node creates and the other ranks
 * find: in a private directory, or in the user's keyring.
 */
#ifndef PVASRUN_JOB_SECRET_H
#define PVASRUN_JOB_SECRET_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define JOB_SECRET_LEN	32	/* hexadecimal digits */
#define JOB_SECRET_TEXT	80	/* with the owner, as it is stored */

/* A stale secret is removed this long after its owner was started, at the earliest. */
#define JOB_SECRET_MIN_AGE_S 60

struct job_secret {
	char digits[JOB_SECRET_LEN + 1];
	pid_t owner;		/* the first rank, whose pid pvasexec passes on to the program */
	uint64_t started;	/* when that was started, in clock ticks since boot */
};

/* All return 0 or -errno. */
int job_secret_create(struct job_secret *secret);
int job_secret_parse(struct job_secret *secret, const char *text, size_t len);
void job_secret_format(const struct job_secret *secret, char text[static JOB_SECRET_TEXT]);

/* Has its owner ended? Then ranks of that job do not start any more. */
bool job_secret_is_stale(const struct job_secret *secret);

/*
 * Find the secret named @name, or create it; only one process can. Both remove stale
 * secrets of other jobs of this user.
 */
int job_secret_in_keyring(const char *name, struct job_secret *secret);
int job_secret_in_directory(int dir, const char *name, struct job_secret *secret);

#define JOB_SECRET_PREFIX "pvasexec-"

#endif
