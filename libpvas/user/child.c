// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the new process, from clone() to the loader.
 *
 * It starts in the launcher's memory, on a stack of the handle and with the thread
 * pointer of the thread that called pvas_task_spawn(), which sleeps: like a vfork
 * child, and under the same rules. There is no execve() to separate it from the
 * launcher, so it performs the steps of one: close descriptors that are
 * close-on-exec, set its name, reset registers. All that can fail comes before.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"
#include "rawsys.h"
#include "stay.h"
#include "worker.h"

#define AFFINITY_BYTES	1024	/* 8192 processors */
#define NUMBERS_MAX	(1 << 20)	/* of descriptors: fs.nr_open, if nobody has raised it */
#define NUMBERS_MISSED	16	/* a list takes as long as trying some more */
#define NAME_LEN	16	/* TASK_COMM_LEN */

/* ---- as fork would have given it ---- */

/* The parent is the supervisor, so attributes of a thread are not inherited from the caller. */
static void take_affinity(pid_t caller)
{
	unsigned long mask[AFFINITY_BYTES / sizeof(unsigned long)];
	long len = pvas_raw3(__NR_sched_getaffinity, caller, sizeof(mask), mask);

	if (len > 0)
		pvas_raw3(__NR_sched_setaffinity, 0, len, mask);
}

/* Die with the launcher, which may be dead already. */
static int bind_to_launcher(const struct user_space *u)
{
	pvas_raw2(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL);
	return pvas_raw0(__NR_getppid) == u->owner ? 0 : -ESRCH;
}

/*
 * This needs the right to read it by ptrace(2), which is what a Landlock domain of one's own
 * takes away. No other call with that condition is allowed in all containers.
 */
static int sees_launcher(const struct user_space *u)
{
	void *head;
	size_t len;

	return !pvas_raw3(__NR_get_robust_list, u->supervisor_tid, &head, &len);
}

static int is_promised(const struct user_start *s)
{
	return (s->call->attr.flags & PVAS_SPAWN_SAME_RIGHTS) != 0;
}

/*
 * The setup function may have changed rights, so the launcher compares them before the program
 * is opened. It may also have ended the request for a signal, as the kernel does when ids change.
 */
static int confirm_rights(const struct user_start *s, int saw_launcher)
{
	struct user_clone_request *c = &s->u->clone_request;
	int *start = &s->part->start;
	int err;

	err = bind_to_launcher(s->u);
	if (err)
		return err;
	pvas_raw2(__NR_prctl, PR_SET_KEEPCAPS, 0);
	if (is_promised(s))
		return 0;
	c->securebits = pvas_raw1(__NR_prctl, PR_GET_SECUREBITS);
	c->shut_out = saw_launcher && !sees_launcher(s->u);
	__atomic_store_n(start, START_CHECK, __ATOMIC_RELEASE);
	pvas_raw3(__NR_futex, start, FUTEX_WAKE, 1);
	while (__atomic_load_n(start, __ATOMIC_ACQUIRE) == START_CHECK)
		pvas_raw4(__NR_futex, start, FUTEX_WAIT, START_CHECK, NULL);
	return *start == START_GO ? 0 : s->call->err;
}

/* ---- as execve would have left it ---- */

/**
 * struct run - numbers to be closed by one call: a task's launcher has some for each of its peers
 * @keep:	not this one
 * @from:	the first
 * @to:		the last; below @from: there are none
 */
struct run {
	int keep;
	int from;
	int to;
};

static void close_run(struct run *run)
{
	int fd;

	/* Sandboxes may not know it. */
	if (run->to >= run->from && pvas_raw3(__NR_close_range, run->from, run->to, 0))
		for (fd = run->from; fd <= run->to; fd++)
			pvas_raw1(__NR_close, fd);
	run->to = run->from - 1;
}

static void add_to_run(struct run *run, int fd)
{
	if (run->to < run->from || fd != run->to + 1) {
		close_run(run);
		run->from = fd;
	}
	run->to = fd;
}

/* If it is close-on-exec, it is closed with the run. Returns whether it is open. */
static int close_one(int fd, struct run *run)
{
	long flags = pvas_raw2(__NR_fcntl, fd, F_GETFD);

	if (flags > 0 && (flags & FD_CLOEXEC) && fd != run->keep)
		add_to_run(run, fd);
	return flags >= 0;
}

static void close_by_number(int keep, uint64_t end)
{
	struct run run = { .keep = keep, .to = -1 };
	int fd;

	for (fd = 0; fd < NUMBERS_MAX && (uint64_t)fd < end; fd++)
		close_one(fd, &run);
	close_run(&run);
}

/*
 * As many as @open, unless there are wide gaps between them, and behind a gap not those that the
 * process before had. Returns the number to continue from; -1: that were all.
 */
