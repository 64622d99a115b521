// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list for programs: one JSON object on one line. Its format is documented in
 * pvasps(1): later versions add members, and other changes increase "schema".
 */
#include "ps.h"

#include <string.h>
#include <time.h>

#define SCHEMA	1

/* Names may not be valid UTF-8: bytes above 127 are encoded as if they were Latin 1. */
static void put_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < ' ' || c > 126)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

/* null, and not 0, for values that are not known */
static void put_number(const char *name, uint64_t value, bool known)
{
	if (known)
		printf(",\"%s\":%lu", name, value);
	else
		printf(",\"%s\":null", name);
}

static void put_memory(const struct ps_memory *mem, bool known)
{
	put_number("resident_kib", mem->rss_kib, known);
	put_number("huge_kib", mem->huge_kib, known);
	put_number("maps", mem->maps, known);
}

static void put_areas(const struct ps_task *task)
{
	uint32_t i;

	printf(",\"areas\":[");
	for (i = 0; i < task->nr_areas; i++)
		printf("%s{\"kind\":\"%s\",\"start\":%lu,\"end\":%lu,\"resident_kib\":%lu}",
		       i ? "," : "", ps_kind_name(task->areas[i].kind), task->areas[i].start,
		       task->areas[i].end, task->areas[i].rss_kib);
	putchar(']');
}

/* Of a space's far memory */
static void put_far(const struct pvas_far_seen *far)
{
	put_number("far_kib", far->allocated >> 10, far->ram);
	put_number("far_local_kib", far->resident >> 10, far->ram);
	put_number("far_budget_kib", far->ram >> 10, far->ram);
	put_number("far_stored_kib", far->stored >> 10, far->ram);
	put_number("far_faults", far->faults, far->ram);
	put_number("far_faults_per_s", far->faults_s, far->ram);
	put_number("far_hits_per_1000", far->hits, far->ram && far->hits <= 1000);
	put_number("far_in_kib_per_s", far->in_s >> 10, far->ram);
	put_number("far_out_kib_per_s", far->out_s >> 10, far->ram);
}

static void put_task(const struct ps_task *task, bool measured, bool far, bool areas)
{
	printf("{\"index\":%u,\"pid\":%d,\"state\":\"%s\",\"name\":", task->index, task->pid,
	       task->state);
	put_string(task->name);
	printf(",\"start\":%lu,\"end\":%lu", task->start, task->end);
	put_number("load", task->load, task->load);
	put_number("heap", task->heap, task->heap);
	put_number("brk", task->brk, task->brk);
	put_memory(&task->mem, measured);
	put_number("far_kib", task->far_kib, far);
	put_number("far_local_kib", task->local_kib, far);
	printf(",\"threads\":%u,\"cpu_ms\":%lu", task->threads, task->cpu_ms);
	if (areas)
		put_areas(task);
	putchar('}');
}

static void put_space(const struct ps_space *space, bool areas)
{
	uint32_t i;

	printf("{\"id\":%u,\"backend\":\"%s\",\"uid\":%u", space->id,
	       space->user ? "user" : "kernel", space->uid);
	put_number("launcher", space->launcher, space->launcher);
	printf(",\"shift\":%u,\"partition_bytes\":%lu,\"state\":\"%s\",\"task_count\":%u,\"detail\":%s",
	       space->shift, 1UL << space->shift, space->closing ? "closing" : "open",
	       space->nr_tasks, space->detail ? "true" : "false");
	printf(",\"resident_kib\":%lu,\"pagetables_kib\":%lu", space->rss_kib, space->tables_kib);
	put_number("maps", space->maps, space->maps);
	put_number("huge_kib", ps_huge_kib(space), space->measured);
	put_number("header_kib", space->header.rss_kib, space->measured);
	put_number("outside_kib", space->rest.rss_kib, space->measured);
	put_number("cpu_ms", ps_cpu_ms(space), space->detail);
	put_far(&space->far);
	printf(",\"tasks\":[");
	for (i = 0; space->detail && i < space->nr_tasks; i++) {
		if (i)
			putchar(',');
		put_task(&space->tasks[i], space->measured, space->far.ram, areas);
	}
	printf("]}");
}

void ps_print_json(const struct ps_snapshot *s, bool areas)
{
	uint32_t i;

	printf("{\"schema\":%d,\"time\":%ld,\"hidden_processes\":%u,\"slow_processes\":%u,\"spaces\":[", SCHEMA,
	       (long)time(NULL), s->hidden, s->slow);
	for (i = 0; i < s->nr; i++) {
		if (i)
			putchar(',');
		put_space(&s->spaces[i], areas);
	}
	printf("]}\n");
}
