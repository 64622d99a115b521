// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the launcher's process, which has at most one space, may fork, and has
 * the descriptors of the space.
 */
#include <pthread.h>
#include <unistd.h>

#include "rawsys.h"
#include "thread.h"
#include "worker.h"

/*
 * Held while a thread of the launcher forks, and while a space begins or ends: so a space that
 * the fork handlers have seen exists until the fork is done, and a fork child has all or none of
 * its descriptors. Taken before all locks of a space.
 */
static pthread_mutex_t launcher_lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

/* There is one address space, and empty partitions would look free to a second space. */
static struct user_space *active_space;

/* Of this thread, in calls of the library */
static __thread volatile int calls;

/* Of this thread, from before a fork to after it. */
static __thread int forks;		/* so many: a handler can fork while its thread does */
static __thread int forking;		/* it has the lock */
static __thread pid_t forker;		/* the process that forks */
static __thread struct user_space *forking_space;
static __thread int forking_files;	/* what has their numbers are descriptors of the space */

void user_launcher_enter(void)
{
	calls++;
}

void user_launcher_leave(void)
{
	calls--;
}

/*
 * The child gets no copy of the tasks' memory, which would only slow them. A signal handler
 * that forks while its thread is in a call of the library, or forks, may have interrupted it with
 * any of the locks, and goes without: its child's descriptors are closed, and its copy of the
 * tasks' memory is unmapped.
 */
static void before_fork(void)
{
	struct user_space *u;

	forker = (pid_t)pvas_raw0(__NR_getpid);
	if (forks++)
		return;
	forking_space = NULL;
	forking = 0;
	if (calls)
		return;
	forking = !pthread_mutex_lock(&launcher_lock);
	u = forking ? active_space : NULL;
	if (!u || u->owner != forker || !u->ready)
		return;
	user_fork_of_launcher(u);
	/* Not knowing that is no reason to leave them to the child. */
	forking_files = user_file_marks_tell() || user_thread_has_files(u);
	pthread_mutex_lock(&u->lock);
	forking_space = u;
}

static void after_fork(void)
{
	if (--forks)
		return;
	if (forking_space) {
		pthread_mutex_unlock(&forking_space->lock);
		user_fork_of_launcher_made(forking_space);
	}
	if (forking)
		pthread_mutex_unlock(&launcher_lock);
}

/* Not a file of the application's that has got the number */
static void close_fd(const struct user_space *u, int *fd)
{
	if (user_file_is_of(*fd, u->owner))
		pvas_raw1(__NR_close, *fd);
	*fd = -1;
}

static void close_all(struct user_space *u)
{
	close_fd(u, &u->listener);
	close_fd(u, &u->epoll);
	close_fd(u, &u->wake);
	close_fd(u, &u->maps);
	close_fd(u, &u->image);
	/* A fork child that has inherited the space may have another one of its own. */
	if (u->owner == (pid_t)pvas_raw0(__NR_getpid))
		user_proc_end();
}

void user_launcher_close(struct user_space *u)
{
	pthread_mutex_lock(&launcher_lock);
	close_all(u);
	pthread_mutex_unlock(&launcher_lock);
}

/* In a child of the launcher, and in no other: those have nothing of the space. */
static struct user_space *space_of_forker(void)
{
	return active_space && active_space->owner == forker ? active_space : NULL;
}

/*
 * If the child kept the listener, callers would wait for an answer for ever when
 * the launcher is gone. It has no use for the other descriptors either.
 */
static void after_fork_in_child(void)
{
	/* In a handler, in the middle of another fork or of a call of the library */
	int nested = forks > 1 || !forking;
	struct user_space *u = nested ? space_of_forker() : forking_space;
	int files = nested || forking_files;
	uint32_t i;

	/* A handler may return into a fork, which is no launcher's any more. */
	forks--;
	forking = 0;
	forker = 0;
	forking_space = NULL;
	launcher_lock = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
	if (!u)
		return;
	/* They have mapped more since they were marked. */
	if (u->ready)
		user_fork_child_of_launcher(u);
	if (files) {
		close_all(u);
		user_proc_end();
		for (i = 0; u->parts && i < u->entries; i++)
			close_fd(u, &u->parts[i].pidfd);
	}
	u->listener = u->epoll = u->wake = u->maps = u->image = -1;
	user_proc_forget();
	pthread_mutex_init(&u->lock, NULL);
}

static void register_fork_handlers(void)
{
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* A space that a fork child of its launcher has inherited does not count. */
int user_launcher_claim(struct user_space *u)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_fork_handlers);
	pthread_mutex_lock(&launcher_lock);
	if (active_space && active_space->owner == u->owner) {
		pthread_mutex_unlock(&launcher_lock);
		return 0;
	}
	active_space = u;
	return 1;
}

void user_launcher_begun(void)
{
	pthread_mutex_unlock(&launcher_lock);
}

void user_launcher_release(struct user_space *u)
{
	pthread_mutex_lock(&launcher_lock);
	close_all(u);
	if (active_space == u)
		active_space = NULL;
	pthread_mutex_unlock(&launcher_lock);
}
