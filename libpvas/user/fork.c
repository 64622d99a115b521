// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: fork() in a task copies the task, not its peers.
 *
 * The kernel copies the whole mm, and makes all of it copy-on-write. Before a
 * task's fork a worker therefore marks the other partitions MADV_DONTFORK, and
 * unmarks the task's own. Marks are left in place afterwards: they have no effect
 * until their own task forks, which removes them.
 *
 * Nothing reports when the kernel has made the copy. Until then the forking task's
 * partition must not be marked for another task's fork, and no peer may map: see turns.h. The
 * copy is complete when the thread makes another call, has exited, is stopped, or has used
 * more processor time than the way to the copy takes. Its number can then be
 * another's: of a task's thread that shows by the process; others have a limited time.
 *
 * A task that marks memory itself, or has mappings that the kernel can't unmark, is
 * exempt: its partition is never marked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "rawsys.h"
#include "worker.h"

#define FORK_NS		10000000000LL	/* longer than any fork takes, of those not of a task */
/* Of processor time: then the kernel most likely has mmap_lock; and then it surely has had it. */
#define COPY_BEGINS_NS	5000000LL
#define COPY_BEGUN_NS	100000000LL

/* ---- pending forks: under fork_lock ---- */

static int is_fork(const char *text)
{
	long nr = strtol(text, NULL, 10);

	return *text == 'r' || nr == __NR_clone || pvas_is_fork(nr) || nr == __NR_clone3;
}

/* Stopped by a signal or a tracer, it has yet to make the call again, or has made the copy. */
static int is_stopped(pid_t tid)
{
	char text[512];
	const char *state;

	user_proc_read(tid, "status", text, sizeof(text));
	state = strstr(text, "\nState:\t");
	return state && (state[8] == 'T' || state[8] == 't');
}

/* Processor time in ns, or -1 */
static int64_t time_of(pid_t tid)
{
	char text[64];

	return user_proc_read(tid, "schedstat", text, sizeof(text)) > 0 ?
		       (int64_t)strtoull(text, NULL, 10) : -1;
}

/* Of a thread that runs, or would if it had a processor. Returns whether it surely has. */
static int has_copied_running(struct user_fork *f)
{
	int64_t time = f->time < 0 ? -1 : time_of(f->tid);

	if (time < 0) {
		f->early = now_ns() - f->since < LONGEST_TURN_NS;
		return 0;
	}
	f->early = time - f->time < COPY_BEGINS_NS && now_ns() - f->since < LONGEST_STARVED_NS;
	return time - f->time >= COPY_BEGUN_NS;
}

/* Of one that is blocked in the call, for its worker, memory, mmap_lock or its child */
static int has_copied_blocked(struct user_fork *f)
{
	f->early = !f->answered || now_ns() - f->since < LONGEST_TURN_NS;
	return f->waits && !f->early;
}

/* Is it blocked in another call, or gone? A thread that runs may still be in the fork, at first. */
static int has_forked(const struct user_space *u, const struct user_part *p, struct user_fork *f)
{
	char text[32];
	ssize_t n;

	if (f->process ? !user_is_thread_of(f->process, f->tid) :
			 f->answered && now_ns() >= f->until)
		return 1;
	if (user_caller_left(f->tid, f->tid))
		return 1;
	n = user_ask(u, p, f->tid, "syscall", text, sizeof(text));
	if (n == -ENOENT || n == -ESRCH || n == -ETIME || (n > 0 && !is_fork(text)))
		return 1;
	if (is_stopped(f->tid))
		return 1;
	return *text == 'r' ? has_copied_running(f) : has_copied_blocked(f);
}

/* From here on the time counts: the launcher may have been stopped before. */
static void begin_to_count(struct user_fork *f)
{
	f->answered = 1;
	f->since = now_ns();
	f->until = f->since + FORK_NS;
}

static void answered_in(struct user_part *p, uint64_t id)
{
	unsigned int i;

	for (i = 0; i < p->nr_forks; i++)
		if (p->forks[i].id == id && !p->forks[i].answered)
			begin_to_count(&p->forks[i]);
}

