// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is anything left behind? Makes a space, starts tasks in it, lets them all
 * exit and ends it, many times, and looks at the system's memory before and
 * after.
 *
 * usage: cycle [CYCLES [TASKS]]
 *
 * Exit status 1 if a process or a space is left.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "pvas.h"

struct memory {
	long available, slab, tables;
};

static void one_cycle(unsigned int tasks)
{
	char *argv[] = { "true", NULL };
	struct pvas_space *space;
	pid_t pids[64];
	unsigned int i;
	int err;

	err = pvas_space_create(&space, NULL);
	if (err)
		bench_die("pvas_space_create", err);
	for (i = 0; i < tasks; i++)
		pids[i] = bench_start(space, "/bin/true", argv, -1);
	for (i = 0; i < tasks; i++)
		bench_reap(pids[i]);
	pvas_space_destroy(space);
}

/* Caches are no leak: let the kernel drop them before measuring. */
static struct memory look(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "3", 1) != 1)
		bench_die("/proc/sys/vm/drop_caches (are you root?)", -errno);
	close(fd);
	sleep(2);
	return (struct memory){ bench_meminfo("MemAvailable"), bench_meminfo("Slab"),
				bench_meminfo("PageTables") };
}

/* Processes that ended and were not reaped, of all parents. */
static unsigned int zombies(void)
{
	char path[300], line[512], *state;
	unsigned int n = 0;
	struct dirent *d;
	DIR *proc = opendir("/proc");
	FILE *f;

	while (proc && (d = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%s/stat", d->d_name);
		if (d->d_name[0] < '1' || d->d_name[0] > '9' || !(f = fopen(path, "re")))
			continue;
		state = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
		n += state && state[2] == 'Z';
		fclose(f);
	}
	if (proc)
		closedir(proc);
	return n;
}

static unsigned int spaces(void)
{
	unsigned int n = 0;
	char line[512];
	FILE *f = fopen("/proc/pvas", "re");

	if (!f)
		bench_die("/proc/pvas", -errno);
	while (fgets(line, sizeof(line), f))
		n += !strncmp(line, "space ", 6);
	fclose(f);
	return n;
}

static void show(unsigned int cycle, const struct memory *m)
{
	printf("after %5u cycles: MemAvailable %ld KiB, Slab %ld KiB, PageTables %ld KiB\n", cycle,
	       m->available, m->slab, m->tables);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned int cycles = argc > 1 ? atoi(argv[1]) : 1000, tasks = argc > 2 ? atoi(argv[2]) : 8;
	unsigned int i, dead, left;
	struct memory m;

	if (!cycles || !tasks || tasks > 64)
		bench_die("usage: cycle [CYCLES [TASKS (up to 64)]]", -EINVAL);
	/* Slabs, per-processor lists and the page cache reach their size here. */
	for (i = 0; i < 20; i++)
		one_cycle(tasks);
	m = look();
	show(0, &m);
	for (i = 1; i <= cycles; i++) {
		one_cycle(tasks);
		if (i % (cycles < 5 ? 1 : cycles / 5) == 0 || i == cycles) {
			m = look();
			show(i, &m);
		}
	}
	dead = zombies();
	left = spaces();
	printf("left behind: %u zombies, %u spaces\n", dead, left);
	return dead || left;
}
