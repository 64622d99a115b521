// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the keeper, a thread of the launcher.
 *
 * It alone is under the filter (and has no_new_privs), so what it clones is,
 * and nothing else of the launcher. It lives as long as the space: its tasks
 * ask for SIGKILL when their parent *thread* ends, so that they die with the
 * launcher, and with nothing less. It also waits for their ends, and
 * gives back their memory (reclaim.c).
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rawsys.h"
#include "user.h"

#define EVENTS		32
#define WAKE_ID		UINT32_MAX	/* an index that no partition has */
#define EXEC_LOOKS	60	/* often at first, then less so: it is a large program, or none */
#define EXEC_RARE	20
#define EXEC_LOOK_MS	5
#define EXEC_RARE_MS	500
#define EXEC_LAST_MS	5000	/* for as long as the task lives */
#define STOP_LOOK_MS	20

/* ---- the table tasks see ---- */

/* As the module does: @state last on entry and first on leaving. */
void user_publish(struct user_space *u, struct user_part *p, uint32_t state)
{
	struct pvas_part *entry = pvas_header_part(u->header, (uint32_t)(p - u->parts));

	if (state != PVAS_PART_RUNNING)
		__atomic_store_n(&entry->state, state, __ATOMIC_SEQ_CST);
	__atomic_store_n(&entry->gen, p->gen, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->pid, state == PVAS_PART_RUNNING ? p->pid : 0, __ATOMIC_RELAXED);
	if (state == PVAS_PART_RUNNING)
		__atomic_store_n(&entry->state, state, __ATOMIC_RELEASE);
}

/* ---- the end of a task ---- */

int user_pidfd_dead(int pidfd)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}

/*
 * By an exec, whichever thread has called it, the first thread has another mm.
 * It has none when it has ended before the others.
 */
static int has_left(const struct user_part *p)
{
	return !user_caller_inside(p->pid) && user_caller_has_memory(p->pid);
}

int user_part_ending(const struct user_part *p)
{
	return (p->state == PVAS_PART_ENDING && p->stuck < USER_STUCK_LOOKS) ||
	       (p->state == PVAS_PART_RUNNING &&
		(user_pidfd_dead(p->pidfd) ||
		 (__atomic_load_n(&p->exec_tid, __ATOMIC_ACQUIRE) && has_left(p))));
}

/* Numbers beyond are closed as any other. */
void user_pidfd_note(struct user_space *u, int fd, int there)
{
	const uint64_t bit = 1ULL << (fd % 64);

	if (fd >= PIDFDS_NOTED)
		return;
	if (there)
		__atomic_or_fetch(&u->pidfds[fd / 64], bit, __ATOMIC_RELAXED);
	else
		__atomic_and_fetch(&u->pidfds[fd / 64], ~bit, __ATOMIC_RELAXED);
}

void user_forget_process(struct user_space *u, struct user_part *p)
{
	if (p->pidfd >= 0) {
		user_pidfd_note(u, p->pidfd, 0);
		close(p->pidfd);
	}
	p->pidfd = -1;
	p->pid = 0;
}

/* ---- an exec that leads out of the space ---- */

static void expect_exec(struct user_space *u, struct user_part *p, pid_t tid)
{
	p->exec_looks = EXEC_LOOKS;
	if (!__atomic_exchange_n(&p->exec_tid, tid, __ATOMIC_ACQ_REL))
		__atomic_add_fetch(&u->nr_execs, 1, __ATOMIC_ACQ_REL);
}

/*
 * The code that makes the call can be a peer's: the partition that counts is
 * that of the caller's process. If a descriptor was not to be had to find out
 * which that is, it may be any.
 */
void user_keeper_expect_exec(struct user_space *u, pid_t tid)
{
	pid_t pid = user_caller_process(tid);
	uint32_t i;

	for (i = u->space->first; i <= u->space->last; i++) {
		struct user_part *p = &u->parts[i];

		if (__atomic_load_n(&p->pid, __ATOMIC_ACQUIRE) && (!pid || p->pid == pid))
			expect_exec(u, p, tid);
	}
	user_keeper_wake(u);
}

void user_keeper_forget_exec(struct user_space *u, struct user_part *p)
{
	if (__atomic_exchange_n(&p->exec_tid, 0, __ATOMIC_ACQ_REL))
		__atomic_sub_fetch(&u->nr_execs, 1, __ATOMIC_ACQ_REL);
}

/* Returns in how many milliseconds to look at this one again; -1: no need to. */
static int look_for_exec(struct user_space *u, struct user_part *p)
{
	/* It was faster than pvas_task_spawn(), which doesn't wake us when it is through. */
	if (p->state == PVAS_PART_ARMED)
		return EXEC_LOOK_MS;
	if (p->state != PVAS_PART_RUNNING)
		return -1;
	if (has_left(p)) {
		user_reclaim_begin(u, p);
		return -1;
	}
	if (p->exec_looks <= 0)
		return EXEC_LAST_MS;
	return --p->exec_looks > EXEC_RARE ? EXEC_LOOK_MS : EXEC_RARE_MS;
}

static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int look_for_execs(struct user_space *u)
{
	int wait = -1;
	uint32_t i;

	if (!__atomic_load_n(&u->nr_execs, __ATOMIC_ACQUIRE))
		return -1;
	for (i = u->space->first; i <= u->space->last; i++)
		if (__atomic_load_n(&u->parts[i].exec_tid, __ATOMIC_ACQUIRE))
			wait = sooner(wait, look_for_exec(u, &u->parts[i]));
	return wait;
}

