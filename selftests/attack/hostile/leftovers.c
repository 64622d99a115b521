// SPDX-License-Identifier: GPL-2.0-only
/* Left when nobody lives any more: spaces, memory, contexts, references. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../left.h"
#include "hostile.h"

#define LEFT_SECONDS	30
#define MEMORY_KIB	(48 << 10)	/* slabs and page tables come and go */

struct state {
	long spaces, memory, unowned, aio, references, locked;
};

static struct state before;
/* Less than that is no leak. */
static long slack;

static long number_in(const char *path, const char *name)
{
	char buf[8192], *p = buf;

	read_proc(path, buf, sizeof(buf));
	if (name)
		p = strstr(buf, name);
	return p ? atol(p + (name ? strlen(name) : 0)) : -1;
}

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, 1) != 1)
		fprintf(stderr, "hostile: %s can't be written\n", path);
	close(fd);
}

/* But for what init locks, whose stack may grow (selftests/vm/init). */
static long locked_by_others(void)
{
	return number_in("/proc/meminfo", "Mlocked:") - number_in("/proc/1/smaps_rollup", "Locked:");
}

static void read_state(struct state *s, bool with_memory)
{
	if (with_memory) {
		write_to("/proc/sys/vm/drop_caches", "3");
		write_to("/proc/sys/vm/compact_memory", "1");
	}
	s->spaces = count_spaces();
	s->memory = number_in("/proc/meminfo", "MemAvailable:");
	s->unowned = memory_without_owner() - board_kib();
	s->locked = locked_by_others();
	s->aio = number_in("/proc/sys/fs/aio-nr", NULL);
	s->references = number_in("/sys/module/pvas/refcnt", NULL);
}

static bool is_clean(const struct state *s)
{
	return s->spaces <= before.spaces && s->aio <= before.aio && s->locked <= before.locked &&
	       s->references <= before.references && s->memory > before.memory - slack &&
	       s->unowned < before.unowned + OWNER_SLACK_KIB;
}

/* KASAN keeps freed objects back, up to a 32nd of all memory, and writes down who freed them. */
static bool has_kasan(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512];
	bool has = false;

	while (f && !has && fgets(line, sizeof(line), f))
		has = strstr(line, " kasan_report");
	if (f)
		fclose(f);
	return has;
}

void left_baseline(void)
{
	slack = MEMORY_KIB;
	if (has_kasan())
		slack += number_in("/proc/meminfo", "MemTotal:") / 16;
	usleep(500000);
	read_state(&before, true);
}

static void report(const struct state *s)
{
	char buf[400] = "", *end;

	read_proc("/proc/pvas", buf, sizeof(buf));
	for (end = buf; *end && *end != '\n'; end++)
		;
	*end = '\0';
	if (s->spaces > before.spaces)
		found(F_SPACES, 0, s->spaces - before.spaces, atoi(buf + 6), 0, buf);
	if (s->aio > before.aio)
		found(F_AIO, 0, s->aio, before.aio, 0, NULL);
	if (s->references > before.references)
		found(F_MODULE, 0, s->references, before.references, 0, NULL);
	if (s->locked > before.locked)
		found(F_LOCKED, 0, s->locked, before.locked, 0, NULL);
	if (s->unowned >= before.unowned + OWNER_SLACK_KIB) {
		found(F_UNOWNED, 0, s->unowned, before.unowned, 0, NULL);
		show_memory();
	}
	if (s->memory <= before.memory - slack)
		found(F_MEMORY, 0, before.memory - s->memory, before.memory, s->memory, NULL);
	/* Reported once: only more counts from now on. */
	before = *s;
}

void left_check(void)
{
	double deadline = now() + LEFT_SECONDS;
	struct state s;

	for (;;) {
		read_state(&s, false);
		if (is_clean(&s))
			return;
		if (now() > deadline)
			break;
		usleep(200000);
		print_findings();
		if (now() > deadline - LEFT_SECONDS / 2)
			read_state(&s, true);
	}
	read_state(&s, true);
	if (!is_clean(&s))
		report(&s);
}
