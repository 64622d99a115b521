// SPDX-License-Identifier: GPL-2.0-only
/*
 * Spaces of the user backend. There is no list of them. Each has a header in the memory
 * of its launcher and tasks, at a multiple of 256 MiB below 4 GiB (see
 * libpvas/header_map.c). So the beginning of /proc/PID/maps shows which processes may have
 * one, and the header contains the table of tasks.
 *
 * Processes may be in other pid namespaces than pvasps. The header has pids of the
 * launcher's namespace, so they are compared with the last number of NSpid.
 *
 * Any process can forge a header with the id of another space. So a space is only
 * believed if the process that its id names, the launcher, has the header, and a task
 * only if it shares the launcher's memory. Only anonymous memory is read, which must
 * include the table, for a read of a mapped file may block. The mapping can be replaced
 * before it is read; reader.c limits the time that this costs.
 */
#include "ps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/**
 * struct member - a process with a header in its memory
 * @ns:		its pid namespace
 * @id:		the space
 * @inner:	its pid in that namespace
 * @pid:	its pid in ours
 * @uid:	its owner
 * @taken:	it is the task of a partition
 */
struct member {
	int64_t ns;
	uint32_t id;
	pid_t inner;
	pid_t pid;
	uid_t uid;
	bool taken;
};

/* A member whose pid is part of the space's id, with its header */
struct launcher {
	struct member m;
	struct pvas_header header;
};

/* Those of a program lie before the header: a user can make thousands of others. */
#define MAX_LINES 500

struct found {
	struct member *members;
	uint32_t nr;
	struct launcher *launchers;
	uint32_t nr_launchers;
};

/*
 * Find memory that may contain the header: private, anonymous, without a name. File names
 * may look like any field, so all fields are parsed by position. Mappings are sorted.
 */
static bool find_memory(pid_t pid, uint64_t *base, uint64_t *end)
{
	FILE *f = ps_reader_open(pid, "maps");
	unsigned long lo = 0, hi, offset, inode;
	unsigned int major, minor;
	bool found = false;
	char line[160], mode[8];
	int at, lines = 0;

	if (!f)
		return false;
	while (!found && lines++ < MAX_LINES && lo < PVAS_HEADER_LIMIT &&
	       ps_next_line(f, line, sizeof(line))) {
		at = 0;
		if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu%n", &lo, &hi, mode, &offset, &major,
			   &minor, &inode, &at) < 7)
			continue;
		found = lo && lo < PVAS_HEADER_LIMIT && lo % PVAS_HEADER_STEP == 0 &&
			!strcmp(mode, "rw-p") && !offset && !major && !minor && !inode &&
			!line[at + strspn(line + at, " \n")];
		*base = lo;
		*end = hi;
	}
	fclose(f);
	return found;
}

/* Tasks can write to the header: check all values. */
static bool is_sane(const struct pvas_header *h, uint64_t base, uint64_t end)
{
	return h->magic == PVAS_HEADER_MAGIC && h->version == PVAS_HEADER_VERSION &&
	       (h->id & PVAS_ID_USER) && h->shift >= PVAS_SHIFT_MIN && h->shift <= PVAS_SHIFT_MAX &&
	       h->table == base + PVAS_HEADER_TABLE && h->entries <= PVAS_MAX_TASKS + 2 &&
	       h->first && h->first <= h->last && h->last < h->entries &&
	       h->entries * sizeof(struct pvas_part) <= end - h->table;
}

/* Spaces of the module have such a header, too. */
static bool is_kernel_task(const struct ps_snapshot *s, pid_t pid)
{
	uint32_t i, j;

	for (i = 0; i < s->nr; i++)
		for (j = 0; !s->spaces[i].user && s->spaces[i].detail &&
		     j < s->spaces[i].nr_tasks; j++)
			if (s->spaces[i].tasks[j].pid == pid)
				return true;
	return false;
}

static void add_member(struct found *f, const struct member *m, const struct pvas_header *h)
{
	f->members = ps_grow(f->members, f->nr, sizeof(*f->members));
	f->members[f->nr++] = *m;
	if (m->inner != (pid_t)((m->id & ~PVAS_ID_USER) >> 9))
		return;
	f->launchers = ps_grow(f->launchers, f->nr_launchers, sizeof(*f->launchers));
	f->launchers[f->nr_launchers++] = (struct launcher){ *m, *h };
}

static void check_process(struct ps_snapshot *s, struct found *f, pid_t pid)
{
	struct member m = { .pid = pid, .uid = ps_owner(pid) };
	struct pvas_header h;
	uint64_t base = 0, end = 0;
	int err = -ENOENT;

	if (m.uid == (uid_t)-1 || is_kernel_task(s, pid))
		return;
	if (ps_reader_turn(m.uid, PS_FINDING) && find_memory(pid, &base, &end))
		err = ps_read_memory(pid, base, &h, sizeof(h));
	if (!err && is_sane(&h, base, end)) {
		m.ns = ps_pid_namespace(pid);
		err = m.ns < 0 ? m.ns : 0;
	}
	if (ps_reader_late())
		s->slow++;
	if (err == -EPERM)
		s->hidden++;
	if (err || !is_sane(&h, base, end))
		return;
	m.id = h.id;
	m.inner = ps_status_number(pid, "NSpid");
	add_member(f, &m, &h);
}

