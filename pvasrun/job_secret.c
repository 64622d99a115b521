// SPDX-License-Identifier: GPL-2.0-only
/* The secret of a job: its text, and whether it is still of use. */
#include "job_secret.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "start_time.h"

int job_secret_create(struct job_secret *secret)
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(secret->digits, sizeof(secret->digits), "%016jx%016jx", (uintmax_t)random[0],
		 (uintmax_t)random[1]);
	secret->owner = getpid();
	secret->started = start_time_of(secret->owner);
	return 0;
}

void job_secret_format(const struct job_secret *secret, char text[static JOB_SECRET_TEXT])
{
	snprintf(text, JOB_SECRET_TEXT, "%s %d %ju", secret->digits, secret->owner,
		 (uintmax_t)secret->started);
}

int job_secret_parse(struct job_secret *secret, const char *text, size_t len)
{
	char copy[JOB_SECRET_TEXT];
	uintmax_t started;
	unsigned int i;

	if (len >= sizeof(copy))
		return -EBADMSG;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (sscanf(copy, "%32s %d %ju", secret->digits, &secret->owner, &started) != 3)
		return -EBADMSG;
	secret->started = started;
	for (i = 0; i < JOB_SECRET_LEN; i++)
		if (!isxdigit((unsigned char)secret->digits[i]))
			return -EBADMSG;
	return secret->owner > 0 ? 0 : -EBADMSG;
}

/*
 * A pid can be reused, but not with the same start time. The owner of a secret from
 * before a reboot may have been started at a time that is still in the future.
 */
bool job_secret_is_stale(const struct job_secret *secret)
{
	const uint64_t hz = sysconf(_SC_CLK_TCK), started = start_time_of(secret->owner);
	struct timespec now;
	uint64_t ticks;

	if (started == secret->started || started == START_TIME_UNKNOWN)
		return false;
	clock_gettime(CLOCK_BOOTTIME, &now);
	ticks = now.tv_sec * hz + now.tv_nsec * hz / 1000000000;
	return ticks < secret->started || ticks - secret->started >= JOB_SECRET_MIN_AGE_S * hz;
}
