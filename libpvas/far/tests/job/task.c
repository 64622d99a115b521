// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A task of the tests of a job's far memory: task TEST. An ordinary program: nothing here knows
 * of far memory but is_far(), which checks that the test tests something.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(p != MAP_FAILED);
	check(is_far(p));
	return p;
}

static void fill(uint64_t *p, size_t size, uint64_t seed)
{
	size_t i;

	for (i = 0; i < size / 8; i++)
		p[i] = (i + seed) * 2654435761U;
}

static size_t wrong(const uint64_t *p, size_t size, uint64_t seed)
{
	size_t i, bad = 0;

	for (i = 0; i < size / 8; i++)
		bad += p[i] != (i + seed) * 2654435761U;
	return bad;
}

/* Everything else has to leave. */
static void press(void)
{
	static uint64_t *other;

	if (!other)
		other = map(RAM);
	fill(other, RAM, 1);
	check(!wrong(other, RAM, 1));
}

/* ---- tests ---- */

/* More than the budget, twice, in malloc()'s memory */
static void test_fill(void)
{
	uint64_t *p = malloc(2 * RAM), seed = (uint64_t)getpid();

	check(is_far(p));
	fill(p, 2 * RAM, seed);
	check(!wrong(p, 2 * RAM, seed));
	check(!wrong(p, 2 * RAM, seed));
	check(resident() < RAM + ALLOWANCE);
	free(p);
}

/* The end of the mapping is not the end of one of the pager's pages. */
static void test_unmap(void)
{
	size_t size = RAM + 12345, i;
	char *p = map(size), *q;

	fill((uint64_t *)p, size, 3);
	check(!munmap(p + 8 * PAGE, 5 * PAGE));
	check(!munmap(p + RAM / 2 + PAGE, RAM / 4));
	press();
	check(faults(p + 8 * PAGE) && faults(p + 13 * PAGE - 1) && faults(p + RAM / 2 + PAGE));
	check(!wrong((uint64_t *)p, 8 * PAGE, 3));
	check(!wrong((uint64_t *)(p + 13 * PAGE), RAM / 2 - 12 * PAGE, 3 + 13 * PAGE / 8));
	i = RAM / 2 + PAGE + RAM / 4;
	check(!wrong((uint64_t *)(p + i), size - i, 3 + i / 8));
	check(!munmap(p, size));
	check(faults(p));
	/* Again, and it reads as zeros. */
	q = map(size);
	for (i = 0; i < size; i += PAGE / 2)
		check(!q[i]);
	check(!munmap(q, size));
}

