// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a program with some system calls forbidden, as a container's seccomp
 * profile does.
 *
 * usage: forbid ERRNO NUMBER[,NUMBER]... PROGRAM [ARGUMENT]...
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MOST	16

static int forbid(const unsigned int *nr, unsigned int n, int err)
{
	struct sock_filter code[MOST + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog prog = { .len = n + 3, .filter = code };
	unsigned int i;

	for (i = 0; i < n; i++)
		code[1 + i] = (struct sock_filter)
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr[i], n - i, 0);
	code[1 + n] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[2 + n] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

int main(int argc, char **argv)
{
	unsigned int nr[MOST], n = 0;
	char *word;

	if (argc < 4) {
		fprintf(stderr, "forbid: usage: forbid ERRNO NUMBER[,NUMBER]... PROGRAM [ARGUMENT]...\n");
		return 2;
	}
	for (word = strtok(argv[2], ","); word && n < MOST; word = strtok(NULL, ","))
		nr[n++] = (unsigned int)atoi(word);
	if (forbid(nr, n, atoi(argv[1]))) {
		fprintf(stderr, "forbid: no filter: %s\n", strerror(errno));
		return 125;
	}
	execvp(argv[3], argv + 3);
	fprintf(stderr, "forbid: %s: %s\n", argv[3], strerror(errno));
	return 127;
}
