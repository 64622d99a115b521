// SPDX-License-Identifier: GPL-2.0-only
/* --map: print a table of the ranks. */
#include "map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "report.h"

/* @cpus belongs to this function. */
static void print_row(FILE *to, const struct task *task, unsigned int rank, uint64_t size,
		      char *cpus)
{
	uint64_t base = task->index * size;

	fprintf(to, "%5u %6u %8d  %012" PRIx64 "-%012" PRIx64 "  %-10s %s\n", rank,
		task->index, task->pid, base, base + size - 1, cpus ? cpus : "any",
		task->app->path);
	free(cpus);
}

/* In one write, for tasks may write to the same terminal at the same time */
void map_print(const struct job *job, const struct job_space *space, const struct places *places)
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
	for (rank = 0; rank < job->started; rank++)
		print_row(to, &job->tasks[rank], rank, space->partition_size,
			  places_text(places, rank));
	fclose(to);
	report_text(text, len);
	free(text);
}
