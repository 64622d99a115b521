// SPDX-License-Identifier: GPL-2.0-only
/* Lines for people */
#include <stdarg.h>
#include <stdio.h>
#include "memd.h"

#define NOTICE_S	10

static double mib(uint64_t bytes)
{
	return bytes / 1048576.0;
}

/* The memory in use, in all and for each job: at SIGUSR1, and at the end */
void report(const struct memd *memd)
{
	const struct job *job;
	uint64_t held = 0;
	unsigned int jobs = 0, stores = 0;

	for (job = memd->jobs; job; job = job->next) {
		held += job->held;
		stores += job->stores;
		jobs++;
	}
	printf("pvas-memd: %.1f of %.1f MiB reserved, %.1f MiB held; %u jobs, %u stores\n",
	       mib(memd->reserved), mib(memd->options.ram), mib(held), jobs, stores);
	for (job = memd->jobs; job; job = job->next)
		printf("pvas-memd: job %s: %u stores, %.1f MiB reserved, %.1f MiB held; "
		       "%.1f MiB put, %.1f MiB got\n", job->name, job->stores, mib(job->reserved),
		       mib(job->held), mib(job->put_bytes), mib(job->get_bytes));
	fflush(stdout);
}

/* For messages that others can provoke: one each 10 seconds, the rest are counted. */
void notice(struct memd *memd, const char *format, ...)
{
	double now = far_now();
	va_list args;

	if (memd->notice_at && now - memd->notice_at < NOTICE_S) {
		memd->notices++;
		return;
	}
	fprintf(stderr, "pvas-memd: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	if (memd->notices)
		fprintf(stderr, " (and %u such messages before)", memd->notices);
	fputc('\n', stderr);
	memd->notices = 0;
	memd->notice_at = now;
}

/* With --verbose */
void say(const struct memd *memd, const char *format, ...)
{
	va_list args;

	if (!memd->options.verbose)
		return;
	printf("pvas-memd: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}
