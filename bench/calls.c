// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of system calls in this process: medians of batches, in nanoseconds
 * for each call, on one line. See user.c.
 *
 * The order is: mmap (its munmap not counted), mmap of a file, munmap, mprotect,
 * getppid, a store to fresh cache lines, malloc and free of large blocks.
 *
 * usage: calls [filtered]: under a seccomp filter that allows all, as many
 * programs in containers are
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "samples.h"

#define BATCHES	50
#define CALLS	100
#define BUFFER	(4UL << 20)

static char *maps[CALLS];
static char *buffer;
static int fd;

static void map_all(void)
{
	int i;

	for (i = 0; i < CALLS; i++)
		maps[i] = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void map_files(void)
{
	int i;

	for (i = 0; i < CALLS; i++)
		maps[i] = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
}

static void unmap_all(void)
{
	int i;

	for (i = 0; i < CALLS; i++)
		munmap(maps[i], 8192);
}

static void protect(void)
{
	int i;

	for (i = 0; i < CALLS; i++)
		mprotect(buffer, 4096, i & 1 ? PROT_READ | PROT_WRITE : PROT_READ);
}

static void get(void)
{
	int i;

	for (i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
}

static void store(void)
{
	memset(buffer + 4096, 1, CALLS * 4096);
}

static void allocate(void)
{
	int i;

	for (i = 0; i < CALLS; i++) {
		char *p = malloc(50000 + 997 * i);

		*(volatile char *)p = 1;
		free(p);
	}
}

static void measure(void (*what)(void), void (*after)(void))
{
	double v[BATCHES];
	int i;

	for (i = 0; i < BATCHES; i++) {
		int64_t begin = now_ns();

		what();
		v[i] = (double)(now_ns() - begin) / CALLS;
		if (after)
			after();
	}
	samples_sort(v, BATCHES);
	printf("%.1f ", v[BATCHES / 2]);
}

static int filter_nothing(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { 1, &allow };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "filtered") && filter_nothing())
		return 1;
	fd = fileno(tmpfile());
	if (ftruncate(fd, 8192))
		return 1;
	buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	measure(map_all, unmap_all);
	measure(map_files, unmap_all);
	map_all();
	measure(unmap_all, map_all);
	measure(protect, NULL);
	measure(get, NULL);
	measure(store, NULL);
	measure(allocate, NULL);
	printf("\n");
	return 0;
}
