/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the unit tests: the programs they start, and system calls that fail. */
#ifndef PVAS_TEST_HELPERS_H
#define PVAS_TEST_HELPERS_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "kselftest_harness.h"

/*
 * The harness limits elapsed time: half a minute is too short for a hundred processes
 * on a busy machine. A test that hangs still exceeds this.
 */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 240

/* The path of a program in the same folder as this one, valid until the next call. */
static inline const char *ours(const char *name)
{
	static char path[4200];
	ssize_t n = readlink("/proc/thread-self/exe", path, 4096);

	path[n < 0 ? 0 : n] = 0;
	strcpy(strrchr(path, '/') + 1, name);
	return path;
}

/* Wait for @pid: its wait status; -1 if it is not a child. */
static inline int end_of(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid ? status : -1;
}

/* Let the @n system calls @nr fail with @err, in this thread and all that it creates. */
static inline void forbid(const int *nr, unsigned int n, int err)
{
	struct sock_filter code[16] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog prog = { .filter = code };
	unsigned int i;

	for (i = 0; i < n; i++)
		code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							   (unsigned int)nr[i], n - i, 0);
	code[1 + n] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[2 + n] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err);
	prog.len = n + 3;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* The same for one call, if its second argument is @arg: the command of an ioctl. */
static inline void forbid_with(int nr, unsigned int arg, int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arg, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

#endif /* PVAS_TEST_HELPERS_H */
