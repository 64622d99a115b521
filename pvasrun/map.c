// SPDX-License-Identifier: GPL-2.0-only
/* --map: who lies where. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "launch.h"
#include "report.h"

static void print_row(FILE *to, const struct run *run, unsigned int rank)
{
	const struct task *task = &run->job.tasks[rank];
	hwloc_const_cpuset_t set = places_set(&run->places, rank);
	unsigned int index = task->index;
	uint64_t base = index * run->partition_size;
	char *cpus = NULL;

	if (set && hwloc_bitmap_list_asprintf(&cpus, set) < 0)
		cpus = NULL;
	fprintf(to, "%5u %6u %8d  %012" PRIx64 "-%012" PRIx64 "  %-10s %s\n", rank, index,
		task->pid, base, base + run->partition_size - 1, cpus ? cpus : "any",
		task->app->path);
	free(cpus);
}

/* In one piece, for the tasks are writing to the same terminal already */
void map_print(const struct run *run)
{
	char *text = NULL;
	unsigned int rank;
	size_t len;
	FILE *to;

	to = open_memstream(&text, &len);
	if (!to)
		return;
	fprintf(to, "%5s %6s %8s  %-25s  %-10s %s\n", "rank", "index", "pid", "partition", "cpus",
		"program");
	for (rank = 0; rank < run->job.started; rank++)
		print_row(to, run, rank);
	fclose(to);
	report_text(text, len);
	free(text);
}
