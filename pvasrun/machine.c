// SPDX-License-Identifier: GPL-2.0-only
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "open_regular.h"

#define FIRST_SIZE	128		/* bytes: 1024 processors */
#define LAST_SIZE	(1 << 17)
#define TEXT_SIZE	(1 << 16)	/* of a list in sysfs */

/* ---- sets ---- */

static unsigned int bits(size_t size)
{
	return 8 * size;
}

static int first_of(const cpu_set_t *set, size_t size)
{
	unsigned int i;

	for (i = 0; i < bits(size); i++)
		if (CPU_ISSET_S(i, size, set))
			return (int)i;
	return INT_MAX;
}

static cpu_set_t *new_set(size_t size)
{
	return calloc(1, size);
}

static int add_set(struct cpu_sets *to, cpu_set_t *set)
{
	cpu_set_t **more = realloc(to->sets, (to->nr + 1) * sizeof(cpu_set_t *));

	if (!more)
		return -ENOMEM;
	to->sets = more;
	more[to->nr++] = set;
	return 0;
}

void cpu_sets_free(struct cpu_sets *sets)
{
	while (sets->nr)
		free(sets->sets[--sets->nr]);
	free(sets->sets);
	sets->sets = NULL;
}

/* The processor after @from up to which all are in the set */
static unsigned int end_of_run(const cpu_set_t *set, size_t size, unsigned int from)
{
	while (from < bits(size) && CPU_ISSET_S(from, size, set))
		from++;
	return from;
}

char *cpu_set_text(const cpu_set_t *set, size_t size)
{
	unsigned int from, to;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	for (from = 0; from < bits(size); from = to + 1) {
		to = end_of_run(set, size, from);
		if (to > from)
			fprintf(out, "%s%u", ftell(out) ? "," : "", from);
		if (to > from + 1)
			fprintf(out, "-%u", to - 1);
	}
	fclose(out);
	return text;
}

/* ---- files ---- */

/* As "0-3,8\n", bounded by @size: the set is empty if there is no such file. */
static void parse_list(const char *text, cpu_set_t *set, size_t size)
{
	unsigned long from, to;
	char *end;

	CPU_ZERO_S(size, set);
	while (*text >= '0' && *text <= '9') {
		from = to = strtoul(text, &end, 10);
		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (; from <= to && from < bits(size); from++)
			CPU_SET_S(from, size, set);
		text = *end == ',' ? end + 1 : "";
	}
}

__attribute__((format(printf, 3, 4)))
static void read_list(cpu_set_t *set, size_t size, const char *format, ...)
{
	static char text[TEXT_SIZE];
	char path[PATH_MAX];
	ssize_t n = -1;
	struct stat st;
	va_list args;
	int fd;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	fd = open_regular(path, &st);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n < 0 ? 0 : n] = '\0';
	parse_list(text, set, size);
}

/* ---- the machine ---- */

int machine_allowed(struct cpu_sets *to)
{
	cpu_set_t *set;
	int err;

	*to = (struct cpu_sets){ .size = FIRST_SIZE };
	for (; to->size <= LAST_SIZE; to->size *= 2) {
		set = new_set(to->size);
		if (!set)
			return -ENOMEM;
		err = sched_getaffinity(0, to->size, set) ? -errno : add_set(to, set);
		if (!err)
			return 0;
		free(set);
		/* The kernel's sets are longer. */
		if (err != -EINVAL)
			return err;
	}
	return -EINVAL;
}

static int by_first(const void *a, const void *b, void *size)
{
	int x = first_of(*(cpu_set_t *const *)a, *(size_t *)size);
	int y = first_of(*(cpu_set_t *const *)b, *(size_t *)size);

	return (x > y) - (x < y);
}

/* @set belongs to this function. Those without an allowed processor are left out. */
static int add_allowed(struct cpu_sets *to, cpu_set_t *set, const struct cpu_sets *allowed)
{
	int err = 0;

	CPU_AND_S(to->size, set, set, allowed->sets[0]);
	if (CPU_COUNT_S(to->size, set))
		err = add_set(to, set);
	if (err || !CPU_COUNT_S(to->size, set))
		free(set);
	return err;
}

static int read_nodes(struct cpu_sets *to, const char *sys, const struct cpu_sets *allowed)
{
	cpu_set_t *online = new_set(to->size), *set;
	unsigned int node;
	int err = online ? 0 : -ENOMEM;

	if (online)
		read_list(online, to->size, "%s/node/online", sys);
	for (node = 0; !err && node < bits(to->size); node++) {
		if (!CPU_ISSET_S(node, to->size, online))
			continue;
		set = new_set(to->size);
		if (!set) {
			err = -ENOMEM;
			break;
		}
		read_list(set, to->size, "%s/node/node%u/cpulist", sys, node);
		err = add_allowed(to, set, allowed);
	}
	free(online);
	return err;
}

