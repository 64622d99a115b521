// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A task with descendants that are in the way of others: run by tests/outsiders.c.
 *
 *	outsider_task install|install-as-other FILE N	N programs: the filter of each is in FILE
 *	outsider_task install|install-as-other FILE N	N programs, whose filters are in FILE
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "task_check.h"

#define PAGE		4096UL
#define SECOND		1
#define THIRD		2

static const char *self;

/* ---- programs with filters ---- */

static int install(const void *program)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program);
}

/* A program that a child has become: @fd is of the file, or none. */
static int call(int fd)
{
	struct sock_filter allow = { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW };
	struct sock_fprog well = { 1, &allow };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return install(fd < 0 ? &well : mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
}

static pid_t start(int fd, uid_t user)
{
	char number[16];
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(number, sizeof(number), "%d", fd);
	if (!user || !setresuid(user, user, user))
		execl(self, self, "call", number, "0", NULL);
	_exit(1);
}

static void __attribute__((noreturn)) start_all(const char *file, int n, uid_t user)
{
	int fd = open(file, O_RDONLY);

	CHECK(fd >= 0);
	while (n-- > 0)
		CHECK(start(fd, user) > 0);
	for (;;)
		pause();
}

static int start_well(void)
{
	int status = -1;
	pid_t pid = start(-1, THIRD);

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	return failures;
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";
	int n = argc > 3 ? atoi(argv[3]) : 0;

	self = argv[0];
	if (!strcmp(what, "call"))
		return call(atoi(argv[2]));
	if (!strcmp(what, "install"))
		start_all(argv[2], n, 0);
	if (!strcmp(what, "install-as-other"))
		start_all(argv[2], n, SECOND);
	if (!strcmp(what, "install-well"))
		return start_well();
	return 2;
}
