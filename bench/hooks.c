// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of the module's hooks for a pair of mmap and munmap, for fork and exit, and for exec:
 * in a plain process with no module, with the module and no space, and with one space; and in a
 * task. Inserts and removes the module itself, so it must not be there before.
 *
 * usage: hooks pvas.ko [ROUNDS [BATCHES [PAIRS]]]
 *
 * Of forks and execs a batch has a tenth of PAIRS, as each passes many more instructions.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "pvas.h"

static char *batches = "200", *pairs = "20", few[16] = "2";

static const struct operation {
	char *name;
	const char *label;
	char *rounds;
} operations[] = {
	{ "mmap", "mmap+munmap", NULL },
	{ "fork", "fork+exit", few },
	{ "exec", "exec+exit", few },
};

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

/* In memory: other file systems wait for devices, or for the host. */
static char *nothing(void)
{
	static char path[32];
	char buf[4096];
	ssize_t n;
	int in, out;

	if (*path)
		return path;
	in = open(bench_beside("nothing"), O_RDONLY | O_CLOEXEC);
	out = memfd_create("nothing", 0);
	if (in < 0 || out < 0)
		bench_die("nothing", -errno);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			bench_die("nothing", -errno);
	close(in);
	/* It can't be executed as long as somebody could write. */
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), out);
	in = open(path, O_RDONLY);
	close(out);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), in);
	return path;
}

/* Nanoseconds a round, as measured by a new process or task. */
static double mapper(const struct operation *operation, struct pvas_space *space)
{
	char *argv[] = { "mapper", operation->name, batches,
			 operation->rounds ? operation->rounds : pairs, nothing(), NULL };
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
static void round_of(const struct operation *operation, struct all *all, const char *ko)
{
	struct pvas_space *space;
	double bare, idle;

	bare = mapper(operation, NULL);
	bench_series_add(&all->again, bare, mapper(operation, NULL));
	insert(ko);
	idle = mapper(operation, NULL);
	bench_series_add(&all->idle, bare, idle);
	bench_series_again(&all->idle, mapper(operation, NULL));
	space = make_space();
	bench_series_add(&all->used, idle, mapper(operation, NULL));
	bench_series_again(&all->used, mapper(operation, NULL));
	bench_series_add(&all->task, idle, mapper(operation, space));
	bench_series_again(&all->task, mapper(operation, space));
	pvas_space_destroy(space);
	remove_module();
}

static void result(struct bench_series *series, const struct operation *operation,
		   const char *where, double limit)
{
	/* Where the clock counts instructions, say so. */
	const char *unit = getenv("BENCH_COUNTING") ? "insn" : "ns";
	char label[64];

	snprintf(label, sizeof(label), "%s, %s", operation->label, where);
	bench_series_result(series, label, unit, limit);
}

static void measure(const struct operation *operation, unsigned int rounds, const char *ko)
{
	struct all all;
	unsigned int i;

	bench_series_init(&all.again, rounds);
	bench_series_init(&all.idle, rounds);
	bench_series_init(&all.used, rounds);
	bench_series_init(&all.task, rounds);
	for (i = 0; i < rounds; i++)
		round_of(operation, &all, ko);
	result(&all.again, operation, "same against same", 0);
	result(&all.idle, operation, "module, no space", 1.02);
	result(&all.used, operation, "plain, one space", 1.05);
	result(&all.task, operation, "in a task", 1.15);
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 2 ? atoi(argv[2]) : 21, i;

	if (argc < 2 || !rounds)
		bench_die("usage: hooks pvas.ko [ROUNDS [BATCHES [PAIRS]]]", -EINVAL);
	if (argc > 3)
		batches = argv[3];
	if (argc > 4) {
		pairs = argv[4];
		snprintf(few, sizeof(few), "%d", (atoi(pairs) + 9) / 10);
	}
	for (i = 0; i < sizeof(operations) / sizeof(*operations); i++)
		measure(&operations[i], rounds, argv[1]);
	return 0;
}
