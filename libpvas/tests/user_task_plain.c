// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Behaviour that must be a plain process': mappings that are in the heap's way, flags of
 * mmap(), calls that a signal interrupts, fork children and programs below a task. Part
 * of user_task.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user_task.h"

#define SPAN	(64UL << 10)

#ifndef MAP_SYNC
#define MAP_SYNC 0x080000
#endif

/* ---- above the break ---- */

enum way { BY_MMAP, BY_NOREPLACE, BY_MREMAP, BY_SHMAT, NR_WAYS };

static char *put(enum way way, char *at)
{
	char *p;
	int id;

	switch (way) {
	case BY_MMAP:
		return mmap(at, SPAN, RW, ANON | MAP_FIXED, -1, 0);
	case BY_NOREPLACE:
		return mmap(at, SPAN, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
	case BY_MREMAP:
		p = map(SPAN);
		return mremap(p, SPAN, SPAN, MREMAP_MAYMOVE | MREMAP_FIXED, at);
	default:
		id = shmget(IPC_PRIVATE, SPAN, IPC_CREAT | 0600);
		p = shmat(id, at, 0);
		shmctl(id, IPC_RMID, NULL);
		return p;
	}
}

/* A fork child's heap, too, ends where it did. */
static void child_grows(const char *p)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid)
		_exit(sbrk(4 << 20) != (void *)-1 && p[0] != 'x');
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void above_break(void)
{
	enum way way;
	size_t i;

	for (way = 0; way < NR_WAYS; way++) {
		char *top = sbrk(0), *at = (char *)(((uintptr_t)top + (1 << 20)) & ~(SPAN - 1));
		char *p = put(way, at);

		CHECK(p == at);
		if (p != at)
			continue;
		memset(p, 'x', SPAN);
		CHECK(sbrk(4 << 20) == (void *)-1);
		child_grows(p);
		for (i = 0; i < SPAN && p[i] == 'x'; i++)
			;
		CHECK(i == SPAN);
		free(malloc(8 << 20));
		CHECK(way == BY_SHMAT ? shmdt(p) == 0 : munmap(p, SPAN) == 0);
		CHECK(sbrk(2 << 20) == top && sbrk(-(2 << 20)) == top + (2 << 20));
	}
}

static void flags(void)
{
	int fd = memfd_create("flags", 0);
	char *p;

	CHECK(ftruncate(fd, 4 * PAGE) == 0);
	p = mmap(NULL, 4 * PAGE, RW, MAP_SHARED_VALIDATE, fd, 0);
	CHECK(inside(p));
	p[0] = 1;
	CHECK(munmap(p, 4 * PAGE) == 0);
	p = mmap(NULL, 4 * PAGE, RW, MAP_SHARED_VALIDATE | MAP_POPULATE, fd, 0);
	CHECK(inside(p) && p[0] == 1);
	CHECK(MAP_FAILS(mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0), EOPNOTSUPP));
	close(fd);
}

/* ---- a signal comes ---- */

static void nothing(int signo)
{
	(void)signo;
}

/* Each call as often as signals come in. Returns how often one was interrupted. */
static int interrupted(void)
{
	static char page[2 * 4096] __attribute__((aligned(4096)));
	int i, n = 0;

	for (i = 0; i < 300; i++) {
		n += setgid(getgid()) && errno == EINTR;
		n += setuid(getuid()) && errno == EINTR;
		n += setresuid(-1, -1, -1) && errno == EINTR;
		n += setresgid(-1, -1, -1) && errno == EINTR;
		n += unshare(CLONE_FS) && errno == EINTR;
		n += prctl(PR_SET_PDEATHSIG, SIGTERM) && errno == EINTR;
		n += mlock(page, 4096) && errno == EINTR;
		n += munlock(page, 4096) && errno == EINTR;
		n += munmap(map(PAGE), PAGE) && errno == EINTR;
	}
	return n;
}

static void signals_come(void)
{
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa = { .sa_handler = nothing };
	int status = -1;
	pid_t pid;

	CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
	setitimer(ITIMER_REAL, &often, NULL);
	CHECK(interrupted() == 0);
	setitimer(ITIMER_REAL, &never, NULL);
	pid = fork();
	if (!pid) {
		setitimer(ITIMER_REAL, &often, NULL);
		_exit(interrupted() != 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* ---- below a task ---- */

/* The launcher may not read it, if that has no rights. Its heap need not grow; it may not lie. */
static void undumpable_child(void)
{
	pid_t pid = fork();
	int i, status = -1;

	if (!pid) {
		prctl(PR_SET_DUMPABLE, 0);
		for (i = 0; i < 100; i++) {
			char *p = sbrk(1 << 20);

			if (p != (void *)-1)
				memset(p, 1, 1 << 20);
		}
		_exit(0);
	}
	/* The task's own goes further meanwhile. */
	for (i = 0; i < 100; i++)
		CHECK(sbrk(1 << 20) != (void *)-1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(sbrk(-(100 << 20)) != (void *)-1);
}

/* Libraries of a program lie among the partitions then; its break is the kernel's affair. */
static void program_of_another_layout(const char *self)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		setrlimit(RLIMIT_STACK, &unlimited);
		execl(self, self, "heap_of_kernel", NULL);
		_exit(1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* In a program that is no task */
int heap_of_kernel(void)
{
	int i;

	for (i = 0; i < 100; i++) {
		char *p = sbrk(1 << 20);

		if (p == (void *)-1)
			return 1;
		memset(p, 1, 1 << 20);
	}
	return 0;
}

int test_plain(const char *what, const char *self)
{
	if (!strcmp(what, "above_break")) {
		above_break();
	} else if (!strcmp(what, "map_flags")) {
		flags();
	} else if (!strcmp(what, "interrupted")) {
		signals_come();
	} else if (!strcmp(what, "below")) {
		undumpable_child();
		program_of_another_layout(self);
	} else {
		return -1;
	}
	return failures;
}
