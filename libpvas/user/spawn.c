// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: pvas_task_spawn(), the launcher's side.
 *
 * The caller reserves a partition, asks the supervisor to clone, and sleeps while
 * the new process uses the caller's thread pointer.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "far.h"
#include "rawsys.h"
#include "worker.h"

/* ---- a partition: under user_space.lock ---- */

/*
 * The launcher, or a library in it, may have mapped memory there since the space was made: the
 * kernel does not know of partitions. At the end of a task all that is there is unmapped.
 */
static int is_empty(const struct user_space *u, uint32_t index)
{
	uint64_t from = (uint64_t)index << u->space->shift, len = 1UL << u->space->shift;
	uint64_t start, end;
	long at;

	if (user_file_is_ours(u->maps) && !user_maps_query(u->maps, from, &start, &end))
		return start >= from + len;
	at = pvas_raw6(__NR_mmap, from, len, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (at == (long)from)
		munmap((void *)from, len);
	/* EEXIST, or it is too long for a limit. */
	return at == (long)from || (at != -EEXIST && user_maps_is_free(from, from + len));
}

/* Its index, or -EBUSY, -ENOSPC, or -EAGAIN: wait, then try again. */
static int find_free(struct user_space *u, unsigned int index)
{
	uint32_t i, first = u->space->first, last = u->space->last;

	if (index != PVAS_ANY)
		first = last = index;
	for (i = first; i <= last; i++)
		if (u->parts[i].state == PVAS_PART_FREE && is_empty(u, i))
			return (int)i;
	/* Last, because it costs a system call each. */
	for (i = first; i <= last; i++)
		if (user_part_ending(&u->parts[i]))
			return -EAGAIN;
	return index == PVAS_ANY ? -ENOSPC : -EBUSY;
}

static int reserve(struct user_space *u, unsigned int index)
{
	struct user_part *p;
	int i;

	pthread_mutex_lock(&u->lock);
	while ((i = find_free(u, index)) == -EAGAIN)
		user_wait_for_change(u);
	if (i >= 0) {
		p = &u->parts[i];
		p->state = PVAS_PART_ARMED;
		p->gen++;
		p->pidfd = -1;
		__atomic_add_fetch(&u->changes, 1, __ATOMIC_SEQ_CST);
		user_exec_forget(u, p);
		p->armed = p->handed = p->unfit = p->parks = p->nr_parked = 0;
		p->base = (uint64_t)i << u->space->shift;
		p->end = p->base + (1UL << u->space->shift);
		user_far_begin_part(u, p);
		user_publish(u, p, PVAS_PART_ARMED);
	}
	pthread_mutex_unlock(&u->lock);
	return i;
}

/* The launcher may have set PR_SET_MDWE after it created the space, which programs don't expect. */
static int check_executable(void)
{
	if (pvas_raw2(__NR_prctl, OPT_GET_MDWE, 0) <= 0)
		return 0;
	return pvas_fail(-EACCES,
			 "memory can't be made executable: this process has set PR_SET_MDWE");
}

static void set_free(struct user_space *u, struct user_part *p)
{
	pthread_mutex_lock(&u->lock);
	p->state = PVAS_PART_FREE;
	user_publish(u, p, PVAS_PART_FREE);
	user_release_process(u, p);
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
}

/*
 * Tasks see it RUNNING already: the new process has published that itself. It is watched
 * from the same moment on, so that the supervisor can't see it leave before.
 */
static int set_running(struct user_space *u, struct user_part *p)
{
	int err;

	pthread_mutex_lock(&u->lock);
	err = user_watch(u, p->pidfd, (uint32_t)(p - u->parts));
	if (!err)
		p->state = PVAS_PART_RUNNING;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
	return err;
}

/* ---- the process ---- */

static void request_clone(struct user_space *u, struct user_part *p, struct pvas_spawn_call *call)
{
	pthread_mutex_lock(&u->lock);
	u->clone_request = (struct user_clone_request){
		.call = call, .part = p, .tls = pvas_thread_pointer(),
		.stack = pvas_stack_top(u->space), .caller = (pid_t)pvas_raw0(__NR_gettid),
		.persona = (unsigned long)pvas_raw1(__NR_personality, ~0U),
	};
	__atomic_store_n(&u->clone_waits, 1, __ATOMIC_RELEASE);
	p->start = START_WAIT;
	/* Not under the lock, for which the supervisor would have to wait. */
	pthread_mutex_unlock(&u->lock);
	user_wake(u);
}

/*
 * The supervisor's part, which the new process can overtake: 0, or -errno if there is none. After
 * this the process is known.
 */
static int finish_clone(struct user_space *u)
{
	int err;

	pthread_mutex_lock(&u->lock);
	while (!u->clone_request.done)
		pthread_cond_wait(&u->changed, &u->lock);
	err = u->clone_request.err;
	u->clone_request.call = NULL;
	pthread_mutex_unlock(&u->lock);
	return err;
}

/* The new process waits for the answer. If it dies meanwhile, the kernel stores START_DEAD. */
static void check_rights(struct user_space *u, struct user_part *p,
			 struct pvas_spawn_call *call)
{
	int expected = START_CHECK;

	finish_clone(u);
	call->err = user_credentials_check_child(u, p->pid);
	__atomic_compare_exchange_n(&p->start, &expected, call->err ? START_REFUSED : START_GO, 0,
				    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	if (!call->err)
		call->err = -ECHILD;
	pvas_raw3(__NR_futex, &p->start, FUTEX_WAKE, 1);
}

/*
 * Returns START_DONE or START_DEAD. Not a private futex: when the process dies, the kernel
 * wakes the key of a shared one.
 */
static int wait_for_start(struct user_space *u, struct user_part *p,
			  struct pvas_spawn_call *call)
{
	int start;

	for (;;) {
		start = __atomic_load_n(&p->start, __ATOMIC_ACQUIRE);
		if (start == START_DONE || start == START_DEAD)
			return start;
		if (start == START_CHECK)
			check_rights(u, p, call);
		else
			pvas_raw4(__NR_futex, &p->start, FUTEX_WAIT, start, NULL);
	}
}

/* It has not become a task. From now on its pid can be another process'. */
static void reap(struct user_space *u, struct user_part *p)
{
	pid_t pid = __atomic_exchange_n(&p->pid, 0, __ATOMIC_ACQ_REL);

	__atomic_add_fetch(&u->changes, 1, __ATOMIC_SEQ_CST);
	pvas_reap(pid);
}

static int start(struct user_space *u, struct user_part *p, struct pvas_spawn_call *call)
{
	const uint64_t all = ~0ULL;
	uint64_t mask;
	int end, err;

	call->err = -ECHILD;	/* unless the new process stores another value */
	/* No signal handler of this thread must run while another process uses its TLS. */
	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &mask, 8);
	user_fork_begin(u, p);
	/* Memory of the new process is not marked for peers' forks. */
	user_map_begin(u, p, NULL);
	user_load_begin(u, p);
	user_map_end(u);
	request_clone(u, p, call);
	end = wait_for_start(u, p, call);
	err = finish_clone(u);
	if (err || (end == START_DEAD && call->err))
		user_load_end(p);
	if (err) {
		err = pvas_fail(err, "can't make a process");
	} else {
		call->pid = p->pid;
		/* If it died just after it had started, the supervisor sees that by the pidfd. */
		if (end == START_DEAD && call->err) {
			reap(u, p);
			err = call->err;
			pvas_spawn_explain(call, err);
		}
	}
	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
	return err;
}

static int start_in(struct user_space *u, struct user_part *p, struct pvas_spawn_call *call)
{
	int err = start(u, p, call);

	if (!err)
		return 0;
	munmap((void *)p->base, p->end - p->base);
	return err;
}

static int lock_in_time(pthread_mutex_t *lock)
{
	int ms = 1000;

	while (pthread_mutex_trylock(lock)) {
		if (!ms--)
			return -EBUSY;
		usleep(1000);
	}
	return 0;
}

static void lose(struct user_space *u, struct user_part *p)
{
	pthread_mutex_lock(&u->lock);
	p->state = PVAS_PART_RESERVED;
	user_publish(u, p, PVAS_PART_RESERVED);
	user_release_process(u, p);
	pthread_mutex_unlock(&u->lock);
}

/*
 * A worker that is in a call of the process may map there until it leaves the lock. One that
 * waits for a hung file server keeps the partition.
 */
static void kill_unwatched(struct user_space *u, struct user_part *p)
{
	user_kill(p);
	reap(u, p);
	user_load_end(p);
	if (lock_in_time(&p->lock)) {
		lose(u, p);
		return;
	}
	munmap((void *)p->base, p->end - p->base);
	pthread_mutex_unlock(&p->lock);
	set_free(u, p);
}

int user_spawn(struct pvas_spawn_call *call)
{
	struct user_space *u = call->space->priv;
	struct user_part *p;
	int index, err;

	if (u->owner != (pid_t)pvas_raw0(__NR_getpid))
		return pvas_fail(-EINVAL,
				 "user backend: only the process that made the space can start tasks");
	err = user_credentials_check(u, call->attr.flags & PVAS_SPAWN_SAME_RIGHTS);
	if (!err)
		err = check_executable();
	if (err)
		return err;
	index = reserve(u, call->index);
	if (index < 0)
		return index;
	p = &u->parts[index];
	err = start_in(u, p, call);
	if (err) {
		set_free(u, p);
		return err;
	}
	err = user_workers_ready(u);
	if (err) {
		kill_unwatched(u, p);
		return pvas_fail(err, "user backend: can't start threads: %s", strerror(-err));
	}
	err = set_running(u, p);
	if (err) {
		kill_unwatched(u, p);
		return pvas_fail(err, "can't watch the new process");
	}
	call->index = index;
	return 0;
}
