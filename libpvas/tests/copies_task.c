// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tasks that map and fork at the same time: run by tests/copies.c.
 *
 *	copies_task maps PID	map and unmap, private and shared, until that process has ended
 *	copies_task execs PID	become this program again, until that process has ended
 *	copies_task forks PEER N	N children, none of which may have memory of that partition
 *	copies_task threads PEER N	the same, after many threads have forked at once
 *
 * A status of 0 means that all was right.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pvas.h"
#include "task_check.h"

#define LEN		(64UL << 10)
#define RW		(PROT_READ | PROT_WRITE)
#define THREADS		24
#define THREADS_FORKS	20

/* With each of the calls that map */
static void map_all(const int kinds[], unsigned int n)
{
	char *p[8], *moved;
	unsigned int i;

	for (i = 0; i < n; i++) {
		p[i] = mmap(NULL, LEN, RW, kinds[i] | MAP_ANONYMOUS, -1, 0);
		CHECK(p[i] != MAP_FAILED);
		memset(p[i], 's', LEN);
		moved = mremap(p[i], LEN, 4 * LEN, MREMAP_MAYMOVE);
		CHECK(moved != MAP_FAILED);
		p[i] = moved;
		CHECK(mmap(p[i], LEN, RW, kinds[i] | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p[i]);
		memset(p[i], 's', LEN);
	}
	CHECK(sbrk(LEN) != (void *)-1 && sbrk(-(intptr_t)LEN) != (void *)-1);
	for (i = 0; i < n; i++) {
		CHECK(p[i][0] == 's' && p[i][LEN - 1] == 's');
		munmap(p[i], 4 * LEN);
	}
}

static int maps(pid_t until)
{
	static const int kinds[] = { MAP_PRIVATE, MAP_SHARED, MAP_PRIVATE, MAP_SHARED };

	while (!kill(until, 0) && !failures)
		map_all(kinds, 4);
	return failures;
}

static int execs(pid_t until, char **argv)
{
	if (kill(until, 0))
		return 0;
	execv(argv[0], argv);
	return 1;
}

/* The child: does it have any? */
static int has_any(uintptr_t from, uintptr_t to)
{
	unsigned long lo, hi;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");
	int n = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		n += sscanf(line, "%lx-%lx", &lo, &hi) == 2 && lo < to && hi > from;
	fclose(f);
	return n;
}

static int forks(unsigned int peer, int n)
{
	int i, status, bad = 0;
	size_t length;
	void *base;
	pid_t pid;

	CHECK(!pvas_partition_get(peer, &base, &length));
	for (i = 0; i < n && !failures; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			_exit(has_any((uintptr_t)base, (uintptr_t)base + length) ? 2 : 0);
		CHECK(waitpid(pid, &status, 0) == pid);
		bad += !!status;
	}
	if (bad)
		fprintf(stderr, "of %d children, %d have memory of a peer\n", n, bad);
	return failures || bad;
}

static void *fork_some(void *unused)
{
	int i, status;
	pid_t pid;

	for (i = 0; i < THREADS_FORKS; i++) {
		pid = fork();
		if (!pid)
			_exit(0);
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	}
	return unused;
}

static void threads_fork(void)
{
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, fork_some, NULL));
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

int main(int argc, char **argv)
{
	int number = argc > 2 ? atoi(argv[2]) : 0;

	if (argc == 3 && !strcmp(argv[1], "maps"))
		return maps(number);
	if (argc == 3 && !strcmp(argv[1], "execs"))
		return execs(number, argv);
	if (argc != 4)
		return 100;
	if (!strcmp(argv[1], "threads"))
		threads_fork();
	return forks((unsigned int)number, atoi(argv[3]));
}
