// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Three of the programs of the DLM paper: kernels stream|stencil|untiled|product MIB, which prints
 * the bits of its result. It knows of no far memory: what it prints must not depend on that, nor
 * on the number of threads.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 4, BLOCK = 64 };

static double *array(size_t count)
{
	double *p = malloc(count * sizeof(*p));

	if (!p) {
		perror("malloc");
		exit(1);
	}
	return p;
}

/* A whole number, of all bits and their places */
static void print_bits(const char *what, const double *p, size_t count)
{
	uint64_t sum = 0, word;
	size_t i;

	for (i = 0; i < count; i++) {
		memcpy(&word, p + i, sizeof(word));
		sum = (sum << 7 | sum >> 57) + word;
	}
	printf("%s %016llx\n", what, (unsigned long long)sum);
}

static double value(size_t i)
{
	return (double)(i * 2654435761U % 1000003) / 1000003;
}

/* STREAM's four loops, on three arrays */
static void stream(size_t bytes)
{
	size_t n = bytes / 3 / sizeof(double), i;
	double *a = array(n), *b = array(n), *c = array(n);
	int pass;

#pragma omp parallel for
	for (i = 0; i < n; i++) {
		a[i] = value(i);
		b[i] = 2;
		c[i] = 0;
	}
	for (pass = 0; pass < 2; pass++) {
#pragma omp parallel for
		for (i = 0; i < n; i++)
			c[i] = a[i];
#pragma omp parallel for
		for (i = 0; i < n; i++)
			b[i] = 3 * c[i];
#pragma omp parallel for
		for (i = 0; i < n; i++)
			c[i] = a[i] + b[i];
#pragma omp parallel for
		for (i = 0; i < n; i++)
			a[i] = b[i] + 3 * c[i];
	}
	print_bits("stream", a, n);
	print_bits("stream", c, n);
}

/* One plane of one step of a grid of n x n x n points; those of the surface stay. */
static void plane(double *to, const double *from, size_t n, size_t z)
{
	const double *p = from + z * n * n;
	size_t y, x;

	to += z * n * n;
#pragma omp parallel for private(x)
	for (y = 1; y < n - 1; y++)
		for (x = 1; x < n - 1; x++) {
			size_t i = y * n + x;

			to[i] = 0.4 * p[i] + 0.1 * (p[i - 1] + p[i + 1] + p[i - n] + p[i + n] +
						    p[i - n * n] + p[i + n * n]);
		}
}

/* All steps of a plane follow each other closely: a plane is brought in once for all of them. */
static void tiled(double *const grid[2], size_t n)
{
	size_t wave, step;

	for (wave = 1; wave < n - 1 + STEPS - 1; wave++)
		for (step = 0; step < STEPS; step++)
			if (wave >= step + 1 && wave - step < n - 1)
				plane(grid[(step + 1) % 2], grid[step % 2], n, wave - step);
}

static void untiled(double *const grid[2], size_t n)
{
	size_t z, step;

	for (step = 0; step < STEPS; step++)
		for (z = 1; z < n - 1; z++)
			plane(grid[(step + 1) % 2], grid[step % 2], n, z);
}

static void stencil(size_t bytes, void (*run)(double *const grid[2], size_t n))
{
	double *grid[2];
	size_t n = 8, i;

	while ((n + 1) * (n + 1) * (n + 1) * 2 * sizeof(double) <= bytes)
		n++;
	grid[0] = array(n * n * n);
	grid[1] = array(n * n * n);
	for (i = 0; i < n * n * n; i++)
		grid[0][i] = grid[1][i] = value(i);
	run(grid, n);
	print_bits("stencil", grid[STEPS % 2], n * n * n);
}

static void multiply(double *c, const double *a, const double *b, size_t n)
{
	size_t i, j, k;

	for (i = 0; i < BLOCK; i++)
		for (k = 0; k < BLOCK; k++)
			for (j = 0; j < BLOCK; j++)
				c[i * n + j] += a[i * n + k] * b[k * n + j];
}

/* Two matrices of n x n, block by block */
static void product(size_t bytes)
{
	double *a, *b, *c;
	size_t n = BLOCK, i, j, k;

	while ((n + BLOCK) * (n + BLOCK) * 3 * sizeof(double) <= bytes)
		n += BLOCK;
	a = array(n * n);
	b = array(n * n);
	c = array(n * n);
	for (i = 0; i < n * n; i++) {
		a[i] = value(i);
		b[i] = value(i + 7);
		c[i] = 0;
	}
#pragma omp parallel for private(j, k)
	for (i = 0; i < n; i += BLOCK)
		for (j = 0; j < n; j += BLOCK)
			for (k = 0; k < n; k += BLOCK)
				multiply(c + i * n + j, a + i * n + k, b + k * n + j, n);
	print_bits("product", c, n * n);
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? strtoul(argv[2], NULL, 10) << 20 : 0;

	if (bytes && !strcmp(argv[1], "stream"))
		stream(bytes);
	else if (bytes && !strcmp(argv[1], "stencil"))
		stencil(bytes, tiled);
	else if (bytes && !strcmp(argv[1], "untiled"))
		stencil(bytes, untiled);
	else if (bytes && !strcmp(argv[1], "product"))
		product(bytes);
	else
		return 2;
	return 0;
}
