// SPDX-License-Identifier: GPL-2.0-only
/* A sum by a team of threads, into memory of malloc's. */
#include <stdio.h>
#include <stdlib.h>

#define N (1 << 20)

int main(void)
{
	long *a = malloc(N * sizeof(*a)), sum = 0;

	if (!a)
		return 1;
#pragma omp parallel for
	for (int i = 0; i < N; i++)
		a[i] = i % 1000;
#pragma omp parallel for reduction(+:sum)
	for (int i = 0; i < N; i++)
		sum += a[i];
	printf("%ld\n", sum);
	free(a);
	return 0;
}
