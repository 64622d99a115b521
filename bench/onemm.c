// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of sharing one mm: how often can N workers at the same time fault, map
 * and unmap, allocate, or switch from one to the other?
 *
 * usage: onemm PREFIX SYSTEM N MILLISECONDS WHAT...
 *
 * SYSTEM and WHAT as worker_group.h and worker.c have them. Prints lines "WHAT PREFIXN UNIT VALUE":
 * the sum of operations per second; then, by /proc/interrupts, TLB shootdowns for 1000
 * of these.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "worker_group.h"

struct sample {
	double us;
	uint64_t count, shootdowns;
};

/* The line "TLB:" has a column a processor. */
static uint64_t shootdowns(void)
{
	FILE *f = fopen("/proc/interrupts", "re");
	uint64_t sum = 0;
	char line[4096];

	if (!f)
		bench_die("/proc/interrupts", -errno);
	while (fgets(line, sizeof(line), f)) {
		char *p = strstr(line, "TLB:"), *end;

		for (p = p ? p + 4 : NULL; p; p = end) {
			uint64_t v = strtoull(p, &end, 10);

			if (end == p)
				break;
			sum += v;
		}
	}
	fclose(f);
	return sum;
}

static struct sample look(const struct worker_group *c)
{
	return (struct sample){ bench_us(), group_count(c), shootdowns() };
}

static void measure(const char *prefix, const char *system, unsigned int n, unsigned int ms,
		    const char *what)
{
	/* If no operation ends within an interval, wait up to 50 more. */
	int left = 50;
	struct sample a, b;
	struct worker_group c;
	double done;

	group_start(&c, system, n, "worker", what);
	group_begin(&c);
	/* The first ones warm caches, slabs and, in an emulator, translations. */
	usleep(ms * 250);
	a = look(&c);
	do {
		usleep(ms * 1000);
		b = look(&c);
		done = b.count - a.count;
	} while (!done && left--);
	group_end(&c);
	if (!done)
		bench_die(what, -ETIME);
	printf("%s %s%u 1/s %.6g\n", what, prefix, n, done / (b.us - a.us) * 1e6);
	printf("%s-shootdowns %s%u 1/1000 %.4g\n", what, prefix, n,
	       (b.shootdowns - a.shootdowns) / done * 1000);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int i;

	if (argc < 6 || atoi(argv[3]) < 1 || atoi(argv[4]) < 1)
		bench_die("usage: onemm PREFIX SYSTEM N MILLISECONDS WHAT...", -EINVAL);
	for (i = 5; i < argc; i++)
		measure(argv[1], argv[2], atoi(argv[3]), atoi(argv[4]), argv[i]);
	return 0;
}
