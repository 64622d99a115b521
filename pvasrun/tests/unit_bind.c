// SPDX-License-Identifier: GPL-2.0-only
/* The places of tasks, on machines that are made of files as in /sys/devices/system */
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../bind.h"
#include "unit.h"

#define SET_BYTES	512

#define SPREAD		1	/* the processors of a core don't have neighbouring numbers */
#define IN_TURNS	2	/* packages' cores are numbered in turns */
#define SILENT		4	/* the kernel does not tell the cores */

struct shape {
	unsigned int packages;
	unsigned int nodes;	/* of a package; 0: there is no folder of nodes */
	unsigned int cores;	/* of a node, or of a package */
	unsigned int pus;
	unsigned int how;
};

/* ---- files ---- */

static char sys[] = "/tmp/pvasrun-unit.XXXXXX";

__attribute__((format(printf, 2, 3)))
static void write_text(const char *text, const char *format, ...)
{
	char path[256], *slash;
	va_list args;
	FILE *file;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	for (slash = strchr(path + strlen(sys) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "we");
	if (!file)
		return;
	fputs(text, file);
	fclose(file);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_machine(void)
{
	nftw(sys, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	strcpy(sys + strlen(sys) - 6, "XXXXXX");
}

/* ---- the machine ---- */

static unsigned int all_cores(const struct shape *s)
{
	return s->packages * (s->nodes ? s->nodes : 1) * s->cores;
}

static unsigned int package_of(const struct shape *s, unsigned int core)
{
	return (s->how & IN_TURNS) ? core % s->packages : core / (all_cores(s) / s->packages);
}

static unsigned int node_of(const struct shape *s, unsigned int core)
{
	unsigned int in_package = (s->how & IN_TURNS) ? core / s->packages :
						core % (all_cores(s) / s->packages);

	return package_of(s, core) * s->nodes + in_package / s->cores;
}

static unsigned int cpu_of(const struct shape *s, unsigned int core, unsigned int pu)
{
	return (s->how & SPREAD) ? core + pu * all_cores(s) : core * s->pus + pu;
}

/* The processors of the cores of which @of says @group, as the kernel writes them; not sorted */
static const char *list_of(const struct shape *s,
			   unsigned int (*of)(const struct shape *s, unsigned int core),
			   unsigned int group)
{
	static char text[1 << 15];
	unsigned int core, pu;
	size_t len = 0;

	text[0] = '\0';
	for (core = 0; core < all_cores(s); core++)
		for (pu = 0; pu < s->pus && of(s, core) == group; pu++)
			len += snprintf(text + len, sizeof(text) - len, "%s%u", len ? "," : "",
					cpu_of(s, core, pu));
	snprintf(text + len, sizeof(text) - len, "\n");
	return text;
}

static unsigned int core_itself(const struct shape *s, unsigned int core)
{
	(void)s;
	return core;
}

/* Only what is read: a core is asked for by its first processor, a package by its first core */
static void make_machine(const struct shape *s)
{
	unsigned int core, node;
	char text[32];

	check(!!mkdtemp(sys));
	for (core = 0; core < all_cores(s) && !(s->how & SILENT); core++) {
		unsigned int cpu = cpu_of(s, core, 0);

		write_text(list_of(s, core_itself, core), "%s/cpu/cpu%u/topology/core_cpus_list",
			   sys, cpu);
		if (s->how & IN_TURNS ? core < s->packages : !(core % (all_cores(s) / s->packages)))
			write_text(list_of(s, package_of, package_of(s, core)),
				   "%s/cpu/cpu%u/topology/package_cpus_list", sys, cpu);
	}
	for (node = 0; node < s->packages * s->nodes; node++)
		write_text(list_of(s, node_of, node), "%s/node/node%u/cpulist", sys, node);
	snprintf(text, sizeof(text), "0-%u\n", s->packages * s->nodes - 1);
	if (s->nodes) {
		write_text(text, "%s/node/online", sys);
		write_text(text, "%s/node/has_memory", sys);
	}
}

/* All processors of the machine, but @without */
static void allow(struct cpu_sets *to, const struct shape *s, const char *without)
{
	unsigned int cpu;
	char number[16];

	*to = (struct cpu_sets){ .size = SET_BYTES, .nr = 1 };
	to->sets = malloc(sizeof(*to->sets));
	to->sets[0] = calloc(1, SET_BYTES);
	for (cpu = 0; cpu < all_cores(s) * s->pus; cpu++) {
		snprintf(number, sizeof(number), " %u ", cpu);
		if (!without || !strstr(without, number))
			CPU_SET_S(cpu, SET_BYTES, to->sets[0]);
	}
}

/* The sets of all ranks as "0-1 2-3 ...", or "none" */
static const char *sets_text(const struct places *places, unsigned int tasks)
{
	static char text[512];
	unsigned int rank;
	size_t used = 0;

	text[0] = '\0';
	for (rank = 0; rank < tasks; rank++) {
		char *list = places_text(places, rank);

		used += snprintf(text + used, sizeof(text) - used, "%s%s", rank ? " " : "",
				 list ? list : "none");
		free(list);
	}
	return text;
}

static void test_machines(void)
{
	static const struct {
		const char *name;
		struct shape shape;
		const char *without;
		enum bind_to how;
		unsigned int tasks;
		const char *sets;
	} cases[] = {
		{ "4 cores", { 1, 1, 4, 1, 0 }, NULL, BIND_DEFAULT, 4, "0 1 2 3" },
		{ "4 x 2", { 1, 1, 4, 2, 0 }, NULL, BIND_DEFAULT, 4, "0-1 2-3 4-5 6-7" },
		{ "4 x 2, 2 tasks", { 1, 1, 4, 2, 0 }, NULL, BIND_DEFAULT, 2, "0-1 4-5" },
		{ "3 tasks", { 1, 1, 4, 1, 0 }, NULL, BIND_DEFAULT, 3, "0 1 2" },
		{ "too many", { 1, 1, 4, 1, 0 }, NULL, BIND_DEFAULT, 5, "none none none none none" },
		{ "too many, on cores", { 1, 1, 4, 1, 0 }, NULL, BIND_CORE, 5, "0 0 1 2 3" },
		{ "3 times too many", { 1, 1, 2, 1, 0 }, NULL, BIND_CORE, 6, "0 0 0 1 1 1" },
		{ "not at all", { 1, 1, 4, 1, 0 }, NULL, BIND_NONE, 2, "none none" },
		{ "no cores", { 1, 1, 3, 1, SILENT }, NULL, BIND_CORE, 3, "0 1 2" },
		{ "nodes", { 1, 2, 2, 1, 0 }, NULL, BIND_NUMA, 2, "0-1 2-3" },
		{ "2 a node", { 1, 2, 2, 1, 0 }, NULL, BIND_NUMA, 4, "0-1 0-1 2-3 2-3" },
		{ "3 for 2 nodes", { 1, 2, 2, 1, 0 }, NULL, BIND_NUMA, 3, "0-1 0-1 2-3" },
		{ "4 nodes", { 2, 2, 1, 1, 0 }, NULL, BIND_NUMA, 2, "0 2" },
		{ "2 x 4 x 2", { 2, 1, 4, 2, 0 }, NULL, BIND_DEFAULT, 4, "0-1 4-5 8-9 12-13" },
		{ "no nodes", { 1, 0, 2, 1, 0 }, NULL, BIND_NUMA, 2, "0-1 0-1" },
		{ "threads far apart", { 1, 1, 4, 2, SPREAD }, NULL, BIND_CORE, 4,
		  "0,4 1,5 2,6 3,7" },
		{ "packages in turns", { 2, 1, 2, 1, IN_TURNS }, NULL, BIND_CORE, 4,
		  "0 2 1 3" },
		{ "nodes in turns", { 2, 1, 2, 2, SPREAD | IN_TURNS }, NULL,
		  BIND_NUMA, 2, "0,2,4,6 1,3,5,7" },
		{ "a core taken away", { 1, 1, 4, 2, 0 }, " 2 3 ", BIND_CORE, 3, "0-1 4-5 6-7" },
		{ "first threads taken away", { 1, 1, 2, 2, SILENT }, " 0 2 ", BIND_CORE, 2,
		  "1 3" },
		{ "a node taken away", { 1, 2, 2, 1, 0 }, " 0 1 ", BIND_NUMA, 2, "2-3 2-3" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cpu_sets allowed;
		struct places places;

		make_machine(&cases[i].shape);
		allow(&allowed, &cases[i].shape, cases[i].without);
		check_case(!places_choose(&places, sys, &allowed, cases[i].how, cases[i].tasks),
			   cases[i].name);
		check_text(sets_text(&places, cases[i].tasks), cases[i].sets, cases[i].name);
		places_free(&places);
		cpu_sets_free(&allowed);
		remove_machine();
	}
}

/* More processors than fit into a plain cpu_set_t */
static void test_large(void)
{
	static const struct shape shape = { 2, 2, 500, 2, 0 };
	struct cpu_sets allowed;
	struct places places;

	make_machine(&shape);
	allow(&allowed, &shape, NULL);
	check(!places_choose(&places, sys, &allowed, BIND_CORE, 2000));
	check(CPU_COUNT_S(SET_BYTES, places_set(&places, 1999)) == 2);
	check(CPU_ISSET_S(3998, SET_BYTES, places_set(&places, 1999)));
	check(CPU_ISSET_S(3999, SET_BYTES, places_set(&places, 1999)));
	places_free(&places);
	check(machine_last_node(sys) == 3);
	cpu_sets_free(&allowed);
	remove_machine();
	check(machine_last_node("/nonexistent") == 0);
}

/* Files that say nonsense: each processor is bound, and to one that is allowed. */
static void test_nonsense(void)
{
	static const char *const lists[] = {
		"", "\n", "x", "-", "0-", "5-1\n", "99999999999999999999-3", "0-4294967295\n", "7,,8",
		"1-2-3,0",
	};
	static const struct shape shape = { 1, 0, 2, 1, SILENT };
	struct cpu_sets allowed;
	struct places places;
	unsigned int i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		make_machine(&shape);
		write_text(lists[i], "%s/cpu/cpu0/topology/core_cpus_list", sys);
		write_text(lists[i], "%s/cpu/cpu0/topology/package_cpus_list", sys);
		write_text(lists[i], "%s/node/online", sys);
		write_text(lists[i], "%s/node/node0/cpulist", sys);
		allow(&allowed, &shape, NULL);
		check_case(!places_choose(&places, sys, &allowed, BIND_CORE, 1), lists[i]);
		check_case(CPU_ISSET_S(0, SET_BYTES, places_set(&places, 0)), lists[i]);
		places_free(&places);
		check_case(!places_choose(&places, sys, &allowed, BIND_NUMA, 1), lists[i]);
		check_case(CPU_COUNT_S(SET_BYTES, places_set(&places, 0)) > 0, lists[i]);
		places_free(&places);
		cpu_sets_free(&allowed);
		remove_machine();
	}
}

/* A file that nobody writes to is as good as none. */
static void test_fifo(void)
{
	static const struct shape shape = { 1, 0, 2, 1, SILENT };
	struct cpu_sets allowed;
	struct places places;
	char path[64];

	make_machine(&shape);
	write_text("", "%s/node/none", sys);
	snprintf(path, sizeof(path), "%s/node/online", sys);
	check(!mkfifo(path, 0600));
	allow(&allowed, &shape, NULL);
	check(!places_choose(&places, sys, &allowed, BIND_NUMA, 1));
	places_free(&places);
	cpu_sets_free(&allowed);
	remove_machine();
}

/* Within the limits of taskset(1) */
static void test_this_machine(void)
{
	cpu_set_t before, one;
	struct places places;
	unsigned int cpu = 0;
	char text[16];

	sched_getaffinity(0, sizeof(before), &before);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	check(places_init(&places, BIND_DEFAULT, 1) == 0);
	check(places.sets.nr == 1 && places.how == BIND_CORE);
	snprintf(text, sizeof(text), "%u", cpu);
	check_text(sets_text(&places, 1), text, "the one processor allowed");
	places_free(&places);
	sched_setaffinity(0, sizeof(before), &before);
	check(places_init(&places, BIND_NONE, 1) == 0 && places.how == BIND_NONE);
	places_free(&places);
}

void test_bind(void)
{
	test_machines();
	test_large();
	test_nonsense();
	test_fifo();
	test_this_machine();
}