static int copy_allowed(struct cpu_sets *to, const struct cpu_sets *allowed)
{
	cpu_set_t *set = new_set(to->size);

	if (!set)
		return -ENOMEM;
	CPU_OR_S(to->size, set, set, allowed->sets[0]);
	return add_allowed(to, set, allowed);
}

int machine_nodes(struct cpu_sets *to, const char *sys, const struct cpu_sets *allowed)
{
	int err;

	*to = (struct cpu_sets){ .size = allowed->size };
	err = read_nodes(to, sys, allowed);
	if (!err && !to->nr)
		err = copy_allowed(to, allowed);
	if (err)
		cpu_sets_free(to);
	else
		qsort_r(to->sets, to->nr, sizeof(*to->sets), by_first, &to->size);
	return err;
}

unsigned int machine_last_node(const char *sys)
{
	cpu_set_t set[8];
	unsigned int i = bits(sizeof(set));

	read_list(set, sizeof(set), "%s/node/has_memory", sys);
	while (i && !CPU_ISSET_S(i - 1, sizeof(set), set))
		i--;
	return i ? i - 1 : 0;
}

/* ---- cores ---- */

/* The order of cores: by package, node, and number; of each its first allowed processor */
struct core {
	int package;
	int node;
	int first;
	cpu_set_t *set;
};

static int by_place(const void *a, const void *b)
{
	const struct core *x = a, *y = b;

	if (x->package != y->package)
		return x->package < y->package ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->first < y->first ? -1 : 1;
}

/* The first processor of the set of @sets that has @cpu; 0 if none has */
static int group_of(const struct cpu_sets *sets, unsigned int cpu)
{
	unsigned int i;

	for (i = 0; i < sets->nr; i++)
		if (CPU_ISSET_S(cpu, sets->size, sets->sets[i]))
			return first_of(sets->sets[i], sets->size);
	return 0;
}

/* Packages are read when their first processor is met. */
static int find_package(struct cpu_sets *packages, const char *sys, unsigned int cpu,
			const struct cpu_sets *allowed)
{
	unsigned int i;
	cpu_set_t *set;

	for (i = 0; i < packages->nr; i++)
		if (CPU_ISSET_S(cpu, packages->size, packages->sets[i]))
			return 0;
	set = new_set(packages->size);
	if (!set)
		return -ENOMEM;
	read_list(set, packages->size, "%s/cpu/cpu%u/topology/package_cpus_list", sys, cpu);
	return add_allowed(packages, set, allowed);
}

/* Returns the number of cores, or -errno. */
static int read_cores(struct core *cores, const char *sys, const struct cpu_sets *allowed,
		      const struct cpu_sets *nodes, struct cpu_sets *packages)
{
	size_t size = allowed->size;
	cpu_set_t *left = new_set(size);
	int cpu, nr = 0, err = left ? 0 : -ENOMEM;

	if (left)
		CPU_OR_S(size, left, left, allowed->sets[0]);
	while (!err && (cpu = first_of(left, size)) != INT_MAX) {
		cpu_set_t *set = new_set(size);

		err = set ? find_package(packages, sys, cpu, allowed) : -ENOMEM;
		if (err) {
			free(set);
			break;
		}
		read_list(set, size, "%s/cpu/cpu%d/topology/core_cpus_list", sys, cpu);
		CPU_SET_S(cpu, size, set);
		CPU_AND_S(size, set, set, left);
		CPU_XOR_S(size, left, left, set);
		cores[nr++] = (struct core){
			.package = group_of(packages, cpu), .node = group_of(nodes, cpu),
			.first = cpu, .set = set,
		};
	}
	free(left);
	while (err && nr)
		free(cores[--nr].set);
	return err ? err : nr;
}

static int keep_cores(struct cpu_sets *to, const struct core *cores, int nr)
{
	int i;

	to->sets = malloc(nr * sizeof(cpu_set_t *));
	if (!to->sets)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		to->sets[i] = cores[i].set;
	to->nr = nr;
	return 0;
}

int machine_cores(struct cpu_sets *to, const char *sys, const struct cpu_sets *allowed)
{
	struct cpu_sets packages = { .size = allowed->size }, nodes;
	struct core *cores;
	int nr, err;

	*to = (struct cpu_sets){ .size = allowed->size };
	err = machine_nodes(&nodes, sys, allowed);
	if (err)
		return err;
	cores = calloc(CPU_COUNT_S(allowed->size, allowed->sets[0]), sizeof(*cores));
	nr = cores ? read_cores(cores, sys, allowed, &nodes, &packages) : -ENOMEM;
	if (nr > 0) {
		qsort(cores, nr, sizeof(*cores), by_place);
		err = keep_cores(to, cores, nr);
		while (err && nr)
			free(cores[--nr].set);
	}
	free(cores);
	cpu_sets_free(&packages);
	cpu_sets_free(&nodes);
	return nr < 0 ? nr : err;
}