static int compare(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->inner < y->inner ? -1 : x->inner > y->inner;
}

/* By kcmp(2); a kernel without it leaves only a comparison of the owners. */
static bool same_memory(const struct member *launcher, const struct member *m)
{
	int differ;

	if (!ps_reader_turn(m->uid, PS_FINDING))
		return false;
	differ = ps_compare_memory(launcher->pid, m->pid);
	return differ == -ENOSYS ? launcher->uid == m->uid : !differ;
}

/*
 * The process of a partition: a member that is not the launcher and has no other
 * partition. Namespace, id and inner pid identify it.
 */
static pid_t take_process(struct found *f, const struct member *launcher, pid_t inner)
{
	struct member key = { .ns = launcher->ns, .id = launcher->id, .inner = inner }, *m;

	if (inner <= 0 || inner == launcher->inner)
		return 0;
	m = bsearch(&key, f->members, f->nr, sizeof(key), compare);
	if (!m || m->taken || !same_memory(launcher, m))
		return 0;
	m->taken = true;
	return m->pid;
}

static void add_task(struct ps_space *space, uint32_t index, const struct pvas_part *part)
{
	static const char *const states[] = {
		[PVAS_PART_ARMED] = "armed", [PVAS_PART_RUNNING] = "running",
		[PVAS_PART_ENDING] = "ending",
	};
	struct ps_task *task;

	space->tasks = ps_grow(space->tasks, space->nr_tasks, sizeof(*space->tasks));
	task = &space->tasks[space->nr_tasks++];
	task->index = index;
	task->pid = part->pid;
	strcpy(task->state, states[part->state]);
	task->far_kib = part->reserved[PVAS_PART_FAR];
	task->local_kib = part->reserved[PVAS_PART_FAR_LOCAL];
	task->start = (uint64_t)index << space->shift;
	task->end = task->start + (1UL << space->shift);
}

/*
 * A partition that is being freed has no process any more. At most as many of them are
 * shown as there are processes in the space, so that a forged table can't make the
 * output longer than the number of the user's processes allows.
 */
static void add_tasks(struct ps_space *space, struct found *f, const struct launcher *l,
		      struct pvas_part *parts)
{
	uint32_t i, ending = 1;

	for (i = l->header.first; i <= l->header.last; i++) {
		if (parts[i].state < PVAS_PART_ARMED || parts[i].state > PVAS_PART_ENDING)
			parts[i].pid = 0;
		parts[i].pid = take_process(f, &l->m, parts[i].pid);
		ending += parts[i].pid != 0;
	}
	for (i = l->header.first; i <= l->header.last; i++) {
		if (parts[i].pid)
			add_task(space, i, &parts[i]);
		else if (parts[i].state == PVAS_PART_ENDING && ending && ending--)
			add_task(space, i, &parts[i]);
	}
}

static void add_space(struct ps_snapshot *s, struct found *f, const struct launcher *l)
{
	const struct pvas_header *h = &l->header;
	struct pvas_part *parts = calloc(h->entries, sizeof(*parts));
	struct ps_space space = { .id = h->id, .user = true, .launcher = l->m.pid,
				  .uid = l->m.uid, .shift = h->shift, .detail = true };

	if (!parts)
		exit(ps_fail("no memory"));
	if (!ps_reader_turn(l->m.uid, PS_FINDING) ||
	    ps_read_memory(l->m.pid, h->table, parts, h->entries * sizeof(*parts)) ||
	    ps_read_memory(l->m.pid, h->table - PVAS_HEADER_TABLE + PVAS_HEADER_FAR, &space.far,
			   sizeof(space.far))) {
		s->slow += ps_reader_late();
	} else {
		space.rss_kib = ps_status_number(l->m.pid, "VmRSS");
		space.tables_kib = ps_status_number(l->m.pid, "VmPTE");
		add_tasks(&space, f, l, parts);
		s->spaces = ps_grow(s->spaces, s->nr, sizeof(*s->spaces));
		s->spaces[s->nr++] = space;
	}
	free(parts);
}

void ps_user_find(struct ps_snapshot *s)
{
	DIR *dir = opendir("/proc");
	struct found f = { 0 };
	struct dirent *e;
	uint32_t i;

	while (dir && (e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]))
			check_process(s, &f, atoi(e->d_name));
	if (dir)
		closedir(dir);
	if (f.nr)
		qsort(f.members, f.nr, sizeof(*f.members), compare);
	for (i = 0; i < f.nr_launchers; i++)
		add_space(s, &f, &f.launchers[i]);
	free(f.members);
	free(f.launchers);
}