/* Ranges that begin below the far part, which the pager has to know of */
static void test_spans(void)
{
	size_t size = 64 * PAGE, i;
	char *p = map(RAM), *local, *end;

	fill((uint64_t *)p, RAM, 4);
	press();
	local = far_start(p);
	end = local;
	check(p == end);
	local = mmap(end - size, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	check(local == end - size);
	memset(local, 1, size);
	check(mlock(local, 2 * size) && errno == ENOMEM);
	check(!madvise(local, 2 * size, MADV_DONTNEED));
	for (i = 0; i < 2 * size; i++)
		check(!local[i]);
	check(!wrong((uint64_t *)(p + size), RAM - size, 4 + size / 8));
	check(!munmap(local, 2 * size));
	check(faults(local) && faults(p) && faults(p + size - 1));
	check(!wrong((uint64_t *)(p + size), RAM - size, 4 + size / 8));
}

static void test_remap(void)
{
	size_t size = 2 * MIB, at;
	char *p = map(size), *wall, *q;

	fill((uint64_t *)p, size, 5);
	/* In its place as far as it goes, then to another one */
	for (at = size; at < RAM; at += MIB + 3 * PAGE) {
		p = mremap(p, size, at, MREMAP_MAYMOVE);
		check(p != MAP_FAILED && is_far(p));
		check(!wrong((uint64_t *)p, size, 5));
		check(at == size || !*(uint64_t *)(p + size + (at - size) / 2));
		wall = map(MIB);
		fill((uint64_t *)p, at, 5);
		size = at;
		press();
		munmap(wall, MIB);
	}
	wall = map(MIB);
	q = mremap(p, size, 3 * size, MREMAP_MAYMOVE);
	check(q != MAP_FAILED && !wrong((uint64_t *)q, size, 5));
	check(!q[size] && !q[3 * size - 1]);
	press();
	check(!wrong((uint64_t *)q, size, 5));
	/* It shrinks, and grows again: what it lost is zero. */
	check(mremap(q, 3 * size, PAGE, 0) == q);
	check(!wrong((uint64_t *)q, PAGE, 5));
	check(mremap(q, PAGE, 3 * PAGE, 0) == q);
	check(!wrong((uint64_t *)q, PAGE, 5) && !q[PAGE] && !q[3 * PAGE - 1]);
	munmap(wall, MIB);
	check(mremap(q, PAGE, 16 * RAM, MREMAP_MAYMOVE | MREMAP_FIXED, q) == MAP_FAILED);
}

/* Two mappings in one of the pager's pages: one of them moves, and leaves the other as it is. */
static void test_neighbours(void)
{
	size_t size = MIB + PAGE, rest = RAM - MIB - 2 * PAGE, i;
	char *p = map(RAM), *other = p + MIB + 2 * PAGE, *q;

	fill((uint64_t *)p, size, 21);
	fill((uint64_t *)other, rest, 22);
	check(!munmap(p + size, PAGE));
	press();
	q = mremap(p, size, 4 * MIB, MREMAP_MAYMOVE);
	check(q != MAP_FAILED && q != p);
	check(!wrong((uint64_t *)q, size, 21) && !wrong((uint64_t *)other, rest, 22));
	for (i = size; i < 4 * MIB; i++)
		check(!q[i]);
	check(faults(p) && faults(p + size - 1));
	press();
	check(!wrong((uint64_t *)q, size, 21) && !wrong((uint64_t *)other, rest, 22));
	/* One that may not be read, less than a page, and between two others */
	fill((uint64_t *)other, rest, 23);
	check(!mprotect(other + 3 * PAGE, PAGE, PROT_NONE));
	check(mremap(other + 3 * PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	check(!mprotect(other + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE));
	check(!wrong((uint64_t *)other, rest, 23));
}

static void test_madvise(void)
{
	char *p = map(RAM), *q = p + 5 * PAGE;
	size_t drop = RAM / 2 + 3 * PAGE, i;

	fill((uint64_t *)p, RAM, 7);
	press();
	check(!madvise(q, drop, MADV_DONTNEED));
	for (i = 0; i < drop; i += 8)
		check(!*(uint64_t *)(q + i));
	press();
	for (i = 0; i < drop; i += PAGE)
		check(!*(uint64_t *)(q + i));
	check(!wrong((uint64_t *)p, 5 * PAGE, 7));
	check(!wrong((uint64_t *)(q + drop), RAM - 5 * PAGE - drop, 7 + (5 * PAGE + drop) / 8));
	check(!madvise(p, RAM, MADV_HUGEPAGE) && !madvise(p, RAM, MADV_SEQUENTIAL));
	check(mlock(p, RAM) && errno == ENOMEM);
}

static void test_mprotect(void)
{
	char *p = map(RAM);

	fill((uint64_t *)p, RAM, 9);
	check(!mprotect(p + 3 * PAGE, RAM / 2, PROT_READ));
	check(!mprotect(p + RAM / 2 + 20 * PAGE, RAM / 4, PROT_NONE));
	press();
	check(!wrong((uint64_t *)p, RAM / 2 + 20 * PAGE, 9));
	check(faults(p + RAM / 2 + 20 * PAGE));
	press();
	check(!mprotect(p, RAM, PROT_READ | PROT_WRITE));
	check(!wrong((uint64_t *)p, RAM, 9));
	fill((uint64_t *)p, RAM, 10);
	press();
	check(!wrong((uint64_t *)p, RAM, 10));
}

/* Other memory in the middle of it, and nothing else */
static void test_fixed(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	char *p = map(RAM), *at = p + RAM / 2 + PAGE;

	fill((uint64_t *)p, RAM, 11);
	check(mmap(at, 3 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED &&
	      errno == ENOMEM);
	check(mmap(at, 3 * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) == at);
	check(!at[0] && !at[3 * PAGE - 1]);
	fill((uint64_t *)at, 3 * PAGE, 12);
	press();
	check(!wrong((uint64_t *)at, 3 * PAGE, 12));
	check(!wrong((uint64_t *)p, RAM / 2 + PAGE, 11));
	check(!wrong((uint64_t *)(at + 3 * PAGE), RAM / 2 - 4 * PAGE,
		     11 + (RAM / 2 + 4 * PAGE) / 8));
	check(mmap(at, 3 * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) == at);
	check(!at[0] && !at[3 * PAGE - 1]);
	/* Over a gap, and with another protection */
	check(!munmap(at, RAM / 4));
	check(mmap(at + PAGE, RAM / 8, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS |
		   MAP_FIXED_NOREPLACE, -1, 0) == at + PAGE);
	check(mmap(at - PAGE, RAM / 8, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS |
		   MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
	press();
	check(!at[PAGE] && !at[RAM / 8] && faults(at) && faults(at + PAGE + RAM / 8));
	check(!wrong((uint64_t *)p, RAM / 2 + PAGE, 11));
	check(!munmap(p, RAM));
}

/* A child has all but the far memory, and there a signal rather than zeros. */
static void test_fork(void)
{
	char *argv[] = { "true", NULL };
	uint64_t *p = map(RAM), local = 77;
	int status, i;
	pid_t pid;

	fill(p, RAM, 13);
	for (i = 0; i < 3; i++) {
		pid = fork();
		if (!pid)
			_exit(local == 77 && faults(p) && faults((char *)p + RAM - 1) ? 0 : 1);
		press();
		check(waitpid(pid, &status, 0) == pid && !status);
	}
	check(!system("exit 0"));
	check(!posix_spawnp(&pid, "true", NULL, NULL, argv, NULL));
	check(waitpid(pid, &status, 0) == pid && !status);
	check(!wrong(p, RAM, 13));
}

/* With many arguments and a long one, all in far memory that is not resident */
static void test_exec(void)
{
	enum { COUNT = 3000, LONG = 100000 };
	char *p = map(8 * MIB), **argv = (char **)p, *text = p + MIB;
	int i;

	argv[0] = "sh";
	argv[1] = "-c";
	argv[2] = strcpy(text, "[ $# -eq 2997 ] && [ ${#1} -eq 100000 ] && [ ${2997} = a2999 ]");
	argv[3] = "sh";
	argv[4] = memset(text + 4 * MIB, 'x', LONG);
	for (i = 5; i <= COUNT; i++) {
		text += 200;
		argv[i] = text;
		sprintf(text, "a%d", i - 1);
	}
	press();
	execv("/bin/bash", argv);
	_exit(1);
}

static pthread_mutex_t *robust;
static volatile int owned;

static void *own(void *arg)
{
	check(!pthread_mutex_lock(robust));
	owned = 1;
	while (owned == 1)
		usleep(1000);
	return arg;
}

/* The owner of a robust mutex ends while the mutex is in no resident page. */
static void test_robust(void)
{
	pthread_mutexattr_t attr;
	struct timespec until;
	pthread_t thread;
	int i;

	robust = map(RAM);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	for (i = 0; i < 3; i++) {
		robust = (pthread_mutex_t *)((char *)robust + i * 5 * PAGE);
		check(!pthread_mutex_init(robust, &attr));
		owned = 0;
		check(!pthread_create(&thread, NULL, own, NULL));
		while (!owned)
			usleep(1000);
		press();
		owned = 2;
		pthread_join(thread, NULL);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 5;
		check(pthread_mutex_timedlock(robust, &until) == EOWNERDEAD);
		check(!pthread_mutex_consistent(robust) && !pthread_mutex_unlock(robust));
	}
}

static volatile int handled;

static void on_signal(int sig)
{
	volatile char room[8192];

	room[0] = (char)sig;
	handled += room[0] == SIGUSR1;
}

/* A signal's stack in far memory */
static void test_stacks(void)
{
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	stack_t s = { .ss_sp = map(MIB), .ss_size = 16 * PAGE };
	int i;

	check(!sigaltstack(&s, NULL) && !sigaction(SIGUSR1, &act, NULL));
	for (i = 0; i < 4; i++) {
		press();
		check(!raise(SIGUSR1));
	}
	check(handled == 4);
	/* Others after it, and none: nothing is held for those before. */
	for (i = 0; i < 400; i++) {
		s.ss_sp = map(MIB);
		s.ss_flags = 0;
		check(!sigaltstack(&s, NULL));
		s.ss_flags = SS_DISABLE;
		check(!sigaltstack(&s, NULL));
		check(!munmap(s.ss_sp, MIB));
	}
	press();
	check(write(-1, map(MIB), 10) < 0 && errno == EBADF);
}

/* ---- threads ---- */

enum { THREADS = 16 };

static uint32_t *counters;

static void *count(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	size_t i, t = (uintptr_t)arg;

	for (i = 0; i < 4000; i++)
		counters[(size_t)rand_r(&seed) % (RAM / 4 / THREADS) * THREADS + t]++;
	return NULL;
}

/* No store is lost. */
static void test_threads(void)
{
	pthread_t thread[THREADS];
	uint64_t sum = 0;
	size_t i;

	counters = map(2 * RAM);
	for (i = 0; i < THREADS; i++)
		check(!pthread_create(&thread[i], NULL, count, (void *)i));
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < 2 * RAM / 4; i++)
		sum += counters[i];
	check(sum == THREADS * 4000);
}

/* ---- */

/* Waits to be killed, with far memory and a thread that touches it all the time. */
static void test_forever(void)
{
	uint64_t *p = map(2 * RAM);

	for (;;)
		fill(p, 2 * RAM, 17);
}

/* Records of all tasks in one file, none of them torn; more than can be held is cut short. */
static void test_append(void)
{
	int fd = open(getenv("FAR_TEST_FILE"), O_RDWR | O_CREAT | O_APPEND, 0600), i;
	char *p = map(2 * RAM), *q;
	struct stat st;
	size_t at;
	ssize_t n;

	check(fd >= 0);
	for (i = 0; i < 10; i++) {
		memset(p, 'a' + getpid() % 26, MIB);
		check(write(fd, p, MIB) == MIB);
	}
	n = write(fd, p, 2 * RAM);
	check(n > 0 && n % PAGE == 0);
	q = map(MIB);
	check(!fstat(fd, &st));
	for (at = 0; at < 10 * MIB; at += MIB) {
		check(pread(fd, q, MIB, (off_t)at) == MIB);
		check(!memcmp(q, q + 1, MIB - 1));
	}
}

/* The stores are full: an error, not a signal later. */
static void test_full(void)
{
	char *p = mmap(NULL, 64 * RAM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(p == MAP_FAILED && errno == ENOMEM);
	p = map(RAM);
	fill((uint64_t *)p, RAM, 19);
	press();
	check(!wrong((uint64_t *)p, RAM, 19));
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "fill", test_fill }, { "unmap", test_unmap }, { "remap", test_remap },
	{ "neighbours", test_neighbours }, { "robust", test_robust },
	{ "spans", test_spans }, { "stacks", test_stacks },
	{ "madvise", test_madvise }, { "mprotect", test_mprotect }, { "fixed", test_fixed },
	{ "fork", test_fork }, { "exec", test_exec }, { "threads", test_threads },
	{ "append", test_append }, { "waiting", test_waiting }, { "forever", test_forever },
	{ "full", test_full }, { "calls", test_calls }, { "heap", test_heap },
	{ "closed", test_closed }, { "again", test_again }, { "leaving", test_leaving },
	{ "large", test_large }, { "rounds", test_rounds }, { "fuzz", test_fuzz },
	{ "device", test_device }, { "protection", test_protection },
	{ "messages", test_messages }, { "peer", test_peer }, { "file", test_file },
	{ "watched", test_watched }, { "core", test_core },
};

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc > 1 && i < sizeof(tests) / sizeof(tests[0]); i++)
		if (!strcmp(tests[i].name, argv[1])) {
			tests[i].run();
			return 0;
		}
	fprintf(stderr, "task: no such test\n");
	return 2;
}
