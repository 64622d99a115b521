// SPDX-License-Identifier: GPL-2.0-only
/*
 * Spaces of the user backend. No list of them exists: each is found by its
 * header, which lies in the memory of the launcher and of all tasks, at a
 * multiple of 256 MiB below 4 GiB (libpvas/user.c: map_header()), nearly always
 * the first. The first kilobytes of /proc/PID/maps tell which processes have a
 * mapping there; the header itself tells the rest, tasks and all.
 *
 * Processes may be in other pid namespaces than we: the header has the pids as
 * the launcher sees them, so processes are matched by the last of their NSpid.
 *
 * Anybody can have such memory, with the id of another's space in it. So a space
 * is there only if the process that its id names, the launcher, has the header,
 * and its tasks are those that share the launcher's memory.
 */
#include "ps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/pvas.h>

#include "../../libpvas/header.h"

#define BASE_STEP	(256UL << 20)
#define BASE_END	(1UL << PVAS_SHIFT_MIN)
#define ID_USER		0x80000000U	/* the user backend's ids have it: new_id() */

/**
 * struct member - a process that has a space's memory
 * @pid:	as we see it
 * @inner:	as it sees itself
 * @id:		the space
 */
struct member {
	pid_t pid;
	pid_t inner;
	uint32_t id;
};

struct members {
	struct member *at;
	uint32_t nr;
};

/* Where a mapping as the header's begins, 0 if there is none. Mappings come in order. */
static uint64_t header_base(pid_t pid)
{
	FILE *f = ps_open_proc(pid, "maps");
	uint64_t lo = 0, found = 0;
	char line[512];

	if (!f)
		return 0;
	while (!found && lo < BASE_END && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-", &lo) == 1 && lo && lo < BASE_END && lo % BASE_STEP == 0 &&
		    strstr(line, " rw-p 00000000 00:00 0"))
			found = lo;
	}
	fclose(f);
	return found;
}

/* Read the space's memory. -errno: EPERM if ptrace(2) would be refused. */
static int read_memory(pid_t pid, uint64_t from, void *to, size_t len)
{
	struct iovec local = { to, len }, remote = { (void *)from, len };
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

/* It is memory of tasks that write where they like: believe nothing unchecked. */
static bool sane(const struct pvas_header *h, uint64_t base)
{
	return h->magic == PVAS_HEADER_MAGIC && h->version == PVAS_HEADER_VERSION &&
	       (h->id & ID_USER) && h->shift >= PVAS_SHIFT_MIN && h->shift <= PVAS_SHIFT_MAX &&
	       h->table == base + PVAS_HEADER_TABLE && h->entries <= PVAS_MAX_TASKS + 2 &&
	       h->first && h->first <= h->last && h->last < h->entries;
}

/* The module's spaces have such a header too. */
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

static void add_task(struct ps_space *space, uint32_t index, const struct pvas_part *part)
{
	static const char *const states[] = {
		[PVAS_PART_ARMED] = "armed", [PVAS_PART_RUNNING] = "running",
		[PVAS_PART_ENDING] = "ending",
	};
	struct ps_task *task;

	if (part->state < PVAS_PART_ARMED || part->state > PVAS_PART_ENDING)
		return;
	space->tasks = ps_grow(space->tasks, space->nr_tasks, sizeof(*space->tasks));
	task = &space->tasks[space->nr_tasks++];
	task->index = index;
	task->pid = part->pid;
	strcpy(task->state, states[part->state]);
	task->start = (uint64_t)index << space->shift;
	task->end = task->start + (1UL << space->shift);
}

static void add_space(struct ps_snapshot *s, pid_t pid, const struct pvas_header *h)
{
	struct pvas_part *parts = calloc(h->entries, sizeof(*parts));
	struct ps_space space = { .id = h->id, .user = true, .launcher = pid, .shift = h->shift,
				  .detail = true };
	uint32_t i;

	if (!parts)
		exit(ps_fail("no memory"));
	if (!read_memory(pid, h->table, parts, h->entries * sizeof(*parts))) {
		space.uid = ps_status_number(pid, "Uid");
		space.rss_kib = ps_status_number(pid, "VmRSS");
		space.tables_kib = ps_status_number(pid, "VmPTE");
		for (i = h->first; i <= h->last; i++)
			add_task(&space, i, &parts[i]);
		s->spaces = ps_grow(s->spaces, s->nr, sizeof(*s->spaces));
		s->spaces[s->nr++] = space;
	}
	free(parts);
}

static void look_at(struct ps_snapshot *s, struct members *m, pid_t pid)
{
	uint64_t base = is_kernel_task(s, pid) ? 0 : header_base(pid);
	struct pvas_header h;
	int err;

	if (!base)
		return;
	err = read_memory(pid, base, &h, sizeof(h));
	if (err == -EPERM)
		s->hidden++;
	if (err || !sane(&h, base))
		return;
	m->at = ps_grow(m->at, m->nr, sizeof(*m->at));
	m->at[m->nr] = (struct member){ pid, ps_status_number(pid, "NSpid"), h.id };
	if (m->at[m->nr++].inner == (pid_t)((h.id & ~ID_USER) >> 9))
		add_space(s, pid, &h);
}

static bool same_pid_namespace(pid_t a, pid_t b)
{
	struct stat sa, sb;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", a);
	if (stat(path, &sa))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", b);
	return !stat(path, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* Do they share their memory? A kernel without kcmp(2) can't say: then it must look so. */
static bool same_memory(pid_t a, pid_t b)
{
	long differ = a == b ? 0 : syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0);

	if (differ >= 0 || errno != ENOSYS)
		return !differ;
	return ps_status_number(a, "Uid") == ps_status_number(b, "Uid") &&
	       same_pid_namespace(a, b);
}

/* Those of this space, and only of this one, to the front. Returns how many. */
static uint32_t members_of(const struct ps_space *space, struct members *m)
{
	uint32_t i, nr = 0;

	for (i = 0; i < m->nr; i++) {
		struct member found = m->at[i];

		if (found.id != space->id || !same_memory(space->launcher, found.pid))
			continue;
		m->at[i] = m->at[nr];
		m->at[nr++] = found;
	}
	return nr;
}

static pid_t outer_pid(const struct member *members, uint32_t nr, pid_t inner)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (members[i].inner == inner)
			return members[i].pid;
	return 0;
}

static void translate_pids(struct ps_space *space, struct members *m)
{
	uint32_t nr = members_of(space, m), i;

	for (i = 0; i < space->nr_tasks; i++)
		space->tasks[i].pid = outer_pid(m->at, nr, space->tasks[i].pid);
}

void ps_user_find(struct ps_snapshot *s)
{
	DIR *dir = opendir("/proc");
	struct members m = { 0 };
	struct dirent *e;
	uint32_t i;

	while (dir && (e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]))
			look_at(s, &m, atoi(e->d_name));
	if (dir)
		closedir(dir);
	for (i = 0; i < s->nr; i++)
		if (s->spaces[i].user)
			translate_pids(&s->spaces[i], &m);
	free(m.at);
}
