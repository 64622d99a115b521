// SPDX-License-Identifier: GPL-2.0
/* Task functions, started through libpvas: see pvas_test.h. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "pvas_test.h"

pid_t pt_start_task(struct pvas_space *space, unsigned int index, const char *name)
{
	extern char **environ;
	pid_t pid;
	int ret;

	ret = pvas_spawn(space, index, pt_self(), pt_task_argv(name), environ, NULL, &pid);
	return ret < 0 ? ret : pid;
}

int pt_start_task_fds(struct pvas_space *space, unsigned int index, const char *name, int fd0,
		      int fd1, pid_t *pid)
{
	extern char **environ;
	char a[16], b[16];
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)name, a, b, NULL };

	snprintf(a, sizeof(a), "%d", fd0);
	snprintf(b, sizeof(b), "%d", fd1);
	return pvas_spawn(space, index, pt_self(), argv, environ, NULL, pid);
}

pid_t pt_start_task_fd(struct pvas_space *space, unsigned int index, const char *name, int fd)
{
	pid_t pid;
	int ret = pt_start_task_fds(space, index, name, fd, 0, &pid);

	return ret < 0 ? ret : pid;
}

int pt_run_task(const char *name)
{
	struct pvas_create_attr attr = { .size = sizeof(attr), .backend = pt_backend() };
	struct pvas_space *space;
	pid_t pid;
	int ret;

	ret = pvas_create(&space, &attr);
	if (ret)
		return ret;
	pid = pt_start_task(space, PVAS_ANY, name);
	ret = pid < 0 ? pid : pt_wait(pid);
	pvas_destroy(space);
	return ret;
}

static void get_partition(void **base, size_t *size)
{
	if (pvas_self() < 0 || pvas_partition(pvas_self(), base, size)) {
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
