// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of what passes the module's hooks: bench/hooks starts this as a plain process and as
 * a task.
 *
 * usage: mapper mmap|fork|exec BATCHES ROUNDS [PROGRAM]
 *
 *	mmap	a pair of mmap and munmap
 *	fork	a child that exits, and the wait for it
 *	exec	a child by posix_spawn that executes PROGRAM, and the wait for it
 *
 * Prints the lower quartile of the batches, in nanoseconds a round: whatever
 * else the machine does can only add to a batch, so the low ones are the true ones.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "samples.h"

/* No page is touched: a fault costs more than the pair and would hide it. */
#define LENGTH (64 * 1024)
/* The kernel can't merge it with a neighbour: merging or not makes a difference of 4 %. */
#define PROT (PROT_READ | PROT_WRITE | PROT_EXEC)

static const char *program = "/bin/true";

static void die(const char *call)
{
	perror(call);
	exit(1);
}

static void map(void)
{
	void *p = mmap(NULL, LENGTH, PROT, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || munmap(p, LENGTH))
		die("mapper: mmap");
}

static void reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		die("mapper: waitpid");
}

static void start(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	if (pid < 0)
		die("mapper: fork");
	reap(pid);
}

static void execute(void)
{
	char *argv[] = { "program", NULL }, *envp[] = { NULL };
	pid_t pid;

	if (posix_spawn(&pid, program, NULL, NULL, argv, envp))
		die("mapper: posix_spawn");
	reap(pid);
}

static const struct operation {
	const char *name;
	void (*run)(void);
} operations[] = { { "mmap", map }, { "fork", start }, { "exec", execute } };

static const struct operation *operation_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(operations) / sizeof(*operations); i++)
		if (!strcmp(operations[i].name, name))
			return &operations[i];
	return NULL;
}

static double batch(const struct operation *operation, unsigned int rounds)
{
	int64_t begin = now_ns();
	unsigned int i;

	for (i = 0; i < rounds; i++)
		operation->run();
	return (double)(now_ns() - begin) / rounds;
}

int main(int argc, char **argv)
{
	const struct operation *operation = argc > 1 ? operation_of(argv[1]) : NULL;
	unsigned int batches = argc > 2 ? atoi(argv[2]) : 0, rounds = argc > 3 ? atoi(argv[3]) : 0;
	double *v = calloc(batches, sizeof(*v));
	unsigned int i;

	if (argc > 4)
		program = argv[4];
	if (!operation || !batches || !rounds || !v)
		return 2;
	/* Warm up: the emulator translates the code, and the slabs fill. */
	batch(operation, rounds);
	for (i = 0; i < batches; i++)
		v[i] = batch(operation, rounds);
	samples_sort(v, batches);
	printf("%.1f\n", v[batches / 4]);
	return 0;
}
