/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the benchmarks: a clock, medians, /proc/meminfo, one line for each result. */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <sys/types.h>

struct pvas_space;

/** bench_us - microseconds of a clock that only goes forward */
double bench_us(void);

/** bench_median - sorts @v */
double bench_median(double *v, size_t n);

/** bench_meminfo - one line of /proc/meminfo, in KiB */
long bench_meminfo(const char *field);

/** bench_die - one line on standard error, and exit with status 1; @err is -errno */
void bench_die(const char *what, int err) __attribute__((noreturn));

/**
 * bench_result - print one comparison, for bench/run to put in its table
 * @a:		medians: of the plain case
 * @b:		of pvas
 * @ratio:	median of the ratios, run by run: noise that both sides of a
 *		run share drops out of it
 * @limit:	the highest allowed @ratio; 0: no limit
 */
void bench_result(const char *what, const char *unit, size_t runs, double a, double b,
		  double ratio, double limit);

/** struct bench_series - pairs of samples taken one after the other, and ours once more */
struct bench_series {
	double *a, *b, *again, *ratio;
	size_t n, room;
};

void bench_series_init(struct bench_series *s, size_t room);
void bench_series_add(struct bench_series *s, double a, double b);
/** bench_series_again - what @b of the last pair was when measured a second time */
void bench_series_again(struct bench_series *s, double again);
/** bench_series_result - all samples, and bench_result() of the medians; frees the series */
void bench_series_result(struct bench_series *s, const char *what, const char *unit, double limit);

/** bench_beside - the path of another program of the benchmarks */
const char *bench_beside(const char *name);

/**
 * bench_start - start a program as a task of @space or, if it is NULL, plainly
 * @out:	its standard output, or -1 to leave it
 */
pid_t bench_start(struct pvas_space *space, const char *path, char *const argv[], int out);

/** bench_reap - wait for one child; anything but success ends the benchmark */
void bench_reap(pid_t pid);

#endif /* BENCH_H */