void user_fork_answered(const struct user_request *r)
{
	struct user_space *u = r->u;
	uint32_t i;

	pthread_mutex_lock(&u->fork_lock);
	for (i = u->space->first; i <= u->space->last; i++)
		answered_in(&u->parts[i], r->id);
	pthread_mutex_unlock(&u->fork_lock);
}

static void set_number(struct user_space *u, struct user_part *p, unsigned int n)
{
	__atomic_add_fetch(&u->turns.forking, n - p->nr_forks, __ATOMIC_SEQ_CST);
	__atomic_store_n(&p->nr_forks, n, __ATOMIC_RELAXED);
}

unsigned int user_fork_count(struct user_space *u, struct user_part *p)
{
	unsigned int i, n = 0;

	for (i = 0; i < p->nr_forks; i++)
		if (!has_forked(u, p, &p->forks[i]))
			p->forks[n++] = p->forks[i];
	set_number(u, p, n);
	return n;
}

static void forget(struct user_space *u, struct user_part *p, pid_t tid)
{
	unsigned int i, n = 0;

	for (i = 0; i < p->nr_forks; i++)
		if (p->forks[i].tid != tid)
			p->forks[n++] = p->forks[i];
	set_number(u, p, n);
}

void user_fork_returned(struct user_space *u, struct user_part *p, pid_t tid)
{
	pthread_mutex_lock(&u->fork_lock);
	forget(u, p, tid);
	pthread_mutex_unlock(&u->fork_lock);
}

/* The task has ended. Its threads' numbers can become those of any process. */
void user_fork_forget(struct user_space *u, struct user_part *p)
{
	pthread_mutex_lock(&u->fork_lock);
	set_number(u, p, 0);
	pthread_mutex_unlock(&u->fork_lock);
	user_load_end(p);
}

/* ---- marks: under fork_lock ---- */

/* The kernel stops at a mapping that can't be unmarked: then unmark one by one. */
static void unmark_each(const struct user_part *p)
{
	FILE *maps = user_maps_open();
	struct user_mapping m;

	while (maps && user_maps_next(maps, &m))
		if (m.start >= p->base && m.end <= p->end &&
		    (m.start >= p->far_end || m.end <= p->far_start))
			pvas_raw3(__NR_madvise, m.start, m.end - m.start, MADV_DOFORK);
	if (maps)
		fclose(maps);
}

/* ENOMEM reports holes: all mappings have been unmarked. */
static int unmark_range(uint64_t from, uint64_t to)
{
	return pvas_raw3(__NR_madvise, from, to - from, MADV_DOFORK) == -EINVAL;
}

/* Far memory stays marked: a child has no pager, and would find zeros. */
static void unmark(struct user_part *p)
{
	int failed = 0;

	if (p->marked && p->far_end)
		failed = unmark_range(p->base, p->far_start) | unmark_range(p->far_end, p->end);
	else if (p->marked)
		failed = unmark_range(p->base, p->end);
	if (failed)
		unmark_each(p);
	p->marked = 0;
}

static void mark(const struct user_space *u, uint64_t from, uint64_t to)
{
	unsigned int shift = u->space->shift;

	if (from < to)
		pvas_raw3(__NR_madvise, from << shift, (to - from) << shift, MADV_DONTFORK);
}

static void mark_others(struct user_space *u)
{
	uint32_t i, from = u->space->first;

	for (i = from; i <= u->space->last; i++) {
		struct user_part *p = &u->parts[i];

		/* Of the launcher's own, if anything is there. */
		if (p->state == PVAS_PART_FREE || p->state == PVAS_PART_RESERVED ||
		    p->exempt || (p->nr_forks && user_fork_count(u, p))) {
			mark(u, from, i);
			from = i + 1;
		} else {
			p->marked = 1;
		}
	}
	mark(u, from, (uint64_t)u->space->last + 1);
}

static void exempt(struct user_part *p)
{
	unmark(p);
	p->exempt = 1;
}

/*
 * Of more threads at once the one that has begun first is forgotten: as long as others are about to
 * fork, the partition is not marked, and most likely the kernel has made that copy.
 */
static void make_room(struct user_space *u, struct user_part *p)
{
	if (p->nr_forks == FORKS_MAX && user_fork_count(u, p) == FORKS_MAX)
		forget(u, p, p->forks[0].tid);
}

