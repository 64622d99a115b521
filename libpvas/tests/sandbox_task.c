// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Installs seccomp filters: run by tests/sandbox.c as a task. The argument says who does it;
 * a status of 0 means that all was right.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "task_check.h"

#define LONG		300	/* more than is looked at in one piece */
#define I386_PRCTL	172
#define I386_SECCOMP	354
#define I386_GETPID	20

/* Below 4 GiB where a program can have that, for calls of i386 */
struct memory {
	struct sock_filter code[LONG];
	struct sock_fprog native;
	struct {
		uint16_t len;
		uint32_t filter;
	} compat;
};

static struct memory *m;
static int i386;

static long int80(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(nr), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	if (ret < 0) {
		errno = (int)-ret;
		return -1;
	}
	return ret;
}

static long by_seccomp(unsigned int flags)
{
	if (i386)
		return int80(I386_SECCOMP, SECCOMP_SET_MODE_FILTER, flags, (long)&m->compat);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &m->native);
}

static long by_prctl(void)
{
	if (i386)
		return int80(I386_PRCTL, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&m->compat);
	/* The kernel ignores the upper half of the option, but not that of the mode. */
	return syscall(SYS_prctl, 1L << 32 | PR_SET_SECCOMP, (long)SECCOMP_MODE_FILTER, &m->native);
}

/* A filter of @len instructions that returns @action for getppid(), else allows */
static void prepare(unsigned int len, struct sock_filter action)
{
	const struct sock_filter nothing = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	unsigned int i;

	for (i = 0; i + 3 < len; i++)
		m->code[i] = nothing;	/* the number */
	m->code[i++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0);
	m->code[i++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	m->code[i] = action;
	m->native = (struct sock_fprog){ .len = (unsigned short)len, .filter = m->code };
	m->compat.len = (uint16_t)len;
	m->compat.filter = (uint32_t)(uintptr_t)m->code;
}

/* It would never be asked: it has to learn so. */
static void refused(void)
{
	static const struct sock_filter actions[] = {
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | 0x1234),
		BPF_STMT(BPF_RET | BPF_A, 0),
		/* Unknown to the kernel, which would kill the caller */
		BPF_STMT(BPF_RET | BPF_K, 0x7fd00000),
		BPF_STMT(BPF_RET | BPF_K, 0x7ff10000),
		BPF_STMT(BPF_RET | BPF_K, 0x00010000),
	};
	static const unsigned int lengths[] = { 4, 64, 65, LONG };
	unsigned int i, k;

	for (i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		for (k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
			prepare(lengths[k], actions[i]);
			CHECK(FAILS(by_seccomp(0), EINVAL));
			CHECK(FAILS(by_seccomp(SECCOMP_FILTER_FLAG_TSYNC), EINVAL));
			CHECK(FAILS(by_prctl(), EINVAL));
		}
	CHECK(getppid() > 0);
}

/* As of any process, they are the caller's own faults. */
static void malformed(void)
{
	prepare(4, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	m->native.len = m->compat.len = 0;
	CHECK(FAILS(by_seccomp(0), EINVAL));
	m->native.len = m->compat.len = 4;
	m->native.filter = (void *)8;
	m->compat.filter = 8;
	CHECK(FAILS(by_seccomp(0), EFAULT));
	CHECK(FAILS(by_prctl(), EFAULT));
	CHECK(FAILS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL), EFAULT));
	CHECK(FAILS(syscall(SYS_seccomp, 99, 0, NULL), EINVAL));
}

static void permitted(void)
{
	uint32_t trap = SECCOMP_RET_TRAP;

	CHECK(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &trap) == 0);
	CHECK(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER);
	prepare(LONG, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY));
	CHECK(by_seccomp(0) == 0);
	CHECK(FAILS(syscall(SYS_getppid), ENOTTY));
	prepare(4, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC));
	CHECK(by_prctl() == 0);
	CHECK(FAILS(syscall(SYS_getppid), ENOSPC));
}

static int all(void)
{
	int flags = i386 ? MAP_32BIT : 0;

	m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
		 -1, 0);
	CHECK(m != MAP_FAILED);
	if (m == MAP_FAILED)
		return failures;
	refused();
	malformed();
	permitted();
	return failures;
}

static int wait_for(pid_t pid)
{
	int status = 1;

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(status == 0);
	return failures;
}

static int in_program(char *name, const char *how)
{
	char *argv[] = { name, (char *)how, NULL };
	pid_t pid = fork();

	if (!pid) {
		execv(name, argv);
		_exit(1);
	}
	return wait_for(pid);
}

static int in_child(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(all());
	return wait_for(pid);
}

static int child(void *arg)
{
	return arg ? 1 : all();
}

/* It shares the memory, as a child of vfork() does, and so the count of failures. */
static int in_vfork_child(void)
{
	static char stack[1 << 16] __attribute__((aligned(16)));

	return wait_for(clone(child, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL));
}

/* A kernel without 32-bit programs ends the caller. */
static int has_i386(void)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid)
		_exit(int80(I386_GETPID, 0, 0, 0) != getpid());
	return waitpid(pid, &status, 0) == pid && !status;
}

static int as_i386(void)
{
	i386 = has_i386();
	if (!i386) {
		fputs("# no i386 calls in this kernel\n", stderr);
		return 0;
	}
	return all();
}

int main(int argc, char **argv)
{
	const char *who = argc > 1 ? argv[1] : "";

	if (!strcmp(who, "task") || !strcmp(who, "itself"))
		return all();
	if (!strcmp(who, "itself-i386"))
		return as_i386();
	if (!strcmp(who, "child"))
		return in_child();
	if (!strcmp(who, "vfork"))
		return in_vfork_child();
	if (!strcmp(who, "program"))
		return in_program(argv[0], "itself");
	if (!strcmp(who, "i386"))
		return in_program(argv[0], "itself-i386");
	return 1;
}