static int close_lowest(const int *high, int keep, int64_t open)
{
	struct run run = { .keep = keep, .to = -1 };
	int fd, missed = 0;
	unsigned int i;

	for (fd = 0; open > 0 && missed < NUMBERS_MISSED; fd++) {
		missed = close_one(fd, &run) ? 0 : missed + 1;
		open -= !missed;
		/* Those that are not open, as the peers' pidfds no longer are, need no break. */
		if (missed && run.to >= run.from && run.to == fd - 1)
			run.to = fd;
	}
	for (i = 0; open > 0 && i < USER_HIGH; i++)
		if (high[i] >= fd)
			open -= close_one(high[i], &run);
	close_run(&run);
	return open > 0 ? fd : -1;
}

/* How many descriptors the process has; 0: not known, as before Linux 6.2 */
static int64_t count_open(void)
{
	struct user_proc_dir proc = user_program_proc(1);
	struct stat st = { .st_size = 0 };

	if (proc.fd < 0)
		return 0;
	if (pvas_raw4(__NR_newfstatat, proc.fd, "self/fd", &st, 0))
		st.st_size = 0;
	/* One that was opened is counted, and closed. */
	user_program_close_proc(&proc);
	return st.st_size ? st.st_size - proc.opened : 0;
}

int user_child_open_list(int starts)
{
	struct user_proc_dir proc = user_program_proc(starts);
	int list;

	if (proc.fd < 0)
		return proc.fd;
	list = (int)pvas_raw4(__NR_openat, proc.fd, "thread-self/fd", O_RDONLY | O_DIRECTORY, 0);
	user_program_close_proc(&proc);
	return list;
}

/*
 * Listing the open descriptors needs a descriptor below the limit, which the caller's
 * setup function may have lowered: then first close those below it by number. Without
 * /proc all possible numbers are tried, since descriptors can be above the limit.
 */
