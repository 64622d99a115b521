// SPDX-License-Identifier: GPL-2.0-only
/* The driver's side of worker_group.h. */
#include "worker_group.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "pvas.h"

static void make_page(struct worker_group *c)
{
	/* Not close-on-exec: the workers inherit it. */
	c->fd = memfd_create("worker-group", 0);
	if (c->fd < 0 || ftruncate(c->fd, sizeof(*c->page)))
		bench_die("memfd_create", -errno);
	c->page = mmap(NULL, sizeof(*c->page), PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	if (c->page == MAP_FAILED)
		bench_die("the group's page", -errno);
}

static void start_process(struct worker_group *c, const char *program, unsigned int threads,
			  const char *what)
{
	char path[PATH_MAX], fd[12], index[12], n[12], thr[12];
	char *argv[] = { (char *)program, fd, index, n, thr, (char *)what, NULL };

	snprintf(path, sizeof(path), "%s", bench_beside(program));
	snprintf(fd, sizeof(fd), "%d", c->fd);
	snprintf(index, sizeof(index), "%u", c->processes);
	snprintf(n, sizeof(n), "%u", c->n);
	snprintf(thr, sizeof(thr), "%u", threads);
	c->pids[c->processes++] = bench_start(c->space, path, argv, -1);
}

void group_start(struct worker_group *c, const char *system, unsigned int n, const char *program,
		 const char *what)
{
	bool threads = !strcmp(system, "threads");
	unsigned int i;
	int err;

	*c = (struct worker_group){ .n = n };
	if (!n || n > GROUP_MAX)
		bench_die("number of workers", -EINVAL);
	if (!threads && strcmp(system, "plain") && strncmp(system, "pvas", 4))
		bench_die(system, -EINVAL);
	make_page(c);
	err = strncmp(system, "pvas", 4) ? 0 : pvas_space_create(&c->space, NULL);
	if (err)
		bench_die("pvas_space_create", err);
	for (i = 0; i < (threads ? 1 : n); i++)
		start_process(c, program, threads ? n : 1, what);
	group_await(c);
}

static bool ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

/* One that ended before its time never gets ready: the others would wait for ever. */
static void check_workers(const struct worker_group *c)
{
	unsigned int i, j;

	for (i = 0; i < c->processes; i++) {
		if (!ended(c->pids[i]))
			continue;
		for (j = 0; j < c->processes; j++)
			kill(c->pids[j], SIGKILL);
		bench_die("a worker ended", -ECHILD);
	}
}

void group_await(struct worker_group *c)
{
	struct timespec second = { .tv_sec = 1 };
	uint32_t now;

	while ((now = __atomic_load_n(&c->page->ready, __ATOMIC_ACQUIRE)) < c->n)
		if (syscall(SYS_futex, &c->page->ready, FUTEX_WAIT, now, &second, NULL, 0) &&
		    errno == ETIMEDOUT)
			check_workers(c);
}

void group_begin(struct worker_group *c)
{
	__atomic_store_n(&c->page->ready, 0, __ATOMIC_RELAXED);
	__atomic_add_fetch(&c->page->phase, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &c->page->phase, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void group_end(struct worker_group *c)
{
	unsigned int i;

	__atomic_store_n(&c->page->stop, 1, __ATOMIC_RELAXED);
	/* Wake the workers that sleep until their turn, so that they see @stop. */
	for (i = 0; i < c->n; i++) {
		__atomic_add_fetch(&c->page->worker[i].turn, 2, __ATOMIC_RELEASE);
		syscall(SYS_futex, &c->page->worker[i].turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
	for (i = 0; i < c->processes; i++)
		bench_reap(c->pids[i]);
	pvas_space_destroy(c->space);
	munmap(c->page, sizeof(*c->page));
	close(c->fd);
}

uint64_t group_count(const struct worker_group *c)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < c->n; i++)
		sum += __atomic_load_n(&c->page->worker[i].count, __ATOMIC_RELAXED);
	return sum;
}
