// SPDX-License-Identifier: GPL-2.0-only
/*
 * The least that a launcher can do whose tasks' mappings it places by seccomp: how long does that
 * take?
 *
 * usage: bound N PROGRAM [ARGUMENT]...
 *
 * One thread installs a filter and starts PROGRAM N times by posix_spawn, another answers the calls
 * by which each lets the kernel choose an address, and brk: it lets the kernel perform them. That
 * is all: nothing is checked, read or placed, no output is forwarded.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

#define SYNC_WAKE_UP	1UL	/* as libpvas/user/filter_install.c */
#define IOCTL_SET_FLAGS	_IOW('!', 4, unsigned long)

struct job {
	int n;
	char **argv;
	int listener;
	pthread_barrier_t installed;
};

static void install(struct job *job)
{
	const unsigned int nr = offsetof(struct seccomp_data, nr);
	const unsigned int flags = offsetof(struct seccomp_data, args[3]);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_brk, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, flags),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x10, 0, 1),	/* MAP_FIXED */
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		bench_die("prctl", -errno);
	job->listener = (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
				     SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (job->listener < 0)
		bench_die("seccomp", -errno);
	ioctl(job->listener, IOCTL_SET_FLAGS, SYNC_WAKE_UP);
}

/* The programs inherit the filter from this thread. */
static void *start(void *arg)
{
	struct job *job = arg;
	pid_t *pids = calloc((size_t)job->n, sizeof(*pids));
	int i;

	if (!pids)
		bench_die("calloc", -ENOMEM);
	install(job);
	pthread_barrier_wait(&job->installed);
	for (i = 0; i < job->n; i++)
		pids[i] = bench_start(NULL, job->argv[0], job->argv, -1);
	for (i = 0; i < job->n; i++)
		bench_reap(pids[i]);
	exit(0);
}

static void answer(int listener)
{
	struct seccomp_notif_resp resp = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	struct seccomp_notif call;

	for (;;) {
		memset(&call, 0, sizeof(call));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
			continue;
		resp.id = call.id;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	}
}

int main(int argc, char **argv)
{
	struct job job = { .n = argc > 2 ? atoi(argv[1]) : 0, .argv = argv + 2 };
	pthread_t starter;

	if (job.n < 1) {
		fprintf(stderr, "usage: bound N PROGRAM [ARGUMENT]...\n");
		return 2;
	}
	pthread_barrier_init(&job.installed, NULL, 2);
	if (pthread_create(&starter, NULL, start, &job))
		bench_die("pthread_create", -EAGAIN);
	pthread_barrier_wait(&job.installed);
	answer(job.listener);
}
