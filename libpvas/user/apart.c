// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: map a task's file that a server answers for, in a process with descriptors of its
 * own.
 *
 * To close a file can take as long as its server likes (FUSE), in a state that not even SIGKILL
 * ends, and so can the end of whoever has it open. A copy of a task's descriptor would keep
 * a launcher that has been killed. So a child that shares the launcher's memory takes the copy,
 * maps the file and ends. The kernel takes the memory from a process that ends before it closes its
 * files: then the launcher goes on, and the child waits for the server, with nothing but the file.
 * A server has a limited number of these.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apart.h"
#include "rawsys.h"

#define STACK_SIZE	(16 << 10)
#define STEP		16
#define SERVER_MAX	64	/* that wait for one server */
#define WAITERS_MAX	16	/* workers */
#define WAIT_US		5000

/**
 * struct apart - a mapping
 * @connection:	of a reader, from which the file comes; -1: it is the caller's
 * @refused:	that can't be copied
 * @result:	address or -errno
 */
struct apart {
	const struct user_mmap *m;
	uint64_t at;
	int flags;
	int connection;
	int refused;
	int64_t result;
};

/*
 * Others would wait for answers of the listener, or for the end of pipes. Of an application whose
 * descriptors the workers share, its files are left: to close them could take as long.
 */
static void close_others(const struct user_space *u, int keep)
{
	const int proc = user_proc_fd(), lo = keep < 0 || proc < keep ? proc : keep;
	const int hi = keep < 0 || proc > keep ? proc : keep;

	if (u->files.are_copies && __atomic_load_n(&u->files_closed, __ATOMIC_ACQUIRE) &&
	    !__atomic_load_n(&u->unclosed, __ATOMIC_ACQUIRE) && proc >= 0 &&
	    !pvas_raw3(__NR_close_range, hi + 1, ~0U, 0)) {
		if (hi > lo + 1)
			pvas_raw3(__NR_close_range, lo + 1, hi - 1, 0);
		if (lo)
			pvas_raw3(__NR_close_range, 0, lo - 1, 0);
		return;
	}
	pvas_raw1(__NR_close, u->listener);
	user_files_close_others(u->descriptors, keep);
}

static int take_file(struct apart *a)
{
	int fd;

	if (a->connection >= 0)
		return user_reader_take(a->connection);
	fd = user_caller_descriptor(a->m->tid, a->m->fd);
	a->refused = fd == -EPERM || fd == -ENOSYS || fd == -EINVAL;
	return fd;
}

/* Its errno is the sleeping worker's. */
static int map_and_end(void *arg)
{
	struct apart *a = arg;
	const struct user_mmap *m = a->m;
	int64_t ret;

	pvas_raw2(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL);
	if ((pid_t)pvas_raw0(__NR_getppid) != m->u->owner)
		pvas_raw1(__NR_exit_group, 1);
	close_others(m->u, a->connection);
	ret = take_file(a);
	if (ret >= 0)
		ret = pvas_raw6(__NR_mmap, a->at, m->len, m->prot, a->flags, ret, m->off);
	/* Not before: it can be killed. */
	a->result = ret;
	pvas_raw1(__NR_exit_group, 0);
	return 0;
}

/* ---- those that have not been waited for: they send no signal ---- */

static void reap(struct user_aparts *list)
{
	unsigned int i, n = 0;

	for (i = 0; i < list->count; i++)
		if (!pvas_raw4(__NR_wait4, list->those[i].pid, NULL, __WCLONE | WNOHANG, NULL))
			list->those[n++] = list->those[i];
	__atomic_store_n(&list->count, n, __ATOMIC_RELAXED);
}

static void note(struct user_aparts *list, pid_t pid, uint64_t server)
{
	struct user_apart *more;

	pthread_mutex_lock(&list->lock);
	reap(list);
	if (list->count == list->room) {
		more = realloc(list->those, (list->room + STEP) * sizeof(*more));
		if (more) {
			list->those = more;
			list->room += STEP;
		}
	}
	if (list->count < list->room)
		list->those[list->count++] = (struct user_apart){ pid, server };
	pthread_mutex_unlock(&list->lock);
}

static int has_room(struct user_aparts *list, uint64_t server)
{
	unsigned int i, n = 0;

	if (__atomic_load_n(&list->count, __ATOMIC_RELAXED) < SERVER_MAX)
		return 1;
	pthread_mutex_lock(&list->lock);
	reap(list);
	for (i = 0; i < list->count; i++)
		n += list->those[i].server == server;
	pthread_mutex_unlock(&list->lock);
	return n < SERVER_MAX;
}

int user_apart_wait(const struct user_request *r, uint64_t server)
{
	struct user_aparts *list = &r->u->aparts;
	int has, waits;

	if (has_room(list, server))
		return 0;
	waits = __atomic_add_fetch(&list->waiters, 1, __ATOMIC_RELAXED) <= WAITERS_MAX;
	while (!(has = has_room(list, server)) && waits && !user_request_given_up(r))
		usleep(WAIT_US);
	__atomic_sub_fetch(&list->waiters, 1, __ATOMIC_RELAXED);
	return has ? 0 : -ENFILE;
}

void user_apart_reap(struct user_space *u)
{
	if (!__atomic_load_n(&u->aparts.count, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&u->aparts.lock);
	reap(&u->aparts);
	pthread_mutex_unlock(&u->aparts.lock);
}

void user_apart_free(struct user_space *u)
{
	free(u->aparts.those);
	u->aparts.those = NULL;
	u->aparts.count = u->aparts.room = 0;
}

/* ---- in a worker: signals are blocked ---- */

static void map_by_child(struct apart *a)
{
	char stack[STACK_SIZE] __attribute__((aligned(16)));
	pid_t pid;

	a->result = -EAGAIN;
	pid = clone(map_and_end, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, a);
	if (pid < 0)
		a->result = -errno;
	else
		note(&a->m->u->aparts, pid, a->m->server);
}

/*
 * It is no ancestor of the caller's, as Yama demands of who copies a descriptor; containers
 * forbid that to all. So the file is opened again, by a reader: that can take for ever, too,
 * and must not with the launcher's memory.
 */
static void map_opened(struct apart *a)
{
	const struct user_mmap *m = a->m;
	int how[2], err = user_caller_reopens(m->tid, m->fd, m->prot, m->flags, how);

	if (!err)
		err = a->connection = user_reader_open(m->tid, m->fd, how);
	if (err < 0) {
		a->result = err;
		return;
	}
	do {
		map_by_child(a);
	} while (a->result == -EINTR && user_request_valid() &&
		 !__atomic_load_n(&m->u->abandoned, __ATOMIC_RELAXED));
	user_reader_leave();
	if (a->result == -ENOENT)
		a->result = -EBADF;
}

int64_t user_apart_mmap(uint64_t at, const struct user_mmap *m, int flags)
{
	struct user_aparts *list = &m->u->aparts;
	struct apart a = { .m = m, .at = at, .flags = flags, .connection = -1 };

	a.refused = __atomic_load_n(&list->refused, __ATOMIC_RELAXED);
	if (!a.refused) {
		map_by_child(&a);
		if (a.refused && a.result != -EINVAL)
			__atomic_store_n(&list->refused, 1, __ATOMIC_RELAXED);
	}
	if (a.refused)
		map_opened(&a);
	return a.result == -EMFILE ? -ENFILE : a.result;
}
