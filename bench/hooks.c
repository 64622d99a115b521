// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of the module's hooks for a pair of mmap and munmap: in a plain process
 * with no module, with the module and no space, and with one space; and in a
 * task. Inserts and removes the module itself, so it must not be there before.
 *
 * usage: hooks pvas.ko [ROUNDS [BATCHES [PAIRS]]]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "pvas.h"

static char *batches = "200", *pairs = "20";

static void insert(const char *ko)
{
	int fd = open(ko, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		bench_die(ko, -errno);
	close(fd);
}

static void remove_module(void)
{
	int tries = 100;

	/* The last space may still be ending. */
	while (syscall(SYS_delete_module, "pvas", O_NONBLOCK))
		if (errno != EWOULDBLOCK && errno != EBUSY)
			bench_die("rmmod pvas", -errno);
		else if (!tries--)
			bench_die("rmmod pvas", -EBUSY);
		else
			usleep(20000);
}

/* Nanoseconds a pair, as measured by a new process or task. */
static double mapper(struct pvas_space *space)
{
	char *argv[] = { "mapper", batches, pairs, NULL };
	char text[64] = "";
	int out[2];
	pid_t pid;

	if (pipe2(out, O_CLOEXEC))
		bench_die("pipe", -errno);
	pid = bench_start(space, bench_beside("mapper"), argv, out[1]);
	close(out[1]);
	if (read(out[0], text, sizeof(text) - 1) <= 0)
		bench_die("mapper", -EPIPE);
	close(out[0]);
	bench_reap(pid);
	return atof(text);
}

static struct pvas_space *make_space(void)
{
	struct pvas_space *space;
	int err = pvas_space_create(&space, NULL);

	if (err)
		bench_die("pvas_space_create", err);
	return space;
}

struct all {
	struct bench_series again, idle, used, task;
};

/*
 * The values to compare are measured close together in time: the speed of the machine
 * varies by more than their difference, but slowly.
 */
static void round_of(struct all *all, const char *ko)
{
	struct pvas_space *space;
	double bare, idle;

	bare = mapper(NULL);
	bench_series_add(&all->again, bare, mapper(NULL));
	insert(ko);
	idle = mapper(NULL);
	bench_series_add(&all->idle, bare, idle);
	bench_series_again(&all->idle, mapper(NULL));
	space = make_space();
	bench_series_add(&all->used, idle, mapper(NULL));
	bench_series_again(&all->used, mapper(NULL));
	bench_series_add(&all->task, idle, mapper(space));
	bench_series_again(&all->task, mapper(space));
	pvas_space_destroy(space);
	remove_module();
}

int main(int argc, char **argv)
{
	/* Where the clock counts instructions, say so. */
	const char *unit = getenv("BENCH_COUNTING") ? "insn" : "ns";
	unsigned int rounds = argc > 2 ? atoi(argv[2]) : 21, i;
	struct all all;

	if (argc < 2 || !rounds)
		bench_die("usage: hooks pvas.ko [ROUNDS [BATCHES [PAIRS]]]", -EINVAL);
	if (argc > 3)
		batches = argv[3];
	if (argc > 4)
		pairs = argv[4];
	bench_series_init(&all.again, rounds);
	bench_series_init(&all.idle, rounds);
	bench_series_init(&all.used, rounds);
	bench_series_init(&all.task, rounds);
	for (i = 0; i < rounds; i++)
		round_of(&all, argv[1]);
	bench_series_result(&all.again, "mmap+munmap, same against same", unit, 0);
	bench_series_result(&all.idle, "mmap+munmap, module, no space", unit, 1.02);
	bench_series_result(&all.used, "mmap+munmap, plain, one space", unit, 1.05);
	bench_series_result(&all.task, "mmap+munmap, in a task", unit, 1.15);
	return 0;
}
