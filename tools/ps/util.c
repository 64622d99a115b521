// SPDX-License-Identifier: GPL-2.0-only
/* Small helpers of all files. */
#include "ps.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int ps_fail(const char *format, ...)
{
	va_list args;

	fputs("pvasps: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return PS_FAILED;
}

/* Doubles: an array is full when its number of entries is a power of two. */
void *ps_grow(void *array, uint32_t nr, size_t size)
{
	if (nr & (nr - 1))
		return array;
	array = reallocarray(array, nr ? 2UL * nr : 1, size);
	if (!array)
		exit(ps_fail("no memory"));
	memset((char *)array + nr * size, 0, (nr ?: 1) * size);
	return array;
}

struct ps_task *ps_task_at(const struct ps_space *space, uint32_t index)
{
	uint32_t lo = 0, hi = space->tasks ? space->nr_tasks : 0;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (space->tasks[mid].index == index)
			return &space->tasks[mid];
		if (space->tasks[mid].index < index)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

uint64_t ps_cpu_ms(const struct ps_space *space)
{
	uint64_t ms = 0;
	uint32_t i;

	for (i = 0; space->tasks && i < space->nr_tasks; i++)
		ms += space->tasks[i].cpu_ms;
	return ms;
}

uint64_t ps_huge_kib(const struct ps_space *space)
{
	uint64_t kib = space->header.huge_kib + space->rest.huge_kib;
	uint32_t i;

	for (i = 0; space->tasks && i < space->nr_tasks; i++)
		kib += space->tasks[i].mem.huge_kib;
	return kib;
}
