// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A task for hung.c. With the path of a file whose changes its server never accepts, and a
 * number: has a child unmap such changes, which holds the lock of the child's memory, while
 * so many threads of the child make a call that the launcher looks at. Exits with 77 if the
 * kernel does not wait for the server. With "exec" for the number: calls execve() itself while a
 * child that shares its memory holds the lock, and writes a byte before.
 * Without: starts a program by posix_spawn().
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "blocked.h"
#include "clock.h"
#include "task_check.h"

#define PAGE		4096UL
#define SOON_MS		1000
#define THREADS_MAX	200

static volatile int unmaps;

/* Half a second later the other thread has the lock. */
static void *call_later(void *arg)
{
	while (!unmaps)
		usleep(10000);
	usleep(500000);
	syscall(SYS_mmap, 0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return arg;
}

static int hold_lock(const char *path, int threads)
{
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, open(path, O_RDWR), 0);
	pthread_t t[THREADS_MAX];
	pthread_attr_t attr;
	int64_t begin;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(page != MAP_FAILED && threads <= THREADS_MAX);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (i = 0; i < threads; i++)
		CHECK(!pthread_create(&t[i], &attr, call_later, NULL));
	page[0] = 1;
	begin = now_ms();
	unmaps = 1;
	munmap(page, PAGE);
	if (now_ms() - begin < SOON_MS)
		_exit(77);
	for (i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	return !failures;
}

/* The new mapping takes the place of the changes, under the lock. */
static int map_over(void *page)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	*(volatile char *)page = 1;
	syscall(SYS_mmap, page, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	_exit(0);
}

static int exec_locked(const char *path)
{
	static char stack[65536] __attribute__((aligned(16)));
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, open(path, O_RDWR), 0);
	int64_t begin;
	pid_t pid;

	CHECK(page != MAP_FAILED);
	/* No other call from here on takes the lock, or touches a page for the first time. */
	memset(stack, 1, sizeof(stack));
	now_ms();
	usleep(1);
	is_blocked(getpid());
	pid = clone(map_over, stack + sizeof(stack), CLONE_VM | SIGCHLD, page);
	for (begin = now_ms(); !is_blocked(pid); usleep(1000))
		if (now_ms() - begin > SOON_MS)
			_exit(77);
	if (write(STDOUT_FILENO, "", 1) == 1)
		execl("/bin/true", "true", NULL);
	return 1;
}

static int status_of(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	char *program[] = { (char *)"true", NULL };
	pid_t pid;

	if (argc > 2 && !strcmp(argv[2], "exec"))
		return exec_locked(argv[1]);
	if (argc > 2) {
		pid = fork();
		if (!pid)
			_exit(!hold_lock(argv[1], atoi(argv[2])));
	} else if (posix_spawn(&pid, "/bin/true", NULL, NULL, program, environ)) {
		return 1;
	}
	return status_of(pid);
}
