// SPDX-License-Identifier: LGPL-2.1-or-later
/* Helpers of the program that tests a job's far memory. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "job.h"
#include "pvas.h"

void check_at(bool ok, const char *condition, const char *where, int line)
{
	if (ok)
		return;
	dprintf(2, "%s:%d: not true: %s\n", where, line, condition);
	_exit(1);
}

bool is_far(const void *p)
{
	size_t size;
	void *base;

	if (pvas_partition_get((unsigned int)pvas_task_get_index(), &base, &size))
		return false;
	return (uintptr_t)p - (uintptr_t)base - size / 4 < size / 4;
}

char *far_start(const void *p)
{
	size_t size = 0;
	void *base;

	check(is_far(p) &&
	      !pvas_partition_get((unsigned int)pvas_task_get_index(), &base, &size));
	return (char *)base + size / 4;
}

char *far_memory(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(p != MAP_FAILED && is_far(p));
	return p;
}

void evict(void)
{
	static volatile char *other;
	size_t i, k;

	if (!other)
		other = far_memory(3 * RAM);
	for (k = 0; k < 2; k++)
		for (i = 0; i < 3 * RAM; i += PAGE)
			other[i] = (char)(i >> 12);
}

static sigjmp_buf out;

static void on_segv(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

bool faults(const void *p)
{
	volatile bool fault = true;

	signal(SIGSEGV, on_segv);
	if (!sigsetjmp(out, 1)) {
		(void)*(const volatile char *)p;
		fault = false;
	}
	signal(SIGSEGV, SIG_DFL);
	return fault;
}

bool rejects_stores(void *p)
{
	volatile bool fault = true;

	signal(SIGSEGV, on_segv);
	if (!sigsetjmp(out, 1)) {
		*(volatile char *)p = 1;
		fault = false;
	}
	signal(SIGSEGV, SIG_DFL);
	return fault;
}

size_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0, shared = 0;

	check(f && fscanf(f, "%*u %lu %lu", &pages, &shared) == 2);
	fclose(f);
	return (pages - shared) * PAGE;
}