/* ---- the beginning of a task ---- */

static int watch(struct user_space *u, int fd, uint32_t id)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = id };

	return epoll_ctl(u->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/*
 * The new process runs on the stack of the handle and with the thread pointer
 * of the caller of pvas_task_spawn(), who waits for it as after vfork(): what the
 * caller's setup function does to errno, it does to one that nobody reads.
 */
static int make_task(struct user_space *u, struct user_order *o)
{
	struct user_start start = {
		.u = u, .part = o->part, .call = o->call,
		.caller = o->caller, .persona = o->persona,
	};
	struct user_part *p = o->part;
	int err;

	u->start = start;
	p->pid = clone(user_child_main, o->stack,
		       CLONE_VM | CLONE_SETTLS | CLONE_PIDFD | CLONE_CHILD_CLEARTID | SIGCHLD,
		       &u->start, &p->pidfd, o->tls, &p->hand);
	if (p->pid < 0) {
		err = -errno;
		p->pid = 0;
		p->pidfd = -1;
		return err;
	}
	user_pidfd_note(u, p->pidfd, 1);
	return 0;
}

static void obey(struct user_space *u)
{
	struct user_order *o = &u->order;

	pthread_mutex_lock(&u->lock);
	if (o->call && !o->done) {
		o->err = make_task(u, o);
		o->done = 1;
		pthread_cond_broadcast(&u->changed);
	}
	pthread_mutex_unlock(&u->lock);
}

int user_keeper_watch(struct user_space *u, struct user_part *p)
{
	return watch(u, p->pidfd, (uint32_t)(p - u->parts));
}

/* ---- the end of the space ---- */

/* Returns how many tasks there are yet. */
static int kill_all(struct user_space *u)
{
	int alive = 0;
	uint32_t i;

	for (i = u->space->first; i <= u->space->last; i++) {
		struct user_part *p = &u->parts[i];

		if (p->state == PVAS_PART_FREE || p->state == PVAS_PART_RESERVED || p->pidfd < 0)
			continue;
		/* Dead, but a worker doesn't come back. */
		if (p->state == PVAS_PART_ENDING && p->stuck >= USER_STUCK_LOOKS)
			continue;
		/* One that is ending has died, or left by an exec. */
		if (p->state != PVAS_PART_ENDING)
			pvas_raw4(__NR_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
		alive++;
	}
	return alive;
}

/* ---- the thread ---- */

static void drain(int fd)
{
	uint64_t n;

	while (read(fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

/* Its process has ended. It is RUNNING as soon as who has started it lets go of the lock. */
static void end_of(struct user_space *u, struct user_part *p)
{
	pthread_mutex_lock(&u->lock);
	pthread_mutex_unlock(&u->lock);
	user_reclaim_begin(u, p);
}

/* Returns whether to go on. */
static int turn(struct user_space *u, int timeout)
{
	struct epoll_event events[EVENTS];
	int i, n = epoll_wait(u->epoll, events, EVENTS, timeout);

	for (i = 0; i < n; i++) {
		if (events[i].data.u32 == WAKE_ID) {
			drain(u->wake);
			obey(u);
		} else {
			end_of(u, &u->parts[events[i].data.u32]);
		}
	}
	return !__atomic_load_n(&u->stop, __ATOMIC_ACQUIRE) || kill_all(u);
}

static int keep(struct user_space *u)
{
	u->keeper_tid = (pid_t)pvas_raw0(__NR_gettid);
	u->listener = user_filter_install(u->space->shift, u->space->first, u->space->last,
					  &u->why);
	if (u->listener < 0)
		return u->listener;
	return watch(u, u->wake, WAKE_ID);
}

static void *keeper(void *arg)
{
	struct user_space *u = arg;
	int wait = -1;
	int err;

	prctl(PR_SET_NAME, "pvas-keeper");
	err = keep(u);
	pthread_mutex_lock(&u->lock);
	u->err = err;
	u->ready = 1;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
	if (err)
		return NULL;
	while (turn(u, u->stop ? sooner(wait, STOP_LOOK_MS) : wait)) {
		wait = look_for_execs(u);
		wait = sooner(wait, user_reclaim_some(u));
	}
	user_workers_dismiss(u);
	return NULL;
}

void user_keeper_wake(struct user_space *u)
{
	const uint64_t one = 1;

	while (write(u->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

int user_keeper_start(struct user_space *u)
{
	int err;

	u->epoll = epoll_create1(EPOLL_CLOEXEC);
	u->wake = eventfd(0, EFD_CLOEXEC);
	if (u->epoll < 0 || u->wake < 0)
		return -errno;
	err = pthread_create(&u->keeper, NULL, keeper, u);
	if (err)
		return -err;
	u->has_keeper = 1;
	pthread_mutex_lock(&u->lock);
	while (!u->ready)
		pthread_cond_wait(&u->changed, &u->lock);
	pthread_mutex_unlock(&u->lock);
	return u->err;
}

void user_keeper_stop(struct user_space *u)
{
	__atomic_store_n(&u->stop, 1, __ATOMIC_RELEASE);
	if (u->has_keeper) {
		user_keeper_wake(u);
		pthread_join(u->keeper, NULL);
	}
	u->has_keeper = 0;
}
