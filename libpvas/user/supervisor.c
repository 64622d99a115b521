// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the supervisor, a thread of the launcher.
 *
 * It alone is under the filter (and has no_new_privs), so what it clones is,
 * and nothing else of the launcher. It lives as long as the space, or what has left
 * it (left.c): its tasks ask for SIGKILL when their parent *thread* ends, so that
 * they die with the launcher, and not before. It also waits for their ends, and
 * frees their memory (reclaim.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"
#include "left.h"
#include "rawsys.h"
#include "worker.h"

#define EVENTS		32
#define WAKE_ID		UINT32_MAX	/* an index that no partition has */
#define POLL_MS		20
#define NO_END_MS	10000	/* that long after the last end, those alive are in a hung call */
#define HUNG_S		15	/* and after the last turn of this thread, it is */

static int earlier(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* ---- the beginning of a task ---- */

/* As all others: see pvas_fd_above_standard(). Without a free number it remains. */
static void move_pidfd(struct user_part *p)
{
	int old = p->pidfd, high;

	if (old > STDERR_FILENO)
		return;
	high = fcntl(old, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (high < 0)
		return;
	p->pidfd = high;
	close(old);
}

/*
 * The new process runs on the stack of the handle and with the thread pointer
 * of the caller of pvas_task_spawn(), which waits for it as after vfork(): if the
 * caller's setup function changes errno, nobody reads that errno.
 */
static int make_task(struct user_space *u, struct user_clone_request *c)
{
	struct user_start start = {
		.u = u, .part = c->part, .call = c->call,
		.caller = c->caller, .persona = c->persona,
	};
	struct user_part *p = c->part;
	int err;

	u->start = start;
	p->pid = clone(user_child_main, c->stack,
		       CLONE_VM | CLONE_SETTLS | CLONE_PIDFD | CLONE_CHILD_CLEARTID | SIGCHLD,
		       &u->start, &p->pidfd, c->tls, &p->start);
	if (p->pid < 0) {
		err = -errno;
		p->pid = 0;
		p->pidfd = -1;
		return err;
	}
	move_pidfd(p);
	user_file_mark(p->pidfd);
	user_pidfd_note(u, p->pidfd, 1);
	return 0;
}

/* As the kernel does when a process has died: pvas_task_spawn() waits for that. */
static void end_wait(struct user_part *p)
{
	__atomic_store_n(&p->start, START_DEAD, __ATOMIC_RELEASE);
	pvas_raw3(__NR_futex, &p->start, FUTEX_WAKE, 1);
}

static void serve_clone_request(struct user_space *u)
{
	struct user_clone_request *c = &u->clone_request;

	pthread_mutex_lock(&u->lock);
	if (c->call && !c->done) {
		c->err = make_task(u, c);
		c->done = 1;
		if (c->err)
			end_wait(c->part);
		__atomic_store_n(&u->clone_waits, 0, __ATOMIC_RELEASE);
		pthread_cond_broadcast(&u->changed);
	}
	pthread_mutex_unlock(&u->lock);
}

/* ---- the end of a task ---- */

/* Its process has ended. While pvas_task_spawn() has the lock, it is not RUNNING yet. */
static void handle_exit(struct user_space *u, struct user_part *p)
{
	pthread_mutex_lock(&u->lock);
	pthread_mutex_unlock(&u->lock);
	user_reclaim_begin(u, p);
}

/* The same without an event */
static void look_at(struct user_space *u, struct user_part *p)
{
	if (p->state == PVAS_PART_RUNNING && user_child_dead(p->pid))
		handle_exit(u, p);
}

/* Has it left the space by an execve()? Then its partition becomes free. */
static int handle_exec(struct user_space *u, struct user_part *p)
{
	pid_t pid = p->pid;

	if (p->state != PVAS_PART_RUNNING || !user_exec_left(p))
		return 0;
	user_left_add(&u->left, pid);
	user_reclaim_begin(u, p);
	return 1;
}

/* Returns in how many ms to check again; -1: no need to. */
static int poll_execs(struct user_space *u)
{
	int wait = -1;
	uint32_t i;

	if (!__atomic_load_n(&u->nr_execs, __ATOMIC_ACQUIRE))
		return -1;
	for (i = u->space->first; i <= u->space->last; i++) {
		struct user_part *p = &u->parts[i];

		if (!user_exec_any(p))
			continue;
		if (!handle_exec(u, p))
			wait = earlier(wait, user_exec_poll_ms(p));
	}
	return wait;
}

/* ---- the end of the space ---- */

/* The number was the task's a moment ago: see kill_all(). Returns whether the task will end. */
static int kill_task(const struct user_part *p)
{
	long err = user_kill(p);

	return !err || err == -ESRCH;
}

/*
 * Returns how many tasks are left to wait for. One that can't be killed dies when this thread
 * has ended, and until then needs the space.
 */
static int kill_all(struct user_space *u)
{
	int alive = 0;
	uint32_t i;

	for (i = u->space->first; i <= u->space->last; i++) {
		struct user_part *p = &u->parts[i];

		if (p->state == PVAS_PART_FREE || p->state == PVAS_PART_RESERVED || p->pidfd < 0)
			continue;
		/* Dead, but a worker doesn't come back. */
		if (p->state == PVAS_PART_ENDING && p->stuck >= USER_STUCK_MAX)
			continue;
		/* A task that is ENDING has died, or left by an exec: maybe just now. */
		if (user_exec_any(p))
			handle_exec(u, p);
		look_at(u, p);
		if (p->state == PVAS_PART_ENDING || kill_task(p))
			alive++;
		else
			u->unkilled = 1;
	}
	return alive;
}

/* Of tasks when the space ends: how many there still are, and since when there are so many */
struct ends {
	int alive;
	int64_t last;
};

/*
 * A task in a call for which a file server has to answer does not die before it does. It needs
 * the space until then, but nobody has to wait for it.
 */
static int end_all(struct user_space *u, struct ends *ends)
{
	int64_t now = now_ns();
	int alive = kill_all(u);

	if (alive != ends->alive) {
		ends->alive = alive;
		ends->last = now;
	}
	if (!alive || now - ends->last < NO_END_MS * 1000000LL)
		return alive;
	u->unkilled = 1;
	return 0;
}

/* ---- the thread ---- */

static void drain(int fd)
{
	uint64_t n;

	while (read(fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

static void look_at_all(struct user_space *u)
{
	uint32_t i;

	serve_clone_request(u);
	for (i = u->space->first; i <= u->space->last; i++)
		look_at(u, &u->parts[i]);
}

/*
 * The application may have closed the descriptor, as daemons close all, or have put a file of
 * its own in its place, which isn't to be closed at the end. Then nothing reports events.
 */
static int wait_for_events(struct user_space *u, struct epoll_event *events, int timeout)
{
	int n;

	if (user_file_is_ours(u->epoll) && user_file_is_ours(u->wake)) {
		n = epoll_wait(u->epoll, events, EVENTS, timeout);
		if (n >= 0 || errno == EINTR)
			return n;
	}
	usleep(POLL_MS * 1000);
	look_at_all(u);
	return 0;
}

/* Returns whether to continue. */
static int handle_events(struct user_space *u, struct ends *ends, int timeout)
{
	struct epoll_event events[EVENTS];
	int i, n = wait_for_events(u, events, timeout);

	for (i = 0; i < n; i++) {
		if (events[i].data.u32 == WAKE_ID) {
			if (user_file_is_ours(u->wake))
				drain(u->wake);
			serve_clone_request(u);
		} else {
			handle_exit(u, &u->parts[events[i].data.u32]);
		}
	}
	return !__atomic_load_n(&u->stop, __ATOMIC_ACQUIRE) || end_all(u, ends);
}

static int install_filter(struct user_space *u)
{
	u->supervisor_tid = (pid_t)pvas_raw0(__NR_gettid);
	u->listener = pvas_fd_above_standard(user_filter_install(u, &u->why));
	if (u->listener < 0)
		return u->listener;
	user_file_mark(u->listener);
	return user_watch(u, u->wake, WAKE_ID);
}

static void set_ready(struct user_space *u, int err)
{
	pthread_mutex_lock(&u->lock);
	u->err = err;
	u->ready = 1;
	u->finished = !!err;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
}

/* Afterwards the space may be gone. */
static void set_finished(struct user_space *u, int stays, int stuck)
{
	pthread_mutex_lock(&u->lock);
	u->finished = 1;
	u->stays = stays;
	u->stuck = stuck;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
}

/* The thread that destroys the space may have other descriptors. */
static void finish(struct user_space *u)
{
	struct user_left left;
	int stuck, stays;

	user_workers_stop(u);
	stuck = user_workers_join(u) || u->unkilled;
	stuck |= user_unmap_stop(u);
	user_launcher_close(u);
	left = u->left;
	stays = user_left_any(&left);
	if (stays)
		prctl(PR_SET_NAME, "pvas-parent");
	set_finished(u, stays, stuck);
	if (stays)
		user_left_wait(&left);
	free(left.pids);
}

static void *supervisor_main(void *arg)
{
	struct user_space *u = arg;
	struct ends ends = { 0 };
	int wait = -1;
	int err;

	prctl(PR_SET_NAME, "pvas-supervisor");
	err = install_filter(u);
	set_ready(u, err);
	if (err)
		return NULL;
	while (handle_events(u, &ends, u->stop ? earlier(wait, POLL_MS) : wait)) {
		__atomic_add_fetch(&u->supervisor_turns, 1, __ATOMIC_RELAXED);
		wait = poll_execs(u);
		wait = earlier(wait, user_reclaim_some(u));
	}
	finish(u);
	return NULL;
}

int user_supervisor_begin(struct user_space *u)
{
	int err;

	u->epoll = pvas_fd_above_standard(epoll_create1(EPOLL_CLOEXEC));
	u->wake = pvas_fd_above_standard(eventfd(0, EFD_CLOEXEC));
	err = u->epoll < 0 || u->wake < 0 ? -errno : 0;
	user_file_mark(u->epoll);
	user_file_mark(u->wake);
	if (!err)
		err = -pthread_create(&u->supervisor, NULL, supervisor_main, u);
	if (err)
		set_ready(u, err);
	u->has_supervisor = !err;
	return err;
}

/* ---- the thread that destroys the space ---- */

static void end_thread(const struct user_space *u)
{
	if (u->stays)
		pthread_detach(u->supervisor);
	else
		pthread_join(u->supervisor, NULL);
}

/* In place of a supervisor that is in a call that doesn't end */
static void kill_running(struct user_space *u)
{
	uint32_t i;

	for (i = u->space->first; i <= u->space->last; i++)
		if (u->parts[i].state == PVAS_PART_RUNNING && !user_child_dead(u->parts[i].pid))
			user_kill(&u->parts[i]);
}

/* Under user_space.lock. Returns whether it has ended. */
static int wait_for_supervisor(struct user_space *u)
{
	unsigned int turns, before = 0;
	int waits = 0;

	/* Waits are counted, not time: the process may have been stopped. */
	while (!u->finished && waits < HUNG_S) {
		turns = __atomic_load_n(&u->supervisor_turns, __ATOMIC_RELAXED);
		waits = turns == before ? waits + 1 : 0;
		before = turns;
		user_wait_for_change(u);
	}
	return u->finished;
}

int user_supervisor_stop(struct user_space *u)
{
	int ended;

	if (!u->has_supervisor)
		return 0;
	pthread_mutex_lock(&u->lock);
	__atomic_store_n(&u->stop, 1, __ATOMIC_RELEASE);
	if (!u->finished)
		user_workers_wake(u);
	ended = wait_for_supervisor(u);
	if (!ended)
		kill_running(u);
	pthread_mutex_unlock(&u->lock);
	if (!ended) {
		pthread_detach(u->supervisor);
		return 1;
	}
	end_thread(u);
	return u->stuck;
}
