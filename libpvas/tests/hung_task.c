// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A task that uses a file whose server does not answer: run by tests/hung.c and tests/mapped.c, as
 * hung_task WHAT FILE [NUMBER].
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "task_check.h"

#define PAGE	4096UL

/* Nor does the close of it end: a worker's, after this. */
static int map_file(const char *path, int flags)
{
	int fd = open(path, O_RDONLY);

	return mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | flags, fd, 0) == MAP_FAILED;
}

/* Again and again. It gets no address that none of its mappings has. */
static int map_again(const char *path, int n)
{
	int fd = open(path, O_RDONLY);
	char *p;

	while (n-- > 0) {
		p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED)
			continue;
		if ((uintptr_t)p < PAGE || munmap(p, PAGE))
			return 1;
	}
	return 0;
}

static void *remap(void *at)
{
	return (void *)syscall(SYS_remap_file_pages, at, PAGE, 0, 1, 0);
}

static int file;

static void *map_locked(void *unused)
{
	(void)unused;
	return mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_LOCKED, file, 0);
}

/* A thread of it waits; another one maps on, which would wait for ever if that had a lock. */
static int map_beside(const char *path, void *(*maps)(void *))
{
	void *at = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file = open(path, O_RDWR), 0), *p;
	pthread_t t;
	int i;

	CHECK(at != MAP_FAILED && pthread_create(&t, NULL, maps, at) == 0);
	for (i = 0; i < 300; i++) {
		p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED && munmap(p, PAGE) == 0);
		usleep(1000);
	}
	return pthread_tryjoin_np(t, NULL) == 0;
}

static int flags;

static void *map_once(void *unused)
{
	mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | flags, file, 0);
	return unused;
}

/* Many threads do, and the first one stays. */
static void __attribute__((noreturn)) map_by_threads(const char *path, int n, int how)
{
	pthread_t t;

	file = open(path, O_RDONLY);
	flags = how;
	while (n-- > 0)
		if (pthread_create(&t, NULL, map_once, NULL))
			exit(1);
	for (;;)
		pause();
}

/* A worker reads the name. */
static int name_in(const char *path)
{
	const char *name = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, open(path, O_RDONLY), 0);
	char text[8];

	return syscall(SYS_readlink, name, text, sizeof(text)) == -1;
}

/* The same of all calls whose argument a helper reads */
static int pass(const char *path, int which)
{
	void *arg = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, open(path, O_RDONLY), 0);

	if (which % 3 == 0)
		return name_in(path);
	if (which % 3 == 1)
		return (int)syscall(SYS_rt_sigaction, SIGUSR1, arg, NULL, sizeof(uint64_t));
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, 1, 0, arg);	/* SECCOMP_SET_MODE_FILTER */
}

/* The same by many children that share no memory with it. Some of the reads may fail. */
static int children_pass(const char *path, int n)
{
	while (n-- > 0) {
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pass(path, n);
		}
		CHECK(pid > 0);
	}
	return wait(NULL) > 0;
}

/* A helper reads the argument of a child's call. Its end can wait for what it has copied. */
static int child_reads_link(void)
{
	char text[8], c = 'n';
	int says[2];
	pid_t pid;

	CHECK(!pipe(says) && (pid = fork()) >= 0);
	if (!pid) {
		if (syscall(SYS_readlink, "/proc/self/exe", text, sizeof(text)) > 0)
			c = 'y';
		_exit(write(says[1], &c, 1) != 1);
	}
	close(says[1]);
	return read(says[0], &c, 1) != 1 || c != 'y';
}

/* Nor do they hold up others when they have been killed, as many as helpers there are for them. */
static int children_die(const char *path, int n)
{
	pid_t pid[100];
	int i;

	CHECK(n <= 100);
	for (i = 0; i < n; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(name_in(path));
	}
	sleep(1);
	for (i = 0; i < n; i++)
		CHECK(!kill(pid[i], SIGKILL) && waitpid(pid[i], NULL, 0) == pid[i]);
	return failures || child_reads_link();
}

/* Changes that the server doesn't accept, in a task that is copied by forks: says so. */
static int be_copied(const char *path)
{
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, open(path, O_RDWR), 0);
	char *own = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED && own != MAP_FAILED);
	page[0] = 1;
	CHECK(!madvise(own, PAGE, MADV_DONTFORK));
	if (failures || write(STDOUT_FILENO, "", 1) != 1)
		return 1;
	for (;;)
		pause();
}

static void *exec_true(void *arg)
{
	setenv("PVAS_EXEC", "leave", 1);
	execl("/bin/true", "true", NULL);
	return arg;
}

/* An execve() that closes a file: of the thread that has just forked, or of another. */
static int exec_closing(const char *path, int by_thread)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	pid_t pid = fork();
	pthread_t t;

	if (!pid)
		_exit(0);
	CHECK(fd >= 0 && pid > 0);
	if (!by_thread)
		exec_true(NULL);
	/* No call that the workers see comes between fork and execve(). */
	CHECK(pthread_create(&t, NULL, exec_true, NULL) == 0);
	for (;;)
		syscall(SYS_pause);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	int n = argc > 3 ? atoi(argv[3]) : 0;

	if (!strcmp(what, "populate"))
		return map_file(argv[2], MAP_POPULATE);
	if (!strcmp(what, "locked"))
		return map_file(argv[2], MAP_LOCKED);
	if (!strcmp(what, "map"))
		return map_file(argv[2], 0);
	if (!strcmp(what, "map-again"))
		return map_again(argv[2], n);
	if (!strcmp(what, "map-threads"))
		map_by_threads(argv[2], n, 0);
	if (!strcmp(what, "populate-threads"))
		map_by_threads(argv[2], n, MAP_POPULATE);
	if (!strcmp(what, "remap"))
		return map_beside(argv[2], remap);
	if (!strcmp(what, "beside-locked"))
		return map_beside(argv[2], map_locked);
	if (!strcmp(what, "name"))
		return name_in(argv[2]);
	if (!strcmp(what, "children-pass"))
		return children_pass(argv[2], n);
	if (!strcmp(what, "reads-link"))
		return child_reads_link();
	if (!strcmp(what, "be-copied"))
		return be_copied(argv[2]);
	if (!strcmp(what, "children-die"))
		return children_die(argv[2], n);
	if (!strcmp(what, "exec"))
		return exec_closing(argv[2], n);
	return 2;
}
