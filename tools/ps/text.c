// SPDX-License-Identifier: GPL-2.0-only
/* The plain list: two lines per space, one per task. */
#include "ps.h"

#include <pwd.h>

const char *ps_size_text(uint64_t kib, char buf[static 24])
{
	static const char units[] = "KMGTP";
	double value = kib;
	int i = 0;

	while (value >= 9999.5 && units[i + 1]) {
		value /= 1024;
		i++;
	}
	snprintf(buf, 24, value < 99.95 && i ? "%.1f%c" : "%.0f%c", value, units[i]);
	return buf;
}

const char *ps_cpu_text(uint64_t ms, char buf[static 24])
{
	unsigned long s = ms / 1000;

	if (s < 6000)
		snprintf(buf, 24, "%lu:%02lu.%02lu", s / 60, s % 60, ms % 1000 / 10);
	else
		snprintf(buf, 24, "%luh%02lum", s / 3600, s / 60 % 60);
	return buf;
}

static void print_sums(const struct ps_space *space)
{
	char rss[24], huge[24], tables[24], header[24], rest[24], cpu[24];

	printf("  resident %s", ps_size_text(space->rss_kib, rss));
	if (space->measured)
		printf(" (huge pages %s, header %s, outside %s)",
		       ps_size_text(ps_huge_kib(space), huge),
		       ps_size_text(space->header.rss_kib, header),
		       ps_size_text(space->rest.rss_kib, rest));
	printf(", page tables %s, maps %lu", ps_size_text(space->tables_kib, tables),
	       space->maps);
	if (space->detail)
		printf(", CPU %s", ps_cpu_text(ps_cpu_ms(space), cpu));
	putchar('\n');
}

static void print_space(const struct ps_space *space)
{
	struct passwd *user = getpwuid(space->uid);
	char far[160];

	printf("space %u: %s backend, ", space->id, space->user ? "user" : "kernel");
	if (user)
		printf("user %s, ", user->pw_name);
	else
		printf("uid %u, ", space->uid);
	printf("%u task%s, partitions of %lu GiB", space->nr_tasks,
	       space->nr_tasks == 1 ? "" : "s", 1UL << (space->shift - 30));
	if (space->launcher)
		printf(", launcher %d", space->launcher);
	puts(space->closing ? ", closing" : "");
	print_sums(space);
	if (space->far.ram)
		printf("  %s\n", ps_far_text(space, far));
}

static void print_task(const struct ps_task *task, bool measured, bool far)
{
	char all[24], local[24], far_text[64] = "";
	char rss[24] = "-", huge[24] = "-", maps[24] = "-", cpu[24], name[64];

	if (measured) {
		ps_size_text(task->mem.rss_kib, rss);
		ps_size_text(task->mem.huge_kib, huge);
		snprintf(maps, sizeof(maps), "%lu", task->mem.maps);
	}
	if (far)
		snprintf(far_text, sizeof(far_text), " %6s %6s",
			 ps_size_text(task->far_kib, all), ps_size_text(task->local_kib, local));
	printf("  %5u %8d %-8s %012lx-%012lx %6s %6s%s %5s %4u %9s  %s\n", task->index, task->pid,
	       task->state, task->start, task->end, rss, huge, far_text, maps, task->threads,
	       ps_cpu_text(task->cpu_ms, cpu), ps_name_text(task->name, name));
}

void ps_print_text(const struct ps_snapshot *s)
{
	uint32_t i, j;

	if (!s->nr)
		puts("no spaces");
	for (i = 0; i < s->nr; i++) {
		const struct ps_space *space = &s->spaces[i];

		if (i)
			putchar('\n');
		print_space(space);
		if (space->detail && space->nr_tasks)
			printf("  INDEX      PID STATE    RANGE                         RES   HUGE%s  MAPS  THR       CPU  COMMAND\n",
			       space->far.ram ? "    FAR  LOCAL" : "");
		for (j = 0; space->detail && j < space->nr_tasks; j++)
			print_task(&space->tasks[j], space->measured, space->far.ram);
	}
	if (s->hidden)
		printf("%u process%s may be of spaces of the user backend that can't be read (ptrace_scope; run as root)\n",
		       s->hidden, s->hidden == 1 ? "" : "es");
	if (s->slow)
		printf("%u process%s passed over: reading their users' processes took too long\n",
		       s->slow, s->slow == 1 ? "" : "es");
}