static int make_list(int keep, int starts)
{
	struct rlimit limit = { 1024, 1024 };
	int dir = user_child_open_list(starts);

	if (dir < 0) {
		pvas_raw4(__NR_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
		close_by_number(keep, limit.rlim_cur);
		dir = user_child_open_list(starts);
	}
	if (dir < 0)
		close_by_number(keep, NUMBERS_MAX);
	return dir;
}

int user_child_number_of(const char *name)
{
	int n = 0;

	for (; *name >= '0' && *name <= '9'; name++)
		n = n * 10 + *name - '0';
	return n;
}

/*
 * Close the inherited pidfds of the peers, of which there are as many as tasks: in
 * ranges, and before anything else can have their numbers.
 */
static void close_pidfds(const struct user_space *u, const struct user_part *self)
{
	int fd, from = -1;

	for (fd = 0; fd <= PIDFDS_NOTED; fd++) {
		int is_peer = fd < PIDFDS_NOTED && fd != self->pidfd &&
			   (u->pidfds[fd / 64] >> (fd % 64) & 1);

		if (is_peer && from < 0)
			from = fd;
		if (is_peer || from < 0)
			continue;
		pvas_raw3(__NR_close_range, from, fd - 1, 0);
		from = -1;
	}
}

/*
 * All from the number @from on: that is a position in the list, behind two that are none. Some of
 * those that were open go to @high, which may be NULL.
 */
static void close_listed(int dir, int *high, int keep, int from)
{
	char buf[4096] __attribute__((aligned(8)));
	struct run run = { .keep = keep, .to = -1 };
	unsigned int found = 0;
	long n, at;

	if (from)
		pvas_raw3(__NR_lseek, dir, from + 2, SEEK_SET);
	while ((n = pvas_raw3(__NR_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (at = 0; at < n; at += ((struct dirent64 *)(buf + at))->len) {
			const char *name = ((struct dirent64 *)(buf + at))->name;
			int fd = user_child_number_of(name);

			if (*name != '.' && close_one(fd, &run) && high && found < USER_HIGH)
				high[found++] = fd;
		}
	}
	close_run(&run);
	/* No number may be there twice: each is counted. */
	for (; high && found < USER_HIGH; found++)
		high[found] = -1;
	pvas_raw1(__NR_close, dir);
}

/* Most processes have few descriptors, with the lowest numbers: a list takes long to make. */
void user_child_close_on_exec(int keep, int *high)
{
	int from = 0, dir;

	if (high)
		from = close_lowest(high, keep, count_open() ?: NUMBERS_MAX);
	if (from < 0)
		return;
	dir = make_list(keep, !!high);
	if (dir >= 0)
		close_listed(dir, high, keep, from);
}

/* Returns whether all but those that the caller has named are closed: sandboxes may forbid it. */
static int close_all_but(const struct pvas_spawn_attr *attr, int program)
{
	struct run run = { .keep = program, .to = -1 };
	unsigned int from = STDERR_FILENO + 1, next;
	size_t i = 0;
	int fd;

	while (from != ~0U) {
		while (i < attr->nr_keep && (unsigned int)attr->keep[i] < from)
			i++;
		next = i < attr->nr_keep ? (unsigned int)attr->keep[i] : ~0U;
		if ((unsigned int)program >= from && (unsigned int)program < next)
			next = (unsigned int)program;
		if (next > from &&
		    pvas_raw3(__NR_close_range, from, next == ~0U ? next : next - 1, 0))
			return 0;
		from = next == ~0U ? next : next + 1;
	}
	for (fd = 0; fd <= STDERR_FILENO; fd++)
		close_one(fd, &run);
	for (i = 0; i < attr->nr_keep; i++)
		close_one(attr->keep[i], &run);
	close_run(&run);
	return 1;
}

static void close_files(const struct user_start *s, int program)
{
	const struct pvas_spawn_attr *attr = &s->call->attr;

	if (!(attr->flags & PVAS_SPAWN_KEEP) || !close_all_but(attr, program))
		user_child_close_on_exec(program, s->u->high);
}

void user_child_take_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	char name[NAME_LEN] = "";

	strncpy(name, slash ? slash + 1 : path, sizeof(name) - 1);
	pvas_raw2(__NR_prctl, PR_SET_NAME, name);
}

/* ---- memory ---- */

/* Fill the partition's page, which has what the kernel would know, and map the loader. */
static int make_top(const struct user_space *u, struct user_part *p,
		    const struct user_program *prog)
{
	p->page->brk = p->brk;
	p->page->heap_end = p->heap_end;
	p->page->loader = user_loader_of(p);
	p->page->cookie = u->cookie;
	strcpy(p->page->exe, prog->exe);
	return user_image_map(u, user_loader_of(p), !prog->asks);
}

/* By the same rule as the kernel's for an execve() */
static int may_randomize(const struct user_space *u)
{
	long persona = pvas_raw1(__NR_personality, ~0U);

	return !u->fixed && !(persona >= 0 && (persona & ADDR_NO_RANDOMIZE));
}

int user_child_make_memory(const struct user_start *s, const struct user_program *prog,
			   struct user_entry *entry)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	int err;

	pvas_raw4(__NR_prlimit64, 0, RLIMIT_STACK, NULL, &limit);
	err = user_layout(s->part, &prog->image, limit.rlim_cur, may_randomize(s->u));
	if (!err)
		err = make_top(s->u, s->part, prog);
	if (!err)
		err = user_stack_make(s, prog, &entry->sp, &entry->info);
	if (err)
		return err;
	user_stay_catch(s->part);
	entry->loader = user_loader_of(s->part) + PVAS_BLOB_TASK;
	entry->loading = &s->part->loading;
	entry->interp = user_place_interp(s->part, &prog->interp);
	return 0;
}

/* ---- start ---- */

/* All handlers are default. */
void user_child_jump(const struct user_entry *entry, int *start, uint64_t mask)
{
	const struct pvas_beginning b = {
		.entry = entry->loader, .sp = entry->sp, .info = entry->info,
		.mark = (uint64_t)entry->loading, .interp = entry->interp, .mask = mask,
	};

	pvas_begin(&b, start, START_DONE);
}

/*
 * The launcher's descriptors are still here, and the task's limit can be lower: the kernel opens
 * a program without a number. Returns the limit as it was.
 */
static struct rlimit lift_files(void)
{
	struct rlimit own = { 0, 0 }, all;

	pvas_raw4(__NR_prlimit64, 0, RLIMIT_NOFILE, NULL, &own);
	all = (struct rlimit){ own.rlim_max, own.rlim_max };
	if (own.rlim_cur < own.rlim_max)
		pvas_raw4(__NR_prlimit64, 0, RLIMIT_NOFILE, &all, NULL);
	return own;
}

static int become_task(const struct user_start *s, struct user_program *prog)
{
	const struct rlimit own = lift_files();
	struct user_entry entry;
	int err;

	err = user_program_open(prog, s->call->path);
	if (!err)
		err = user_child_make_memory(s, prog, &entry);
	if (err)
		return err;
	close_files(s, prog->fd);
	if (own.rlim_cur < own.rlim_max)
		pvas_raw4(__NR_prlimit64, 0, RLIMIT_NOFILE, &own, NULL);
	user_child_take_name(s->call->path);
	s->part->pid = (pid_t)pvas_raw0(__NR_getpid);
	user_publish(s->u, s->part, PVAS_PART_RUNNING);
	s->call->err = 0;
	user_child_jump(&entry, &s->part->start, 0);
}

int user_child_main(void *arg)
{
	const struct user_start s = *(const struct user_start *)arg;
	struct user_program prog;
	int err, saw = !is_promised(&s) && sees_launcher(s.u);

	err = bind_to_launcher(s.u);
	if (!err) {
		take_affinity(s.caller);
		pvas_raw1(__NR_personality, s.persona & ~(unsigned long)READ_IMPLIES_EXEC);
		close_pidfds(s.u, s.part);
		err = pvas_child_prepare(s.call);
	}
	if (!err)
		err = confirm_rights(&s, saw);
	if (!err)
		err = become_task(&s, &prog);
	s.call->err = err;
	for (;;)
		pvas_raw1(__NR_exit_group, 127);
}
