// SPDX-License-Identifier: GPL-2.0-only
/*
 * ia32 - one ia32 system call of a 64-bit process, through int 0x80
 *
 *	ia32 CALL [EPERM]
 *
 * Exit status 0: it did what such a call does or, with EPERM, was refused so.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct call {
	const char *name;
	long nr, args[4];
} calls[] = {
	{ "getpid", 20, { 0 } },
	{ "brk", 45, { 0 } },
	{ "mmap2", 192, { 0, 4096, 3, 0x22 } },
	{ "open", 5, { 0, 0 } },
	{ "fork", 2, { 0 } },
	{ "waitpid", 7, { -1, 0, WNOHANG } },
	{ "sigreturn", 119, { 0 } },
};

static long ia32(const struct call *call)
{
	long ret;

	asm volatile("int $0x80" : "=a"(ret)
		     : "a"(call->nr), "b"(call->args[0]), "c"(call->args[1]),
		       "d"(call->args[2]), "S"(call->args[3])
		     : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

/* A kernel without such calls ends us instead. */
static void no_calls(int sig)
{
	(void)sig;
	_exit(3);
}

int main(int argc, char **argv)
{
	unsigned int i;
	int ret;

	signal(SIGSEGV, no_calls);
	for (i = 0; argc > 1 && i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(calls[i].name, argv[1]))
			continue;
		ret = ia32(&calls[i]);
		if (argc > 2 ? ret == -EPERM : ret == getpid())
			return 0;
		fprintf(stderr, "ia32: %s: %d\n", argv[1], ret);
		return 1;
	}
	fprintf(stderr, "usage: ia32 CALL [EPERM]\n");
	return 2;
}
