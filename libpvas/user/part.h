/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* User backend: a partition, and its page of the launcher's memory. */
#ifndef PVAS_USER_PART_H
#define PVAS_USER_PART_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../kmod/pvas_layout.h"
#include "../loader/blob.h"
#include "../loader/loading.h"

#define PAGE		PVAS_LAYOUT_PAGE
#define PAGE_UP(n)	pvas_layout_up(n, PAGE)
#define PAGE_DOWN(n)	pvas_layout_down(n, PAGE)

#define REUSE_SLOTS	16
#define FORKS_MAX	16
#define EXECS_MAX	16

/* A signal's action, as the kernel has it */
struct user_action {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

#define USER_STAY_SIGNAL	33	/* glibc's SIGSETXID; see stay.h and sigaction.c */
#define USER_EXE_LEN		(PAGE - 72)

/**
 * struct user_page - one page of the launcher's memory for each partition
 * @brk:	the task's program break
 * @heap_end:	end of the memory mapped for the heap
 * @loader:	address of the loader in the partition
 * @cookie:	user_space.cookie
 * @action:	what the program wants done on USER_STAY_SIGNAL, and
 * @ignores:	the kernel has it: the program has once ignored the signal
 * @exe:	the task's program, for readlink() of /proc/self/exe
 *
 * A fork child has a copy of this page, with the values at the time of its fork. By the
 * cookie, which is random, it is told from other programs below a task. The
 * pages are not in the partitions: the layout of a partition changes from one task to
 * the next, and a fork child can outlive its parent. All pages are in one mapping, to
 * share page tables.
 */
struct user_page {
	uint64_t brk;
	uint64_t heap_end;
	uint64_t loader;
	uint64_t cookie;
	struct user_action action;
	uint64_t ignores;
	char exe[USER_EXE_LEN];
};

/**
 * struct user_fork - a thread that is about to fork
 * @tid:	the thread
 * @process:	its process; 0: not a task's, so that its number can be another's unseen
 * @id:		of the request that is the fork
 * @answered:	it has been answered
 * @since:	when that was, or it began
 * @until:	then it counts as ended, if it was answered
 * @time:	its processor time when it began, in ns; -1: unknown
 * @waits:	it waits for its child (CLONE_VFORK)
 * @early:	when looked at last, it may not have begun to copy
 */
struct user_fork {
	pid_t tid;
	pid_t process;
	uint64_t id;
	int answered;
	int64_t since;
	int64_t until;
	int64_t time;
	int waits;
	int early;
};

struct user_stay;
struct user_unmapper;

/**
 * struct user_part - a partition
 * @state:	PVAS_PART_*; under user_space.lock
 * @gen:	how often it was reserved; under user_space.lock
 * @pid:	its task
 * @pidfd:	of its task, -1 if none
 * @execs:	threads of the task that have called execve(), and no worker since; under exec_lock
 * @nr_execs:	number of @execs. EXECS_MAX + 1: there are others, until the task has ended
 * @stay:	its execve() that stays in the space, the last one; or NULL. Under @lock
 * @armed:	thread of the task whose @stay waits for the handler
 * @handed:	thread that has handed @stay over to the first one
 * @parks:	an execve() has other threads of the task wait: see stay_threads.c
 * @nr_parked:	so many do
 * @opens_since: PARK_OPENS: when it began to open its program, in ms
 * @unfit:	its execs leave: another process can have its memory or handlers, its calls are
 *		dispatched to it, a stack for handlers is too small, or there are perf events that
 *		an execve() ends. Never cleared while the task lives
 * @exec_polls:	how many frequent checks remain for the success of the last of these
 * @start:	futex between launcher and new process: START_*
 * @loading:	a program is being mapped, which forks wait for: see turns.h; and
 * @loads_since: when that began
 * @base:	first address
 * @end:	first address above
 * @far_start:	its far part: see far.h; 0 if there is none
 * @far_end:	and its end
 * @reclaim:	after the task's end: everything below is unmapped
 * @slice:	bytes to unmap next
 * @apart:	its files are mapped by processes apart: see map_copy(). Never cleared
 *		while the task lives
 * @handled:	requests of its task, and of others in the mm that run its code, handled now
 * @unmapper:	unmaps it, and takes long; or NULL
 * @stuck:	how often a worker, or that thread, prevented its reclaim
 * @next:	next in the queue of partitions to be reclaimed
 * @marked:	parts of it may be MADV_DONTFORK; under fork_lock, as the next three
 * @exempt:	never to be marked MADV_DONTFORK
 * @forks:	who is about to fork
 * @nr_forks:	number of @forks
 * @lock:	protects all below; the new process fills them before it is a task
 * @layout:	where its program, heap, mappings and stack lie
 * @brk:	the program break
 * @heap_end:	end of the memory mapped for the heap: see user_brk()
 * @page:	its page in user_space.pages, never NULL
 * @cursor:	lowest address at which a mapping was placed lately
 * @reuse:	recent addresses to try again, by length
 */
struct user_part {
	uint32_t state;
	uint32_t gen;
	pid_t pid;
	int pidfd;
	pid_t execs[EXECS_MAX];
	unsigned int nr_execs;
	struct user_stay *stay;
	pid_t armed;
	pid_t handed;
	int parks;
	int nr_parked;
	int64_t opens_since;
	int unfit;
	int exec_polls;
	int start;
	struct pvas_loading loading;
	int64_t loads_since;
	uint64_t base;
	uint64_t end;
	uint64_t far_start;
	uint64_t far_end;
	uint64_t reclaim;
	uint64_t slice;
	int apart;
	int handled;
	struct user_unmapper *unmapper;
	unsigned int stuck;
	struct user_part *next;
	int marked;
	int exempt;
	struct user_fork forks[FORKS_MAX];
	unsigned int nr_forks;
	pthread_mutex_t lock;
	struct pvas_layout layout;
	uint64_t brk;
	uint64_t heap_end;
	struct user_page *page;
	uint64_t cursor;
	struct {
		uint64_t at;
		uint64_t len;
	} reuse[REUSE_SLOTS];
};

/* Would [addr, addr + len) reach outside? As the module's pvas_mm_foreign(). */
static inline int user_foreign(const struct user_part *p, uint64_t addr, uint64_t len)
{
	return pvas_layout_outside(p->base, p->end, addr, len);
}

/* As the module's pvas_mm_may_map() */
static inline int user_may_map(const struct user_part *p, uint64_t addr, uint64_t len)
{
	return pvas_layout_may_map(p->base, p->end, addr, len);
}

/* The loader in each partition is above the stack, with a page between. */
static inline uint64_t user_loader_of(const struct user_part *p)
{
	return p->layout.stack + PAGE;
}

/* Above it are the instructions that call user_stay_signal(). */
#define USER_LOADER_LEN	(pvas_blob_end - pvas_blob)

/* All of that */
#define USER_IMAGE_LEN	PAGE_UP(pvas_layout_up(USER_LOADER_LEN, 16) + PVAS_THUNK_LEN)

static inline uint64_t user_thunk_of(const struct user_part *p)
{
	return pvas_layout_up(user_loader_of(p) + USER_LOADER_LEN, 16);
}

#endif /* PVAS_USER_PART_H */
