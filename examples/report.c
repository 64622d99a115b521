// SPDX-License-Identifier: GPL-2.0-only
/* The memory of a job, measured by one of its members. */
#include "report.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int complain(const char *what, int err)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(-err));
	return err;
}

/* The number behind "@field:" in a file such as /proc/meminfo. */
static long read_field(const char *path, const char *field)
{
	size_t len = strlen(field);
	char line[256];
	long value = -ENOENT;
	FILE *f;

	f = fopen(path, "re");
	if (!f)
		return complain(path, -errno);
	while (value < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, field, len) && line[len] == ':')
			value = atol(line + len + 1);
	fclose(f);
	return value < 0 ? complain(field, value) : value;
}

static long read_process(pid_t pid, const char *file, const char *field)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	return read_field(path, field);
}

/*
 * Memory that the system uses for processes. Not MemAvailable: that changes by many
 * MiB with the page cache, which also depends on earlier programs.
 */
static long read_used(void)
{
	static const char * const parts[] = {
		"AnonPages", "Shmem", "PageTables", "KernelStack", "SUnreclaim", "Percpu",
	};
	long sum = 0, kib;
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		kib = read_field("/proc/meminfo", parts[i]);
		if (kib < 0)
			return kib;
		sum += kib;
	}
	return sum;
}

/* Do the two processes share their mm? 1 or 0, or -errno. */
static long same_mm(pid_t a, pid_t b)
{
	long ret = syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0);

	if (ret < 0)
		return complain("kcmp", -errno);
	return !ret;
}

/* Values of an mm are counted once for each mm: in rank 0 for all that share it. */
struct sums {
	long same, pss, pte;
};

static int add_member(struct sums *s, pid_t first, pid_t pid)
{
	long same = same_mm(first, pid), pss, pte;

	if (same < 0)
		return same;
	s->same += same;
	if (same && pid != first)
		return 0;
	pss = read_process(pid, "smaps_rollup", "Pss");
	pte = read_process(pid, "status", "VmPTE");
	if (pss < 0 || pte < 0)
		return -EIO;
	s->pss += pss;
	s->pte += pte;
	return 0;
}

int report_team(const struct team *team, const char *path)
{
	const struct team_seat *seats = team->board->seats;
	/* First, because measuring the rest takes memory, too. */
	long tables = read_field("/proc/meminfo", "PageTables");
	long used = read_used();
	struct sums s = { 0 };
	unsigned int i;
	FILE *f;
	int err;

	if (tables < 0 || used < 0)
		return -EIO;
	for (i = 0; i < team->size; i++) {
		err = add_member(&s, seats[0].pid, seats[i].pid);
		if (err)
			return err;
	}
	f = fopen(path, "we");
	if (!f)
		return complain(path, -errno);
	fprintf(f, "tasks=%u\nsame_mm=%ld\npss_kib=%ld\nvmpte_kib=%ld\n", team->size, s.same,
		s.pss, s.pte);
	fprintf(f, "system_pagetables_kib=%ld\nsystem_used_kib=%ld\n", tables, used);
	return fclose(f) ? complain(path, -errno) : 0;
}

int report_seconds(const char *path, const char *name, double seconds)
{
	FILE *f = fopen(path, "ae");

	if (!f)
		return complain(path, -errno);
	fprintf(f, "%s=%.3f\n", name, seconds);
	return fclose(f) ? complain(path, -errno) : 0;
}
