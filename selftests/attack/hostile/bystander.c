// SPDX-License-Identifier: GPL-2.0-only
/*
 * A task that only checks its own state: memory with known contents, and its
 * partition in maps and smaps. Its peers attack the space. Any task may store
 * anywhere in the space, so the attackers never store to this partition, nor does
 * the kernel for them.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <linux/pvas.h>
#include <pvas.h>

#include "hostile.h"

#define WORDS	(8 * PAGE / 8)
#define DEEP_WORDS (16 * PAGE / 8)
#define MAX_LINES 64
#define LINE	120

struct area { uint64_t start, end; char text[LINE]; };

static struct area own[MAX_LINES], reserved[MAX_LINES];
static unsigned int n_own, n_reserved, session;
static uintptr_t base, end;
static uint64_t *data;
static unsigned int shift, first, last;
static int dev;
static char buf[1 << 18];

/* Each kind a few times, for attackers go on and find more. */
static bool enough(enum what what)
{
	static unsigned int said[F_N];

	return said[what]++ >= 12;
}

static void say(enum what what, uint64_t a, uint64_t b, uint64_t c, const char *text)
{
	if (!enough(what))
		found(what, session, a, b, c, text);
}

/* ---- contents ---- */

static void fill(volatile uint64_t *words, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		words[i] = mix(i, 99);
}

static void check_words(volatile uint64_t *words, unsigned int n)
{
	unsigned int i;
	uint64_t want;

	for (i = 0; i < n; i++) {
		want = mix(i, 99);
		if (words[i] == want)
			continue;
		say(F_BYSTANDER_DATA, (uintptr_t)&words[i], words[i], want, NULL);
		words[i] = want;
	}
}

