// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Of the program that tests a job's far memory: threads map, unmap, move, protect, drop, read and
 * write memory at random, all together more than the budget, and each knows what its own pages
 * have. FAR_TEST_SEED and FAR_TEST_SECONDS are numbers, 1 and 2 by default.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

enum { THREADS = 4, AREAS = 6, LEAST = MIB / PAGE, MOST = 3 * MIB / PAGE };

/**
 * struct area - a mapping
 * @has:	of each page, the number that its words are made from; 0: zeros; GONE: unmapped
 */
enum { GONE = -1 };
struct area {
	char *at;
	size_t pages;
	int has[MOST];
};

struct worker {
	pthread_t thread;
	unsigned int seed;
	int file;
	struct area area[AREAS];
};

static time_t until;

static size_t below(struct worker *w, size_t n)
{
	return (size_t)rand_r(&w->seed) % n;
}

static uint64_t word(int number, size_t i)
{
	return number ? (uint64_t)number * 2654435761U + i : 0;
}

static uint64_t *page_of(const struct area *a, size_t n)
{
	return (uint64_t *)(a->at + n * PAGE);
}

static void look_at(const struct area *a, size_t n)
{
	const uint64_t *p = page_of(a, n);
	size_t i;

	for (i = 0; a->has[n] != GONE && i < PAGE / 8; i++)
		check(p[i] == word(a->has[n], i));
}

static void fill_page(struct worker *w, struct area *a, size_t n)
{
	uint64_t *p = page_of(a, n);
	size_t i;

	if (a->has[n] == GONE)
		return;
	a->has[n] = 1 + rand_r(&w->seed) % 1000000;
	for (i = 0; i < PAGE / 8; i++)
		p[i] = word(a->has[n], i);
}

static void map_area(struct worker *w, struct area *a)
{
	a->pages = LEAST + below(w, MOST - LEAST);
	a->at = far_memory(a->pages * PAGE);
	memset(a->has, 0, sizeof(a->has));
}

/* Where it has a hole, there may be memory of another thread's now. */
static void unmap_area(struct area *a)
{
	size_t n, from = 0;

	for (n = 0; n <= a->pages; n++) {
		if (n < a->pages && a->has[n] != GONE) {
			look_at(a, n);
			continue;
		}
		check(n == from || !munmap(page_of(a, from), (n - from) * PAGE));
		from = n + 1;
	}
	a->at = NULL;
}

static void set_all(struct area *a, size_t from, size_t count, int has)
{
	for (; count--; from++)
		if (a->has[from] != GONE)
			a->has[from] = has;
}

static bool is_whole(const struct area *a)
{
	size_t n;

	for (n = 0; n < a->pages; n++)
		if (a->has[n] == GONE)
			return false;
	return true;
}

static void move_area(struct worker *w, struct area *a)
{
	size_t pages = LEAST + below(w, MOST - LEAST), n;
	char *to = mremap(a->at, a->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);

	check(to != MAP_FAILED);
	for (n = a->pages; n < pages; n++)
		a->has[n] = 0;
	a->at = to;
	a->pages = pages;
}

/* Through a file, one page onto another */
static void copy_page(struct worker *w, struct area *a, size_t from, size_t to)
{
	if (a->has[from] == GONE || a->has[to] == GONE)
		return;
	check(pwrite(w->file, page_of(a, from), PAGE, 0) == PAGE);
	check(pread(w->file, page_of(a, to), PAGE, 0) == PAGE);
	a->has[to] = a->has[from];
}

static void protect(struct area *a, size_t from, size_t count)
{
	size_t n;

	check(!mprotect(page_of(a, from), count * PAGE, PROT_READ));
	for (n = from; n < from + count; n++)
		look_at(a, n);
	check(!mprotect(page_of(a, from), count * PAGE, PROT_READ | PROT_WRITE));
}

static void fork_child(void)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	check(waitpid(pid, &status, 0) == pid && !status);
}

static void step(struct worker *w, struct area *a)
{
	size_t from, count, n;

	if (!a->at)
		map_area(w, a);
	from = below(w, a->pages);
	count = 1 + below(w, a->pages - from);
	switch (below(w, 16)) {
	case 0:
		unmap_area(a);
		break;
	case 1:
		if (count > a->pages / 4)
			break;
		check(!munmap(page_of(a, from), count * PAGE));
		set_all(a, from, count, GONE);
		break;
	case 2:
		if (is_whole(a))
			move_area(w, a);
		break;
	case 3:
		if (is_whole(a))
			protect(a, from, count);
		break;
	case 4:
		if (!is_whole(a))
			break;
		check(!madvise(page_of(a, from), count * PAGE, MADV_DONTNEED));
		set_all(a, from, count, 0);
		break;
	case 5:
		if (!below(w, 8))
			fork_child();
		break;
	case 6:
	case 7:
		copy_page(w, a, from, below(w, a->pages));
		break;
	case 8:
	case 9:
	case 10:
		for (n = from; n < from + count; n++)
			look_at(a, n);
		break;
	case 11:
	case 12:
		for (n = from; n < from + count; n++)
			fill_page(w, a, n);
		break;
	default:
		look_at(a, from);
		fill_page(w, a, from);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (time(NULL) < until)
		step(w, &w->area[below(w, AREAS)]);
	return NULL;
}

static int number_of(const char *name, int otherwise)
{
	const char *value = getenv(name);

	return value ? atoi(value) : otherwise;
}

static int open_file(void)
{
	char name[] = "/tmp/far-fuzz-XXXXXX";
	int fd = mkstemp(name);

	check(fd >= 0 && !unlink(name));
	return fd;
}

void test_fuzz(void)
{
	static struct worker workers[THREADS];
	unsigned int i, k;

	until = time(NULL) + number_of("FAR_TEST_SECONDS", 2);
	for (i = 0; i < THREADS; i++) {
		workers[i].seed = (unsigned int)number_of("FAR_TEST_SEED", 1) * 100 + i;
		workers[i].file = open_file();
		check(!pthread_create(&workers[i].thread, NULL, work, &workers[i]));
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		for (k = 0; k < AREAS; k++)
			if (workers[i].area[k].at)
				unmap_area(&workers[i].area[k]);
	}
}
