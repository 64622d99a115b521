// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Mappings and changes that a task may make, and those refused, with their errno: the rules are
 * the same on both backends. Part of user_task.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user_task.h"

#define X32_BIT		0x40000000L

/* ---- what is another's ---- */

static void bounds_of(char *other)
{
	char *own = map(4 * PAGE);

	CHECK(inside(own));
	CHECK(FAILS(munmap(other, PAGE), EPERM));
	CHECK(FAILS(mprotect(other, PAGE, PROT_READ), EPERM));
	CHECK(FAILS(madvise(other, PAGE, MADV_DONTNEED), EPERM));
	CHECK(FAILS(mlock(other, PAGE), EPERM));
	CHECK(FAILS(munlock(other, PAGE), EPERM));
	CHECK(FAILS(syscall(SYS_mlock2, other, PAGE, 0), EPERM));
	CHECK(FAILS(syscall(SYS_pkey_mprotect, other, PAGE, PROT_READ, -1), EPERM));
	CHECK(FAILS(syscall(SYS_remap_file_pages, other, PAGE, 0, 0, 0), EPERM));
	CHECK(FAILS(syscall(SYS_mbind, other, PAGE, 0, NULL, 0, 0), EPERM));
	CHECK(FAILS(shmdt(other), EPERM));
	CHECK(MAP_FAILS(mremap(other, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EPERM));
	CHECK(MAP_FAILS(mremap(own, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other), EPERM));
	CHECK(MAP_FAILS(mmap(other, PAGE, RW, ANON | MAP_FIXED, -1, 0), ENOMEM));
	CHECK(MAP_FAILS(mmap(other, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0), ENOMEM));
	CHECK(inside(mmap(other, PAGE, RW, ANON, -1, 0)));	/* a hint is only that */
	CHECK(munmap(own, 4 * PAGE) == 0);
}

/* The kernel rounds lengths to whole pages: these become 0, or a page. */
static void bounds_of_rounded(char *other)
{
	const size_t none = -1UL, page = -(PAGE / 2) + 1;
	char *own = map(PAGE);

	CHECK(syscall(SYS_mremap, other, none, PAGE, MREMAP_MAYMOVE) == -1 && errno == EPERM);
	CHECK(syscall(SYS_mremap, other, none, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, own) == -1 &&
	      errno == EPERM);
	CHECK(syscall(SYS_mremap, own, PAGE, none, MREMAP_MAYMOVE | MREMAP_FIXED, other) == -1 &&
	      (errno == EPERM || errno == EINVAL));
	CHECK(FAILS(syscall(SYS_mlock, other + PAGE / 2, page), EPERM));
	CHECK(FAILS(syscall(SYS_mlock2, other + PAGE / 2, page, 0), EPERM));
	CHECK(FAILS(syscall(SYS_munlock, other + PAGE / 2, page), EPERM));
	CHECK(syscall(SYS_mlock, own + PAGE / 2, page) == 0 && munlock(own, PAGE) == 0);
	CHECK(munmap(own, PAGE) == 0);
}

/* The first and the last page of the partition, which stay free */
static void bounds_of_outermost(char *at)
{
	const int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
	char *own = map(PAGE), *p;

	CHECK(MAP_FAILS(mmap(at, PAGE, RW, ANON | MAP_FIXED, -1, 0), ENOMEM));
	CHECK(MAP_FAILS(mmap(at, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0), ENOMEM));
	CHECK(MAP_FAILS(mremap(own, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at), EPERM));
	CHECK(MAP_FAILS(shmat(id, at, 0), ENOMEM));
	CHECK(MAP_FAILS(shmat(id, at, SHM_REMAP), ENOMEM));
	CHECK(!shmctl(id, IPC_RMID, NULL));
	p = mmap(at, PAGE, RW, ANON, -1, 0);
	CHECK(inside(p) && p != at);
	CHECK(munmap(p, PAGE) == 0 && munmap(own, PAGE) == 0);
}

static void bounds_own_edge(void)
{
	char *end = base + size, params[256] = "";

	/* A range that crosses the end is refused whole. */
	CHECK(FAILS(munmap(end - PAGE, 2 * PAGE), EPERM));
	CHECK(FAILS(munmap(base - PAGE, 2 * PAGE), EPERM));
	CHECK(FAILS(mprotect(base, size + PAGE, PROT_READ), EPERM));
	CHECK(MAP_FAILS(mmap(end - PAGE, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0), ENOMEM));
	/* To the last byte it is ours. */
	CHECK(madvise(end - 16 * PAGE, 16 * PAGE, MADV_NORMAL) == 0 || errno == ENOMEM);
	/* A range that wraps around is the call's own to refuse. */
	CHECK(FAILS(munmap(base, (size_t)-PAGE), EINVAL));
	CHECK(FAILS(munmap(base + 1, PAGE), EINVAL));
	CHECK(FAILS(munmap(base, 0), EINVAL));
	CHECK(MAP_FAILS(mmap(NULL, 0, RW, ANON, -1, 0), EINVAL));
	CHECK(MAP_FAILS(mmap(NULL, 2 * size, RW, ANON | MAP_NORESERVE, -1, 0), ENOMEM));
	CHECK(MAP_FAILS(mmap(NULL, (size_t)-PAGE, RW, ANON, -1, 0), ENOMEM));
	CHECK(MAP_FAILS(mmap(NULL, PAGE, RW, ANON | MAP_GROWSDOWN, -1, 0), ENOMEM));
	CHECK(MAP_FAILS(mmap(NULL, PAGE, RW, ANON | MAP_32BIT, -1, 0), ENOMEM));
	CHECK(FAILS(syscall(SYS_io_setup, 1, &base), ENOSYS));
	CHECK(FAILS(syscall(SYS_io_uring_setup, 4, &params), ENOSYS));
}

/* By the numbers of x32, which a kernel may lack, and of i386. */
static void bounds_other_abis(char *other)
{
	char *p = mmap(NULL, 2UL << 20, RW, ANON | MAP_HUGETLB, -1, 0);

	CHECK(FAILS(syscall(X32_BIT | SYS_munmap, other, PAGE), ENOSYS));
	CHECK(FAILS(syscall(X32_BIT | SYS_mmap, NULL, PAGE, RW, ANON, -1, 0), ENOSYS));
	CHECK(FAILS(syscall(X32_BIT | SYS_getppid), ENOSYS));
	/* Huge pages are there or are not. */
	CHECK(p == MAP_FAILED || inside(p));
	CHECK(p == MAP_FAILED || munmap(p, 2UL << 20) == 0);
}

static void test_bounds(void)
{
	static int here;

	bounds_of(base + size);
	bounds_of(base - 16 * PAGE);
	bounds_of((char *)PAGE);
	bounds_of_rounded(base + size);
	bounds_of_rounded(base - 16 * PAGE);
	bounds_of_outermost(base);
	bounds_of_outermost(base + size - PAGE);
	bounds_own_edge();
	bounds_other_abis(base + size);
	CHECK(inside(&here));
}

/* ---- placement ---- */

static void place_many(void)
{
	char *p[64];
	unsigned int round, i;

	/* Of many lengths, in all orders: none may come upon another. */
	memset(p, 0, sizeof(p));
	srand(1);
	for (round = 0; round < 4000; round++) {
		size_t len;

		i = (unsigned int)rand() % 64;
		len = PAGE << (i % 11);
		if (p[i]) {
			CHECK(*(unsigned int *)p[i] == i);
			CHECK(p[i][len - 1] == (char)i);
			CHECK(munmap(p[i], len) == 0);
			p[i] = NULL;
			continue;
		}
		p[i] = map(len);
		CHECK(inside(p[i]) && !*p[i] && !p[i][len - 1]);
		*(unsigned int *)p[i] = i;
		p[i][len - 1] = (char)i;
	}
}

static void place_large(void)
{
	size_t half = size / 4;
	char *a, *b;
	int i;

	/* Again and again more than there is: what was freed is found. */
	for (i = 0; i < 40; i++) {
		a = mmap(NULL, half, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
		b = map(PAGE * (i + 1));
		CHECK(inside(a) && inside(b));
		CHECK(munmap(a, half) == 0);
	}
	a = mmap(NULL, 64UL << 20, RW, ANON | MAP_NORESERVE, -1, 0);
	CHECK(!((uintptr_t)a & ((2UL << 20) - 1)));	/* fit for huge pages */
	CHECK(munmap(a, 64UL << 20) == 0);
}

/* Growing at the end of the partition must not lead into its last page. */
static void place_at_the_edge(void)
{
	char *at = base + size - 2 * PAGE, *p;
	char *last = mmap(at, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK(last == at);
	CHECK(MAP_FAILS(mremap(last, PAGE, 2 * PAGE, 0), ENOMEM));
	p = mremap(last, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	CHECK(inside(p) && p != last);
}

static void place_mremap(void)
{
	char *a = map(2 * PAGE), *b;

	strcpy(a, "kept");
	CHECK(mmap(a + 2 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) == a + 2 * PAGE);
	CHECK(MAP_FAILS(mremap(a, 2 * PAGE, 3 * PAGE, 0), ENOMEM));
	place_at_the_edge();
	b = mremap(a, 2 * PAGE, 300 * PAGE, MREMAP_MAYMOVE);
	CHECK(inside(b) && !strcmp(b, "kept"));
	b = mremap(b, 300 * PAGE, PAGE, MREMAP_MAYMOVE);
	CHECK(inside(b) && !strcmp(b, "kept"));
	a = mremap(b, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	CHECK(inside(a) && a != b && !strcmp(a, "kept") && !*b);
	a = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	strcpy(a, "shared");
	b = mremap(a, 0, PAGE, MREMAP_MAYMOVE);
	CHECK(inside(b) && b != a && !strcmp(b, "shared"));
}

/* Several mappings at once are refused, and stay where they are. */
static void place_several(void)
{
	char *p = map(2 * PAGE);

	strcpy(p, "stays");
	CHECK(mprotect(p + PAGE, PAGE, PROT_READ) == 0);
	CHECK(mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP) == MAP_FAILED);
	CHECK(!strcmp(p, "stays"));
	CHECK(MAP_FAILS(mremap(p, PAGE, 1UL << 60, MREMAP_MAYMOVE), EINVAL) || errno == ENOMEM);
	CHECK(munmap(p, 2 * PAGE) == 0);
}

static void place_shm(void)
{
	int id = shmget(IPC_PRIVATE, 3 * PAGE, IPC_CREAT | 0600);
	char *a = shmat(id, NULL, 0), *b = shmat(id, NULL, SHM_RDONLY);

	shmctl(id, IPC_RMID, NULL);
	CHECK(inside(a) && inside(b) && a != b);
	CHECK(FAILS((intptr_t)shmat(id, NULL, SHM_REMAP), EINVAL));
	strcpy(a, "segment");
	CHECK(!strcmp(b, "segment"));
	CHECK(shmdt(a) == 0 && shmdt(b) == 0);
	CHECK(FAILS((intptr_t)shmat(id, NULL, 0), EINVAL));
}

static void test_place(void)
{
	char *hint = base + size / 2;

	CHECK(mmap(hint, PAGE, RW, ANON, -1, 0) == hint);
	CHECK(inside(mmap(hint, PAGE, RW, ANON, -1, 0)));
	CHECK(MAP_FAILS(mmap(hint, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0), EEXIST));
	CHECK(mmap(hint, PAGE, RW, ANON | MAP_FIXED, -1, 0) == hint);
	place_many();
	place_large();
	place_mremap();
	place_several();
	place_shm();
}

/* ---- brk ---- */

#define ABOVE (64UL << 20)	/* more than is mapped above the break in advance */

/* The heap ends where a mapping is, also one in a hole that the task has made above the break. */
static char *wall_by(int how, char *at)
{
	char *page;

	switch (how) {
	case 0:
		return mmap(at, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
	case 1:
		CHECK(munmap(at - 2 * PAGE, ABOVE) == 0);
		return mmap(at, PAGE, RW, ANON, -1, 0);
	default:
		CHECK(brk(at) == 0 && munmap(at - PAGE, ABOVE) == 0);
		page = mmap(at - PAGE, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		CHECK(page == at - PAGE && mremap(page, PAGE, 2 * PAGE, 0) == page);
		return at;
	}
}

static void heap_meets_a_mapping(void)
{
	char *now = sbrk(0), *at = (char *)(((uintptr_t)now + 64 * PAGE) & ~(PAGE - 1)), *wall;
	int how;

	for (how = 0; how < 3; how++) {
		wall = wall_by(how, at);
		CHECK(wall == at);
		/* The other end of a shared mapping of one page can't be stored to. */
		if (how < 2)
			*wall = 42;
		CHECK(FAILS(brk(wall + 1), ENOMEM));
		CHECK(brk(wall) == 0 && (how == 2 || *wall == 42));
		CHECK(brk(now) == 0);
		CHECK(msync(wall, PAGE, MS_ASYNC) == 0);	/* it is there */
		CHECK(munmap(wall, PAGE) == 0);
	}
}

/* Its end, and all of malloc()'s memory */
static char *volatile heap_end;
static volatile int moved_enough;

static void *move_break(void *arg)
{
	while (!heap_end)
		;
	while (!moved_enough) {
		syscall(SYS_brk, heap_end + PAGE);
		syscall(SYS_brk, heap_end);
	}
	return arg;
}

/* It has its place also if the break moves at that moment, and the heap is mapped ahead. */
static void mappings_stay_above_the_break(void)
{
	pthread_t mover;
	int i, lost = 0;
	char *at, *low;

	/* It calls malloc(). */
	CHECK(pthread_create(&mover, NULL, move_break, NULL) == 0);
	heap_end = sbrk(0);
	at = (char *)(((uintptr_t)heap_end + (4 << 20)) & ~(PAGE - 1));
	low = at - 16 * PAGE;
	for (i = 0; i < 500; i++) {
		CHECK(mmap(at, PAGE, RW, ANON | MAP_FIXED, -1, 0) == at);
		CHECK(mmap(low, PAGE, RW, ANON | MAP_FIXED, -1, 0) == low);
		lost += msync(at, PAGE, MS_ASYNC) != 0;
		munmap(low, PAGE);
		munmap(at, PAGE);
	}
	moved_enough = 1;
	pthread_join(mover, NULL);
	CHECK(!lost);
}

/* Down and up again: zero and writable, whatever was done with it, or beyond it. */
static void heap_comes_back_new(void)
{
	const size_t len = 256 * PAGE;
	char *start = sbrk(0), *p, *mid;
	size_t i, how, old;

	CHECK(brk((char *)(((uintptr_t)start + PAGE - 1) & ~(PAGE - 1))) == 0);
	for (how = 0; how < 4; how++) {
		p = sbrk((intptr_t)len);
		mid = p + len / 2;
		memset(p, 0xaa, len);
		if (how == 0)
			CHECK(mlock(mid, PAGE) == 0);
		else if (how == 1)
			CHECK(mprotect(mid, PAGE, PROT_READ) == 0);
		else if (how == 2)
			CHECK(munmap(mid, PAGE) == 0);
		CHECK(brk(p) == 0);
		if (how == 3)
			CHECK(munmap(p, len) == 0);
		CHECK(sbrk((intptr_t)len) == p);
		for (i = old = 0; i < len; i++)
			old += p[i]++ != 0;
		CHECK(!old);
		CHECK(brk(p) == 0);
	}
	CHECK(brk(start) == 0);
}

/* A mapping over a part of the heap ends with it: a fork child's new heap is zero. */
static void heap_with_a_mapping(void)
{
	const size_t len = 16 * PAGE;
	char *start = sbrk(len), *over = start + len / 2;
	int status = -1;
	size_t i;
	pid_t pid;

	CHECK(mmap(over, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == over);
	memset(start, 1, len);
	CHECK(sbrk(-(intptr_t)len) == start + len);
	pid = fork();
	if (!pid) {
		if (sbrk(len) != start)
			_exit(2);
		for (i = 0; i < len && !start[i]; i++)
			;
		_exit(i < len);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void test_heap(void)
{
	struct rlimit limit = { 64UL << 20, 64UL << 20 };
	char *start = sbrk(0), *p;
	size_t i;

	CHECK(inside(start));
	heap_meets_a_mapping();
	heap_comes_back_new();
	heap_with_a_mapping();
	p = sbrk(100UL << 20);
	CHECK(p == start);
	memset(p, 1, 100UL << 20);
	CHECK(sbrk(-(100L << 20)) == start + (100UL << 20));
	CHECK(sbrk(0) == start);
	p = sbrk(1UL << 20);
	for (i = 0; i < 1UL << 20 && !p[i]; i++)
		;
	CHECK(i == 1UL << 20);		/* zero again */
	CHECK(FAILS(brk(base - 1), ENOMEM) || sbrk(0) == start + (1UL << 20));
	CHECK(FAILS(brk(base + size), ENOMEM));
	CHECK(setrlimit(RLIMIT_DATA, &limit) == 0);
	CHECK(FAILS((intptr_t)sbrk(80UL << 20), ENOMEM));
	CHECK(sbrk(1) == start + (1UL << 20));
}

/* ---- the stack ---- */

/* At another place it would grow towards what is below, out of the partition at its bottom. */
static void stack_stays(void)
{
	char *page = (char *)((uintptr_t)environ[0] & ~(PAGE - 1)), *to = map(4 * PAGE);
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;

	CHECK(MAP_FAILS(mremap(page, PAGE, PAGE, flags, base), EPERM));
	CHECK(MAP_FAILS(mremap(page, PAGE, PAGE, flags, to), EPERM));
	CHECK(MAP_FAILS(mremap(page, PAGE, PAGE, flags | MREMAP_DONTUNMAP, to), EPERM));
	CHECK(MAP_FAILS(mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP), EPERM));
	CHECK(MAP_FAILS(mremap(page - PAGE, 2 * PAGE, 300 * PAGE, MREMAP_MAYMOVE), EPERM));
	CHECK(inside(to) && munmap(to, 4 * PAGE) == 0);
}

/* ---- marks for the forks of others ---- */

/* Is the mapping at @p left out of forks? */
static int is_marked(const char *p)
{
	FILE *f = fopen("/proc/thread-self/smaps", "re");
	unsigned long at = 0, lo, hi;
	char line[512];
	int marked = -1;

	while (f && marked < 0 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &lo, &hi) == 2)
			at = lo;
		else if (at == (uintptr_t)p && !strncmp(line, "VmFlags:", 8))
			marked = strstr(line, " dc") != NULL;
	}
	if (f)
		fclose(f);
	return marked;
}

static char *map_file_at(char *at, const char *path, int prot, int flags)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *p = mmap(at, PAGE, prot, flags, fd, 0);

	close(fd);
	return p;
}

/* A device's mapping that is marked stays so: the kernel does not remove the mark. */
static void marks_of(const char *what)
{
	char *p = map(PAGE);

	if (!strcmp(what, "marks_sysfs"))
		p = map_file_at(NULL, "/sys/kernel/btf/vmlinux", PROT_READ, MAP_PRIVATE);
	if (!strcmp(what, "marks_fixed"))
		p = map_file_at(base + size / 4 * 3, "/dev/zero", PROT_READ,
				MAP_SHARED | MAP_FIXED);
	CHECK(inside(p));
	raise(SIGSTOP);
	CHECK(is_marked(p) == !strcmp(what, "marks"));
}

int test_memory(const char *what)
{
	if (!strcmp(what, "bounds"))
		test_bounds();
	else if (!strcmp(what, "place"))
		test_place();
	else if (!strcmp(what, "heap"))
		test_heap();
	else if (!strcmp(what, "moving_break"))
		mappings_stay_above_the_break();
	else if (!strcmp(what, "stack"))
		stack_stays();
	else if (!strncmp(what, "marks", 5))
		marks_of(what);
	else
		return -1;
	return failures;
}
