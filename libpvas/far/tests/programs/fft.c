// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The fourth program of the DLM paper: fft MIB, a 3-D transform by FFTW with two threads, there
 * and back. Prints the bits of the transform, and fails if the way back leads elsewhere.
 */
#include <fftw3.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double value(size_t i)
{
	return (double)(i * 2654435761U % 1000003) / 1000003;
}

static void print_bits(const double *p, size_t count)
{
	uint64_t sum = 0, word;
	size_t i;

	for (i = 0; i < count; i++) {
		memcpy(&word, p + i, sizeof(word));
		sum = (sum << 7 | sum >> 57) + word;
	}
	printf("fft %016llx\n", (unsigned long long)sum);
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 2 ? strtoul(argv[1], NULL, 10) << 20 : 0, count, i;
	fftw_plan there, back;
	fftw_complex *data;
	double *p, off = 0;
	int n = 16;

	while ((size_t)8 * n * n * n * sizeof(*data) <= bytes)
		n *= 2;
	count = (size_t)n * n * n;
	data = fftw_malloc(count * sizeof(*data));
	if (!bytes || !data || !fftw_init_threads())
		return 2;
	fftw_plan_with_nthreads(2);
	there = fftw_plan_dft_3d(n, n, n, data, data, FFTW_FORWARD, FFTW_ESTIMATE);
	back = fftw_plan_dft_3d(n, n, n, data, data, FFTW_BACKWARD, FFTW_ESTIMATE);
	p = (double *)data;
	for (i = 0; i < 2 * count; i++)
		p[i] = value(i);
	fftw_execute(there);
	print_bits(p, 2 * count);
	fftw_execute(back);
	for (i = 0; i < 2 * count; i++)
		off = fmax(off, fabs(p[i] / (double)count - value(i)));
	return off > 1e-9;
}
