// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Figure 19 of the DLM paper: fft NAME STORES MIB THREADS PERCENT, the time of a 3-D transform by
 * FFTW from one array to another, of MIB MiB in all, of which so much is resident: "fft NAME s
 * VALUE".
 * FFTW knows of no far memory. With the protocol that PVAS_FAR_PROTOCOL says.
 */
#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "pvas_far.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static fftw_complex *start(const char *stores, size_t ram, size_t size)
{
	struct pvas_far_attr attr = {
		.size = sizeof(attr), .stores = stores, .ram = ram, .far = size, .page = 1 << 14,
		.flags = PVAS_FAR_USER_FAULTS_ONLY,
	};
	void *p;

	if (!pvas_far_open(&attr) && !pvas_far_alloc(&p, size))
		return p;
	fprintf(stderr, "fft: %s\n", pvas_far_error());
	exit(1);
}

/* Transform ones: only the first value of the result is not zero. */
static int transform(const char *name, fftw_complex *in, int n, int threads)
{
	size_t count = (size_t)n * (size_t)n * (size_t)n, i;
	fftw_complex *out = in + count;
	fftw_plan plan;
	double began;

	fftw_init_threads();
	fftw_plan_with_nthreads(threads);
	plan = fftw_plan_dft_3d(n, n, n, in, out, FFTW_FORWARD, FFTW_ESTIMATE);
	for (i = 0; i < count; i++)
		in[i][0] = 1;
	began = now();
	fftw_execute(plan);
	printf("fft %s s %.3f\n", name, now() - began);
	for (i = 1; i < count; i++)
		if (fabs(out[i][0]) + fabs(out[i][1]) > 1e-6)
			return 1;
	return fabs(out[0][0] - (double)count) > 1e-6;
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 6 ? strtoul(argv[3], NULL, 0) << 20 : 0, percent;
	fftw_complex *in;
	int n = 8;

	if (!bytes) {
		fprintf(stderr, "usage: fft NAME STORES MIB THREADS PERCENT\n");
		return 2;
	}
	percent = strtoul(argv[5], NULL, 0);
	while ((size_t)n * n * n * 16 * sizeof(*in) <= bytes)
		n *= 2;
	in = start(argv[2], bytes / 100 * percent, bytes);
	return transform(argv[1], in, n, atoi(argv[4])) || pvas_far_close();
}
