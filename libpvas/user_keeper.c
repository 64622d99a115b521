// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the keeper, a thread of the launcher.
 *
 * It alone is under the filter (and has no_new_privs), so what it clones is,
 * and nothing else of the launcher. It lives as long as the space: its tasks
 * ask for SIGKILL when their parent *thread* ends, so that they die with the
 * launcher, and with nothing less. It also waits for their ends, and gives
 * back their memory.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rawsys.h"
#include "user.h"

#define EVENTS		32
#define WAKE_ID		UINT32_MAX	/* an index that no partition has */
#define EXEC_LOOKS	60	/* often at first; then: it is a large program, or none */
#define EXEC_RARE	20
#define EXEC_LOOK_MS	5
#define EXEC_RARE_MS	500
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

static int has_left(const struct user_part *p, pid_t tid)
{
	return !user_caller_inside(tid) && !user_caller_inside(p->pid);
}

int user_part_ending(const struct user_part *p)
{
	pid_t tid = __atomic_load_n(&p->exec_tid, __ATOMIC_ACQUIRE);

	return p->state == PVAS_PART_ENDING ||
	       (p->state == PVAS_PART_RUNNING &&
		(user_pidfd_dead(p->pidfd) || (tid && has_left(p, tid))));
}

static void set_state(struct user_space *u, struct user_part *p, uint32_t state)
{
	pthread_mutex_lock(&u->lock);
	p->state = state;
	if (state == PVAS_PART_FREE && p->pidfd >= 0) {
		close(p->pidfd);
		p->pidfd = -1;
		p->pid = 0;
	}
	user_publish(u, p, state);
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
}

static void bury(struct user_space *u, struct user_part *p)
{
	p->exec_tid = 0;
	set_state(u, p, PVAS_PART_ENDING);
	/* A worker may still map something for the one that is gone. */
	pthread_mutex_lock(&p->lock);
	munmap((void *)p->base, p->end - p->base);
	pthread_mutex_unlock(&p->lock);
	set_state(u, p, PVAS_PART_FREE);
}

/* ---- an exec that leads out of the space ---- */

void user_keeper_expect_exec(struct user_space *u, struct user_part *p, pid_t tid)
{
	if (tid != p->pid && user_caller_process(tid) != p->pid)
		return;
	p->exec_looks = EXEC_LOOKS;
	__atomic_store_n(&p->exec_tid, tid, __ATOMIC_RELEASE);
	user_keeper_wake(u);
}

/* Returns in how many milliseconds to look again; -1: no need to. */
static int look_for_execs(struct user_space *u)
{
	int wait = -1;
	uint32_t i;

	for (i = u->space->first; i <= u->space->last; i++) {
		struct user_part *p = &u->parts[i];
		pid_t tid = __atomic_load_n(&p->exec_tid, __ATOMIC_ACQUIRE);

		if (!tid)
			continue;
		/* It was faster than pvas_spawn(), which doesn't wake us when it is through. */
		if (p->state == PVAS_PART_ARMED)
			wait = EXEC_LOOK_MS;
		if (p->state != PVAS_PART_RUNNING)
			continue;
		if (has_left(p, tid))
			bury(u, p);
		else if (--p->exec_looks <= 0)
			p->exec_tid = 0;
		else if (p->exec_looks > EXEC_RARE)
			wait = EXEC_LOOK_MS;
		else if (wait < 0)
			wait = EXEC_RARE_MS;
	}
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
 * of the caller of pvas_spawn(), who waits for it as after vfork(): what the
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
		pvas_raw4(__NR_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
		alive++;
	}
	return alive;
}

/* Each of these calls goes to one worker, who then ends. */
static void dismiss_workers(const struct user_space *u)
{
	unsigned int i;

	for (i = 0; i < u->nr_workers; i++)
		pvas_raw0(USER_NR_STOP);
}

/* ---- the thread ---- */

static void drain(int fd)
{
	uint64_t n;

	while (read(fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
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
			bury(u, &u->parts[events[i].data.u32]);
		}
	}
	return !__atomic_load_n(&u->stop, __ATOMIC_ACQUIRE) || kill_all(u);
}

static int keep(struct user_space *u)
{
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
	while (turn(u, u->stop ? STOP_LOOK_MS : wait))
		wait = look_for_execs(u);
	dismiss_workers(u);
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
