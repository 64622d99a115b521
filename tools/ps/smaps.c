// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory by partition. The smaps file of one process shows the whole space, and is read
 * once per space, for it is expensive: the kernel walks the page tables, and holds the
 * mmap lock for reading while it fills a page of text, about six mappings at a time.
 */
#include "ps.h"

#include <stdlib.h>
#include <string.h>

/* A mapping this far above the one before it may be the stack. */
#define STACK_APART (64UL << 20)
#define LOADER_APART (64UL << 10)

/* A process that keeps mapping could make the file endless; vm.max_map_count is less. */
#define MAX_MAPS (1U << 20)

/**
 * struct mapping - one entry of smaps
 * @start:	where it begins
 * @end:	where it ends
 * @file:	backed by a file
 * @rss_kib:	resident, hugetlbfs included
 * @huge_kib:	in huge pages
 */
struct mapping {
	uint64_t start;
	uint64_t end;
	bool file;
	uint64_t rss_kib;
	uint64_t huge_kib;
};

const char *ps_kind_name(enum ps_kind kind)
{
	static const char *const names[] = {
		[PS_PROGRAM] = "program", [PS_HEAP] = "heap", [PS_FILE] = "file",
		[PS_ANON] = "anon", [PS_STACK] = "stack",
	};

	return names[kind];
}

static bool begins(struct mapping *m, const char *line)
{
	unsigned long start, end, inode;
	int path = 0;

	if (sscanf(line, "%lx-%lx %*s %*x %*x:%*x %lu %n", &start, &end, &inode, &path) != 3)
		return false;
	*m = (struct mapping){ .start = start, .end = end, .file = inode != 0 };
	return true;
}

/* Rss includes transparent huge pages, but not hugetlbfs. */
static void add_line(struct mapping *m, const char *line)
{
	unsigned long kib;
	char key[32];

	if (sscanf(line, "%31[^:]: %lu kB", key, &kib) != 2)
		return;
	if (!strcmp(key, "Rss")) {
		m->rss_kib += kib;
	} else if (!strcmp(key, "Shared_Hugetlb") || !strcmp(key, "Private_Hugetlb")) {
		m->rss_kib += kib;
		m->huge_kib += kib;
	} else if (!strcmp(key, "AnonHugePages") || !strcmp(key, "ShmemPmdMapped") ||
		   !strcmp(key, "FilePmdMapped")) {
		m->huge_kib += kib;
	}
}

static void count(struct ps_memory *mem, const struct mapping *m)
{
	mem->rss_kib += m->rss_kib;
	mem->huge_kib += m->huge_kib;
	mem->maps++;
}

/*
 * The program is first in a partition, and the stack last, with both backends. Only the
 * module reports where the heap is; with the user backend, anonymous mappings next to
 * the program are taken for the heap.
 */
static enum ps_kind kind_of(const struct ps_task *task, const struct mapping *m)
{
	const struct ps_area *last = task->nr_areas ? &task->areas[task->nr_areas - 1] : NULL;
	bool close = last && m->start - last->end < 64UL << 20;

	if (!last || (last->kind == PS_PROGRAM && close && m->start < (task->heap ?: 1)))
		return PS_PROGRAM;
	if (m->file)
		return last->kind == PS_PROGRAM && close && !task->heap ? PS_PROGRAM : PS_FILE;
	if (task->heap ? m->start >= task->heap && m->start < task->brk
		       : close && (last->kind == PS_PROGRAM || last->kind == PS_HEAP))
		return PS_HEAP;
	return PS_ANON;
}

static void add_area(struct ps_task *task, const struct mapping *m)
{
	enum ps_kind kind = kind_of(task, m);
	struct ps_area *last;

	if (!task->nr_areas || task->areas[task->nr_areas - 1].kind != kind ||
	    (kind == PS_ANON && m->start - task->areas[task->nr_areas - 1].end >= STACK_APART)) {
		task->areas = ps_grow(task->areas, task->nr_areas, sizeof(*task->areas));
		task->areas[task->nr_areas++] = (struct ps_area){ .kind = kind, .start = m->start };
	}
	last = &task->areas[task->nr_areas - 1];
	last->end = m->end;
	last->rss_kib += m->rss_kib;
}

static void add_mapping(struct ps_space *space, const struct mapping *m)
{
	struct ps_task *task = ps_task_at(space, m->start >> space->shift);

	if (m->start >> space->shift == 0) {
		count(&space->header, m);
	} else if (task) {
		count(&task->mem, m);
		add_area(task, m);
	} else {
		count(&space->rest, m);
	}
}

/* The last area, which with the user backend includes the loader, a file's mapping beside it */
static void name_stack(struct ps_task *task)
{
	struct ps_area *last = task->nr_areas ? &task->areas[task->nr_areas - 1] : NULL;
	struct ps_area *before = task->nr_areas > 1 ? last - 1 : NULL;

	if (before && last->kind == PS_FILE && before->kind == PS_ANON &&
	    last->start - before->end < LOADER_APART) {
		before->end = last->end;
		before->rss_kib += last->rss_kib;
		task->nr_areas--;
		last = before;
	}
	if (last && last->kind == PS_ANON)
		last->kind = PS_STACK;
}

static void clear(struct ps_space *space)
{
	uint32_t i;

	memset(&space->header, 0, sizeof(space->header));
	memset(&space->rest, 0, sizeof(space->rest));
	for (i = 0; i < space->nr_tasks; i++) {
		struct ps_task *task = &space->tasks[i];

		memset(&task->mem, 0, sizeof(task->mem));
		free(task->areas);
		task->areas = NULL;
		task->nr_areas = 0;
	}
}

/* The number of mappings, 0 if the file was not read to its end */
static uint64_t read_mappings(struct ps_space *space, FILE *f)
{
	struct mapping m = { 0 }, next;
	uint64_t maps = 0;
	char line[256];

	while (maps <= MAX_MAPS && ps_next_line(f, line, sizeof(line))) {
		if (begins(&next, line)) {
			if (maps++)
				add_mapping(space, &m);
			m = next;
		} else {
			add_line(&m, line);
		}
	}
	if (maps)
		add_mapping(space, &m);
	return maps <= MAX_MAPS && !ps_reader_late() ? maps : 0;
}

bool ps_measure(struct ps_space *space, pid_t pid)
{
	uint64_t maps = 0;
	uint32_t i;
	FILE *f;

	f = ps_reader_turn(space->uid, PS_MEASURING) ? ps_reader_open(pid, "smaps") : NULL;
	if (f) {
		maps = read_mappings(space, f);
		fclose(f);
	}
	if (!maps) {
		clear(space);
		return false;
	}
	for (i = 0; i < space->nr_tasks; i++)
		name_stack(&space->tasks[i]);
	space->maps = maps;
	return true;
}