static void *map(size_t len, int rights, int flags)
{
	void *p = mmap(NULL, len, rights, flags | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void make_data(void)
{
	data = map(WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	if (!data)
		exit(0);
	fill(data, WORDS);
	/* One that can't be read, one that only can, one that is still empty. */
	if (!map(PAGE, PROT_NONE, MAP_PRIVATE) || !map(PAGE, PROT_READ, MAP_SHARED) ||
	    !map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED))
		exit(0);
}

/* ---- maps ---- */

static bool is_state(const char *p)
{
	return !strncmp(p, "Locked:", 7) || !strncmp(p, "VmFlags:", 8);
}

static void remove_all(char *text, const char *what)
{
	size_t len = strlen(what);
	char *p;

	while ((p = strstr(text, what)))
		memmove(p, p + len, strlen(p + len) + 1);
}

/* The kernel sets some flags for all of an mm (KSM), or by itself (soft dirty). */
static void drop(char *text)
{
	static const char *const not_ours[] = { " mg", " sd", " ac", " nr", "  " };
	unsigned int i;

	for (i = 0; i < ARRAY(not_ours); i++)
		remove_all(text, not_ours[i]);
}

/* Range and rights, whether it is locked, and the flags: of one mapping in smaps. */
static void describe(struct area *area, const struct map_line *line)
{
	size_t len = strcspn(line->text, " ") + 5, n;
	const char *p = line->text + line->len;

	memcpy(area->text, line->text, len);
	while (*p == '\n' && !(p[1] >= '0' && p[1] <= '9') && !(p[1] >= 'a' && p[1] <= 'f')) {
		n = strcspn(++p, "\n");
		if (is_state(p) && len + n < LINE) {
			memcpy(area->text + len, p, n);
			len += n;
		}
		p += n;
	}
	area->text[len] = '\0';
	drop(area->text);
}

static unsigned int read_own(struct area *areas)
{
	struct map_line line;
	unsigned int n = 0;
	char *at = buf;

	while (next_map(&at, &line) && n < MAX_LINES) {
		if (line.start < base || line.start >= end)
			continue;
		areas[n].start = line.start;
		areas[n].end = line.end;
		describe(&areas[n++], &line);
	}
	return n;
}

static void tell_change(const struct area *is, const struct area *was)
{
	char text[2 * LINE + 8];

	snprintf(text, sizeof(text), "%s, was %s", is->text, was->text);
	say(F_BYSTANDER_MAPS, is->start ? is->start : was->start, 0, 0, text);
}

static void compare_own(void)
{
	static struct area now[MAX_LINES];
	unsigned int i, n;

	memset(now, 0, sizeof(now));
	n = read_own(now);

	for (i = 0; i < n || i < n_own; i++) {
		if (i < n && i < n_own && !strcmp(now[i].text, own[i].text))
			continue;
		tell_change(&now[i], &own[i]);
		memcpy(own, now, sizeof(own));
		n_own = n;
		return;
	}
}

/* ---- the rest of the space ---- */

static uint64_t vdso;

/* The vdso's partition lies anywhere between the others. */
static bool is_reserved(uint64_t addr)
{
	unsigned int index = addr >> shift;

	return index < first || index > last || index == vdso >> shift;
}

static unsigned int all_reserved(struct area *areas)
{
	struct map_line line;
	unsigned int n = 0;
	char *at = buf;

	while (next_map(&at, &line) && n < MAX_LINES)
		if (is_reserved(line.start)) {
			areas[n].start = line.start;
			areas[n++].end = line.end;
		}
	return n;
}

static bool has_task(const struct pvas_query *q, const struct pvas_task *tasks, unsigned int index)
{
	unsigned int i;

	for (i = 0; i < q->count && i < 64; i++)
		if (tasks[i].index == index && tasks[i].state != PVAS_PART_ARMED)
			return true;
	return q->count > 64;
}

struct suspect { uint64_t start; unsigned int seen; };

/* Seen three times with nobody's partition around it each time: nobody's. */
static void suspect(struct suspect *s, const struct map_line *line)
{
	unsigned int i;

	for (i = 0; i < 15 && s[i].start && s[i].start != line->start; i++)
		;
	s[i].start = line->start;
	if (++s[i].seen < 4)
		return;
	say(F_OWNERLESS, line->start, line->end, line->start >> shift, NULL);
}

static void query(struct pvas_query *q, struct pvas_task *tasks)
{
	*q = (struct pvas_query){ .size = sizeof(*q), .count = 64, .tasks = (uintptr_t)tasks };
	if (ioctl(dev, PVAS_IOC_QUERY, q))
		q->count = 1000;
}

static void check_others(void)
{
	static struct pvas_task before[64], after[64];
	static struct suspect suspects[16];
	struct pvas_query q1, q2;
	struct map_line line;
	char *at = buf;
	unsigned int i;

	query(&q1, before);
	read_proc("/proc/self/maps", buf, sizeof(buf));
	query(&q2, after);
	while (next_map(&at, &line)) {
		unsigned int index = line.start >> shift;

		if (line.start >> 47)
			continue;
		if (is_reserved(line.start)) {
			for (i = 0; i < n_reserved && (line.start < reserved[i].start ||
						       line.end > reserved[i].end); i++)
				;
			if (i < n_reserved)
				continue;
			say(F_RESERVED, line.start, line.end, index, NULL);
			continue;
		}
		if ((line.end - 1) >> shift != index) {
			say(F_CROSSES, line.start, line.end, index, NULL);
			continue;
		}
		if (!has_task(&q1, before, index) && !has_task(&q2, after, index))
			suspect(suspects, &line);
	}
}

static void look_around(void)
{
	struct pvas_query q;
	struct pvas_task none;

	dev = open("/dev/pvas", O_RDWR | O_CLOEXEC);
	q = (struct pvas_query){ .size = sizeof(q), .tasks = (uintptr_t)&none };
	if (ioctl(dev, PVAS_IOC_QUERY, &q))
		exit(0);
	shift = q.shift;
	first = q.first;
	last = q.last;
	vdso = getauxval(AT_SYSINFO_EHDR);
	base = (uintptr_t)q.self << shift;
	end = base + (1UL << shift);
}

int bystander(unsigned int of_session)
{
	volatile uint64_t deep[DEEP_WORDS];
	unsigned int i;

	session = of_session;
	fill(deep, DEEP_WORDS);		/* the stack grows now, and not later */
	look_around();
	make_data();
	/* Twice: what reading and comparing themselves map is there then. */
	for (i = 0; i < 2; i++) {
		read_proc("/proc/self/smaps", buf, sizeof(buf));
		n_own = read_own(own);
		read_proc("/proc/self/maps", buf, sizeof(buf));
		n_reserved = all_reserved(reserved);
		usleep(1000);
	}
	say_ready();
	for (i = 0;; i++) {
		check_words(data, WORDS);
		check_words(deep, DEEP_WORDS);
		check_others();
		if (i % 4 == 0) {
			read_proc("/proc/self/smaps", buf, sizeof(buf));
			compare_own();
		}
		usleep(50000);
	}
	return 0;
}