/* Unmark its memory for the fork that @tid is about to make. @task: of its own, or NULL. */
static void expect_fork(const struct user_request *r, struct user_part *p,
			const struct user_part *task, int waits)
{
	struct user_space *u = r->u;
	const pid_t tid = r->tid;

	unmark(p);
	forget(u, p, tid);
	make_room(u, p);
	p->forks[p->nr_forks] = (struct user_fork){
		.tid = tid, .process = task ? task->pid : 0, .id = r->id, .since = now_ns(),
		.time = time_of(tid), .waits = waits, .early = 1,
	};
	set_number(u, p, p->nr_forks + 1);
}

/* The caller can run code of a peer, @p. */
int user_fork_prepare(const struct user_request *r, int waits)
{
	struct user_space *u = r->u;
	struct user_part *p = r->part;
	struct user_part *own = user_is_thread_of(p->pid, r->tid) ?
					p : user_part_of_process(u, r->tid);
	int err;

	pthread_mutex_lock(&u->fork_lock);
	err = user_turn_begin(u, p, r);
	if (!err) {
		expect_fork(r, p, own, waits);
		if (own && own != p)
			expect_fork(r, own, own, waits);
		mark_others(u);
	}
	user_turn_end(u);
	pthread_mutex_unlock(&u->fork_lock);
	return err;
}

void user_fork_mark_all(struct user_space *u)
{
	pthread_mutex_lock(&u->fork_lock);
	mark_others(u);
	pthread_mutex_unlock(&u->fork_lock);
}

void user_fork_of_launcher(struct user_space *u)
{
	pthread_mutex_lock(&u->fork_lock);
	user_turn_begin(u, NULL, NULL);
	u->turns.launcher_since = now_ns();
	mark_others(u);
	pthread_mutex_unlock(&u->fork_lock);
}

void user_fork_child_of_launcher(const struct user_space *u)
{
	uint32_t i;

	for (i = u->space->first; i <= u->space->last; i++) {
		const struct user_part *p = &u->parts[i];

		if (p->state != PVAS_PART_FREE && p->state != PVAS_PART_RESERVED)
			pvas_raw2(__NR_munmap, p->base, p->end - p->base);
	}
}

void user_fork_of_launcher_made(struct user_space *u)
{
	pthread_mutex_lock(&u->fork_lock);
	u->turns.launcher_since = 0;
	user_turn_end(u);
	pthread_mutex_unlock(&u->fork_lock);
}

void user_fork_exempt(struct user_space *u, struct user_part *p)
{
	if (__atomic_load_n(&p->exempt, __ATOMIC_ACQUIRE))
		return;
	user_reader_before_exempt(u);
	pthread_mutex_lock(&u->fork_lock);
	exempt(p);
	pthread_mutex_unlock(&u->fork_lock);
}

/*
 * The kernel marks mappings of devices and of huge pages, but refuses to unmark them. Those files
 * have no blocks.
 */
void user_fork_check_file(struct user_space *u, struct user_part *p, const struct user_look *look)
{
	const struct statx *st = &look->st;

	if (p->exempt)
		return;
	if (S_ISREG(st->stx_mode) && st->stx_blksize < (2 << 20) && st->stx_blocks)
		return;
	if (!S_ISREG(st->stx_mode) || look->kind == USER_MOUNT_UNKNOWN ||
	    look->kind == USER_MOUNT_SPECIAL)
		user_fork_exempt(u, p);
}

/* It may have huge pages, which IPC_STAT doesn't tell. Returns -errno if there is no segment. */
int user_fork_check_segment(struct user_space *u, struct user_part *p, int id, uint64_t at)
{
	struct shmid_ds ds;
	long err = pvas_raw3(__NR_shmctl, id, IPC_STAT, &ds);

	if (err)
		return (int)err;
	if (!(ds.shm_segsz & (HUGE_2M - 1)) || (at && !(at & (HUGE_2M - 1))))
		user_fork_exempt(u, p);
	return 0;
}

void user_fork_begin(struct user_space *u, struct user_part *p)
{
	pthread_mutex_lock(&u->fork_lock);
	p->marked = 1;
	p->exempt = 0;
	p->apart = 0;
	pthread_mutex_unlock(&u->fork_lock);
}
