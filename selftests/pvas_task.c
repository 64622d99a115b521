// SPDX-License-Identifier: GPL-2.0-only
/* Task functions, started through libpvas, and those all have: see pvas_test.h. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pvas_test.h"

/* ---- tasks that all have ---- */

TASK(succeed)
{
	CHECK(pvas_task_get_index() >= 0);
}

TASK(ready_and_pause)
{
	pt_say("r");
	pause();
}

TASK(dirty)
{
	char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	/* The data of the partition's previous task must be gone. */
	CHECK_EQ(0, p[4095]);
	memset(p, 1, 1 << 20);
	free(malloc(1 << 20));
}

/* The first argument, if any, is the pid that it has to have. */
TASK(check_inside)
{
	CHECK(pvas_task_get_index() > 0);
	CHECK(pt_inside(malloc(100), 100));
	CHECK_EQ(getpid(), syscall(SYS_gettid));
	if (pt_args[0])
		CHECK_EQ(atoi(pt_args[0]), getpid());
}

/* With the module it stays. */
TASK(check_outside_if_user)
{
	CHECK_EQ(pt_backend() == PVAS_BACKEND_USER, pvas_task_get_index() < 0);
}

/* ---- an exec of a task ---- */

char *const *pt_argv_as(const char *name, const char *arg)
{
	static char *argv[5];

	argv[0] = (char *)pt_self();
	argv[1] = (char *)"--task";
	argv[2] = (char *)name;
	argv[3] = (char *)arg;
	return argv;
}

void pt_exec_as(const char *name, const char *arg)
{
	execv(pt_self(), pt_argv_as(name, arg));
	CHECK_EQ(0, errno);
}

const char *pt_number(long n)
{
	static char text[24];

	snprintf(text, sizeof(text), "%ld", n);
	return text;
}

static void *idle_thread(void *arg)
{
	pause();
	return arg;
}

void pt_start_threads(int n)
{
	pthread_t t;

	while (n--)
		CHECK_EQ(0, pthread_create(&t, NULL, idle_thread, NULL));
}

/* ---- letters ---- */

void pt_say(const char *what)
{
	CHECK_EQ(1, write(atoi(pt_args[0]), what, 1));
}

char pt_hear(int fd)
{
	char c;

	return read(fd, &c, 1) == 1 ? c : 0;
}

/* ---- spaces ---- */

int pt_create(struct pvas_space **space, uint64_t partition, unsigned int flags)
{
	struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = pt_backend(), .partition_size = partition,
		.flags = flags,
	};

	return pvas_space_create(space, &attr);
}

/* A user backend's space is gone when its processes are. */
int pt_spaces(void)
{
	int fd, n;

	if (pt_backend() == PVAS_BACKEND_USER)
		return 0;
	fd = pt_open();
	n = pt_raw_spaces(fd);
	close(fd);
	return n;
}

bool pt_spaces_gone(void)
{
	int fd, left;

	if (pt_backend() == PVAS_BACKEND_USER)
		return true;
	fd = pt_open();
	left = pt_raw_spaces_left(fd);
	close(fd);
	return !left;
}

/* ---- starting ---- */

pid_t pt_start_task(struct pvas_space *space, unsigned int index, const char *name)
{
	pid_t pid;
	int ret;

	ret = pvas_task_spawn(space, index, pt_self(), pt_task_argv(name), environ, NULL, &pid);
	return ret < 0 ? ret : pid;
}

int pt_start_task_fds(struct pvas_space *space, unsigned int index, const char *name, int fd0,
		      int fd1, pid_t *pid)
{
	char a[16], b[16];
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)name, a, b, NULL };

	snprintf(a, sizeof(a), "%d", fd0);
	snprintf(b, sizeof(b), "%d", fd1);
	return pvas_task_spawn(space, index, pt_self(), argv, environ, NULL, pid);
}

pid_t pt_start_task_fd(struct pvas_space *space, unsigned int index, const char *name, int fd)
{
	pid_t pid;
	int ret = pt_start_task_fds(space, index, name, fd, 0, &pid);

	return ret < 0 ? ret : pid;
}

int pt_run_task_with(const char *name, const char *arg)
{
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)name, (char *)arg, NULL };
	struct pvas_space *space;
	pid_t pid;
	int ret = pt_create(&space, 0, 0);

	if (ret)
		return ret;
	ret = pvas_task_spawn(space, PVAS_ANY, argv[0], argv, environ, NULL, &pid);
	if (ret >= 0)
		ret = pt_wait(pid);
	pvas_space_destroy(space);
	return ret;
}

int pt_run_task(const char *name)
{
	return pt_run_task_with(name, NULL);
}

int pt_run_task_with_page(const char *name)
{
	int fd = memfd_create("page", 0), ret = -errno;

	if (fd < 0)
		return ret;
	ret = ftruncate(fd, 4096) ? -errno : pt_run_task_with(name, pt_number(fd));
	close(fd);
	return ret;
}

/* ---- partitions ---- */

static void get_partition(void **base, size_t *size)
{
	if (pvas_task_get_index() < 0 || pvas_partition_get(pvas_task_get_index(), base, size)) {
		fprintf(stderr, "# not a task\n");
		exit(1);
	}
}

uintptr_t pt_base(void)
{
	void *base;

	get_partition(&base, NULL);
	return (uintptr_t)base;
}

size_t pt_size(void)
{
	size_t size;

	get_partition(NULL, &size);
	return size;
}

bool pt_inside(const void *p, size_t len)
{
	uintptr_t at = (uintptr_t)p;

	return at >= pt_base() && at + len <= pt_base() + pt_size();
}
