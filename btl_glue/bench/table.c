// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: table new FILE SAMPLES "SIZE..." RIVAL...	make the jobs' page
 *	  table show FILE				print the results
 *	  table raw FILE				the same, sample by sample
 *	  table csv FILE kept|dropped			as bench/README.md says
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "p2p.h"

static void add_sizes(struct page *page, char *list)
{
	char *word = strtok(list, " ");

	for (; word && page->nr_sizes < MAX_SIZES; word = strtok(NULL, " "))
		page->sizes[page->nr_sizes++] = strtoull(word, NULL, 0);
}

static int make(char **argv, int nr_rivals)
{
	int fd = open(argv[0], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct page *page;
	int i;

	if (fd < 0 || ftruncate(fd, sizeof(*page))) {
		perror(argv[0]);
		return 1;
	}
	close(fd);
	page = open_page(argv[0]);
	page->nr_samples = atoi(argv[1]) < MAX_SAMPLES ? atoi(argv[1]) : MAX_SAMPLES;
	page->nr_rivals = nr_rivals;
	add_sizes(page, argv[2]);
	for (i = 0; i < nr_rivals; i++)
		snprintf(page->names[i], sizeof(page->names[i]), "%s", argv[3 + i]);
	return 0;
}

static void print_raw(const struct page *p)
{
	unsigned int s, i, r;

	for (s = 0; s < p->nr_sizes; s++)
		for (i = 0; i < p->nr_samples; i++)
			for (r = 0; r < p->nr_rivals; r++) {
				const struct sample *v = &p->samples[s][i][r];

				printf("%zu %u %s latency %.3f stream %.3f fresh %.3f probe %.0f\n",
				       p->sizes[s], i, p->names[r], 1e6 * v->seconds[LATENCY],
				       1e6 * v->seconds[STREAM], 1e6 * v->seconds[FRESH],
				       1e9 * v->probe);
			}
}

/* One line of CSV; @value 0: not measured */
static void csv_line(const char *what, const char *unit, const struct page *p, int size, int i,
		     int r, double value)
{
	const struct sample *v = &p->samples[size][i][r];

	if (value > 0)
		printf("%s,%zu,%s,%d,%s,%.6g,%.0f%s\n", what, p->sizes[size], p->names[r], i + 1,
		       unit, value, 1e9 * v->probe, v->moved ? ",moved" : "");
}

static double per_second(double amount, double seconds)
{
	return seconds > 0 ? amount / seconds : 0;
}

static void csv_sample(const struct page *p, int size, int i, int r)
{
	const double *t = p->samples[size][i][r].seconds;
	double gb = 1e-9 * p->sizes[size];

	csv_line("latency", "us", p, size, i, r, 1e6 * t[LATENCY]);
	csv_line("fresh", "us", p, size, i, r, 1e6 * t[FRESH]);
	csv_line("stream", "GB/s", p, size, i, r, per_second(gb, t[STREAM]));
	csv_line("both-ways", "GB/s", p, size, i, r, per_second(2 * gb, t[BOTH_WAYS]));
	csv_line("rate", "M/s", p, size, i, r, per_second(1e-6, t[RATE]));
}

/* @moved: the samples that were dropped */
static void print_csv(const struct page *p, bool moved)
{
	unsigned int s, i, r;

	printf("what,x,system,run,unit,value,probe%s\n", moved ? ",why" : "");
	for (s = 0; s < p->nr_sizes; s++)
		for (i = 0; i < p->nr_samples; i++)
			for (r = 0; r < p->nr_rivals; r++)
				if (p->samples[s][i][r].moved == moved)
					csv_sample(p, s, i, r);
}

int main(int argc, char **argv)
{
	if (argc > 5 && argc - 5 <= MAX_RIVALS && !strcmp(argv[1], "new"))
		return make(argv + 2, argc - 5);
	if (argc == 3 && !strcmp(argv[1], "show")) {
		report(open_page(argv[2]));
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "raw")) {
		print_raw(open_page(argv[2]));
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "csv")) {
		print_csv(open_page(argv[2]), !strcmp(argv[3], "dropped"));
		return 0;
	}
	fprintf(stderr, "usage: table new FILE SAMPLES SIZES RIVAL... | table show|raw FILE\n"
			"       table csv FILE kept|dropped\n");
	return 2;
}
