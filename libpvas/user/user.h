/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The user backend: a space without a module and without root.
 *
 * The launcher's own mm is the space. One seccomp filter, inherited by all
 * tasks, allows every system call except those that place or change mappings;
 * of these it allows the ones that name addresses inside the caller's own
 * partition. The rest is sent to worker threads of the launcher, which share
 * the mm and so can make the call for the task, at an address of their choice.
 *
 * A file calls only functions of files above it:
 *
 *	user.h, part.h
 *	table.c		the table of partitions that tasks see
 *	proc.c		files of a process in /proc
 *	process.c	a task's process: pidfd, wake-ups of the supervisor
 *	thread.c	launcher threads with descriptors or directories of their own
 *	request.c	a request of the filter: receive, validate, answer
 *	reader.c	processes that read the memory of callers outside
 *	hung.c		those of them that are left waiting
 *	mounts.c	whether a server answers for a file
 *	caller.c	a caller's memory and files
 *	inside.c	whether a caller shares our mm
 *	sizes.c		whether a process has left it, without waiting for that process
 *	ask.c		what a process that may be in an execve() can be asked
 *	exec.c		a task that leaves the space by execve()
 *	credentials.c	whether a new task has the rights of the space's creator
 *	stay.c		a task that stays in it: the worker's part
 *	stay_answer.c	what it asks a worker meanwhile
 *	sigaction.c	handlers of tasks and of their fork children
 *	exe.c		the answer to readlink("/proc/PID/exe")
 *	rights.c	a task keeps its ids, namespaces and capabilities
 *	segment.c	a task's right to attach a System V segment
 *	sandbox.c	seccomp filters that tasks install
 *	fork.c		fork() in a task leaves its peers alone
 *	turns.c		forks and calls that map memory take turns
 *	apart.c		files of servers are mapped by processes of their own
 *	heap.c		the heap of a partition: brk
 *	place.c		the memory of a partition: placement
 *	fill.c		MAP_POPULATE, MAP_LOCKED: memory is filled with pages
 *	mmap.c		mmap() of a task
 *	calls.c		system calls of tasks and of their fork children
 *	files.c		workers have a descriptor table of their own
 *	queue.c		requests of callers other than tasks' threads
 *	pool.c		how many workers there are, and how they end
 *	far*.c		far memory: see far.h
 *	worker.c	the threads that receive and answer the filter's requests
 *	locked.c	record locks on what an execve() that stays would open
 *	program.c	a new task: which file is its program: #! and ELF checks
 *	stack.c		its stack
 *	image.c		the loader in its partition
 *	child.c		the new process, from clone() to the loader
 *	stay_threads.c	an execve() that stays: the end of the task's other threads
 *	stay_signals.c	an execve() that stays: signals and timers
 *	stay_robust.c	an execve() that stays: mutexes that the task holds
 *	stay_leader.c	an execve() that stays: by another thread than the first
 *	stay_task.c	an execve() that stays: the task's part
 *	stay_signal.c	an execve() that stays: how a worker reaches the task
 *	filter*.c	the filter (bpf.h: its assembler)
 *	unmap.c		the memory of a task that has ended, in a thread that may hang
 *	reclaim.c	its partition becomes free
 *	left.c		programs that have left the space by execve()
 *	launcher.c	the launcher process: its one space, its fork(), its descriptors
 *	supervisor.c	the thread that has the filter, clones tasks and sees them end
 *	spawn.c		starting a task: the launcher's side
 *	space.c		the space: where it lies, how it begins and ends
 *	ops.c		the calls of the library
 */
#ifndef PVAS_USER_H
#define PVAS_USER_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "../../kmod/pvas_layout.h"
#include "../backend.h"
#include "../loader/blob.h"
#include "clone.h"
#include "mounts.h"
#include "part.h"
#include "proc.h"
#include "turns.h"
#include "process.h"
#include "queue.h"
#include "reader.h"

#define HUGE_2M		PVAS_LAYOUT_PMD
#define HUGE_1G		PVAS_LAYOUT_PUD

#define WORKERS		4	/* at the start */
#define WORKERS_MAX	64	/* while others wait for file servers */
#define HELPERS_MAX	64
#define PIDFDS_NOTED	4096
#define USER_HIGH	8
#define USER_FEW_FILES	64
#define USER_SCRATCH	(2UL << 20)	/* bytes of user_space.scratch */
#define USER_TURN_NS	1000000	/* of the memory of a task that has ended, until others come */
#define USER_STUCK_MS	5	/* how soon to retry a partition that could not be reclaimed */
#define USER_STUCK_MAX	200	/* retries, after which nobody waits for it any longer */

/**
 * struct user_files - copies of descriptors, to be closed
 * @are_copies:	the table is the workers' own
 * @fds:	their numbers
 * @count:	so many
 * @few:	@fds, if they are few: threads that allocate none need no arena
 */
struct user_files {
	int are_copies;
	int *fds;
	unsigned int count;
	int few[USER_FEW_FILES];
};

/* Processes that have left the space by execve() */
struct user_left {
	pid_t *pids;
	unsigned int count;
	unsigned int room;
};

/* A process of apart.c, by the device of the file system */
struct user_apart {
	pid_t pid;
	uint64_t server;
};

/*
 * Those that have not been waited for, and how many workers wait for one to end. They can't take
 * copies of descriptors: see map_opened()
 */
struct user_aparts {
	pthread_mutex_t lock;
	struct user_apart *those;
	unsigned int count;
	unsigned int room;
	int waiters;
	int refused;
};

struct user_far;
struct user_request;
struct user_rights;

/**
 * struct user_space - what pvas_space.priv points to
 * @space:	the handle; when the space is abandoned:
 * @kept:	a copy of it
 * @owner:	the process that created it
 * @header:	the space header, in partition 0
 * @table:	the one in it: a task may have overwritten the address that is there
 * @listener:	seccomp listener of the filter
 * @epoll:	the supervisor waits here
 * @wake:	eventfd that wakes the supervisor
 * @maps:	/proc/self/maps
 * @user:	the creator's user id
 * @has_user:	all its user ids are the same; else a task may exchange them
 * @user_ns:	its user namespace, by the inode; 0: not known
 * @supervisor:	thread
 * @supervisor_tid: its thread id
 * @supervisor_turns: it has looked for events so often
 * @pool:	thread that creates workers and helpers
 * @worker_main: function of the workers
 * @helper_main: function of the helpers
 * @workers:	threads that receive requests; these and the following are under @pool_lock
 * @nr_workers:	number of @workers
 * @nr_live:	of these, have not ended
 * @nr_busy:	of these, are handling a request
 * @nr_served:	requests handled so far
 * @helpers:	threads that handle requests of callers that are not a task's threads
 * @nr_helpers:	number of @helpers
 * @nr_helpers_live: of these, have not ended
 * @nr_helpers_idle: of these, wait for a request
 * @queue:	requests for the helpers
 * @readers:	of the helpers
 * @mounts:	of the launcher's namespace
 * @aparts:	see apart.c
 * @unclosed:	the workers' table has a file that must not be closed: see map_copy()
 * @slow_fills:	workers that fill memory from a file that a server answers for
 * @abandoned:	no further request is handled; a busy worker ends when it becomes idle
 * @files:	the copies of descriptors that workers don't need
 * @files_closed: the first helper has closed them
 * @files_waited: a start has waited for that
 * @has_pool:	@pool was created, and is not joined yet
 * @pool_live:	@pool has not ended
 * @pool_apart:	@pool has a table of descriptors of its own, if it can have one
 * @pool_ready:	@pool has started
 * @pool_stop:	@pool has to end
 * @pool_wakes:	@pool has to wake the supervisor
 * @pool_err:	why workers could not be created: -errno
 * @pool_lock:	taken after all others
 * @pool_changed: one of these has changed
 * @changes:	how often a task has begun or ended; counted before its partition is reused
 * @exec_lock:	protects the threads in execve() of all partitions; no other is taken inside
 * @nr_execs:	partitions with any
 * @ended:	queue of partitions to be reclaimed; used by the supervisor only, as:
 * @unmapper:	thread that unmaps them; NULL: none yet, or it is late
 * @nr_late:	so many are
 * @pidfds:	bitmap of the descriptors that are pidfds of tasks
 * @fork_lock:	protects the MADV_DONTFORK marks; no other of these is taken inside
 * @turns:	of forks and mapping calls
 * @left:	of the supervisor only
 * @lock:	protects the partitions' states, @clone_request, @stop and @finished
 * @changed:	one of these has changed
 * @clone_request: for the supervisor
 * @clone_waits: it has not been served
 * @start:	argument of the process being started
 * @stop:	the space is ending
 * @has_supervisor: @supervisor was started
 * @finished:	it has ended the workers and closed all descriptors, and uses this no more
 * @stays:	it doesn't end yet, as the parent of processes that have left
 * @stuck:	a worker is in a call that doesn't end, or
 * @unkilled:	a sandbox forbids to kill the tasks, or they are in a call that does not end
 * @ready:	the supervisor has started, or failed to:
 * @err:	-errno of that, and
 * @why:	an explanation
 * @rights:	of the thread that created the space
 * @image:	sealed file of the loader and what is behind it, which partitions map; or -1
 * @scratch:	USER_SCRATCH bytes for the thread that has the handle: a new buffer for each
 *		task would be mapped and unmapped, which all processors that run tasks notice
 * @descriptors: all that the process had then have lower numbers
 * @securebits:	of the same thread
 * @session_keyring: of the same thread; or -errno
 * @creation:	number of this space among those of the process
 * @one_filter:	threads with as many seccomp filters as the creator have the same
 * @fixed:	kernel.randomize_va_space is 0
 * @pages:	one for each partition
 * @cookie:	random, in each of @pages
 * @aux:	auxiliary vector entries that are the same for all tasks, in pairs
 * @nr_aux:	number of pairs in @aux
 * @high:	high numbers of descriptors that a new process had: of the one that is starting
 * @far:	far memory, NULL if there is none
 * @entries:	number of @parts
 * @parts:	by index
 */
struct user_space {
	struct pvas_space *space;
	struct pvas_space kept;
	pid_t owner;
	struct pvas_header *header;
	struct pvas_part *table;
	int listener;
	int epoll;
	int wake;
	int maps;
	uid_t user;
	int has_user;
	uint64_t user_ns;
	pthread_t supervisor;
	pid_t supervisor_tid;
	unsigned int supervisor_turns;
	pthread_t pool;
	void *(*worker_main)(void *);
	void *(*helper_main)(void *);
	pthread_t workers[WORKERS_MAX];
	unsigned int nr_workers;
	unsigned int nr_live;
	unsigned int nr_busy;
	unsigned int nr_served;
	pthread_t helpers[HELPERS_MAX];
	unsigned int nr_helpers;
	unsigned int nr_helpers_live;
	unsigned int nr_helpers_idle;
	struct user_queue queue;
	struct user_readers readers;
	struct user_mounts mounts;
	struct user_aparts aparts;
	int unclosed;
	int slow_fills;
	int abandoned;
	struct user_files files;
	int files_closed;
	int files_waited;
	int has_pool;
	int pool_live;
	int pool_apart;
	int pool_ready;
	int pool_stop;
	int pool_wakes;
	int pool_err;
	pthread_mutex_t pool_lock;
	pthread_cond_t pool_changed;
	unsigned int changes;
	pthread_mutex_t exec_lock;
	unsigned int nr_execs;
	struct user_part *ended;
	struct user_unmapper *unmapper;
	unsigned int nr_late;
	uint64_t pidfds[PIDFDS_NOTED / 64];
	struct user_left left;
	pthread_mutex_t fork_lock;
	struct user_turns turns;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct user_clone_request clone_request;
	int clone_waits;
	struct user_start start;
	int stop;
	int has_supervisor;
	int finished;
	int stays;
	int stuck;
	int unkilled;
	int ready;
	int err;
	const char *why;
	struct user_rights *rights;
	int image;
	void *scratch;
	unsigned int descriptors;
	long securebits;
	long session_keyring;
	uint64_t creation;
	int one_filter;
	int fixed;
	struct user_page *pages;
	uint64_t cookie;
	uint64_t aux[32];
	unsigned int nr_aux;
	int high[USER_HIGH];
	struct user_far *far;
	uint32_t entries;
	struct user_part *parts;
};

/* ---- table.c ---- */

/* Store a partition's state where tasks see it. Under user_space.lock, or before they can. */
void user_publish(struct user_space *u, struct user_part *p, uint32_t state);

/* ---- exec.c ---- */

/* Thread @tid calls execve(): check from now on whether its task leaves the space by it. */
void user_exec_begin(struct user_space *u, pid_t tid);

/* Is any of its threads in one, as far as is known? */
int user_exec_any(const struct user_part *p);

/*
 * Could the kernel be performing another thread's than that of @tid? That would take along the
 * signal by which an execve() that stays ends others, and die.
 */
int user_exec_of_other(struct user_space *u, const struct user_part *p, pid_t tid);

/* In a worker: the caller is in no execve() that it has made before. */
void user_exec_returned(const struct user_request *r);

/* The task has left or ended. */
void user_exec_forget(struct user_space *u, struct user_part *p);

/* The task has left the space by an execve(). */
int user_exec_left(const struct user_part *p);

/* In how many ms to check again; -1: no need to. */
int user_exec_poll_ms(struct user_part *p);

/* The task has ended or is about to be seen so by the supervisor. Under user_space.lock. */
int user_part_ending(const struct user_part *p);

/*
 * Until a partition has changed, or a second has passed: the supervisor may lack descriptors
 * to see what this thread has seen. Under user_space.lock.
 */
void user_wait_for_change(struct user_space *u);

/* ---- reclaim.c: in the supervisor ---- */

/* The task is gone from the partition. */
void user_reclaim_begin(struct user_space *u, struct user_part *p);

/* For a millisecond. Returns in how many ms to continue; -1: there is nothing left. */
int user_reclaim_some(struct user_space *u);

/* ---- unmap.c: in the supervisor ---- */

void user_unmap_begin(struct user_part *p);

/* For a millisecond. Returns whether all is unmapped; -EBUSY: that takes longer. */
int user_unmap_some(struct user_space *u, struct user_part *p);

/* Does that still go on? */
int user_unmap_is_late(struct user_space *u, struct user_part *p);

/* End the threads. Returns whether any is late, and needs the space until then. */
int user_unmap_stop(struct user_space *u);

/* ---- image.c ---- */

/* Before there are tasks: the file that each of them will map, if possible */
void user_image_make(struct user_space *u);

/*
 * In a process that becomes a task: the loader in its partition. 0 or -errno. @starts: it has the
 * launcher's descriptors still.
 */
int user_image_map(const struct user_space *u, uint64_t at, int starts);

/* ---- supervisor.c ---- */

/* 0 or -errno. The pool waits until it has installed the filter, or could not. */
int user_supervisor_begin(struct user_space *u);

/*
 * End all tasks and threads, and close the descriptors. Returns whether a worker is in a call
 * that doesn't end, and needs the space until then.
 */
int user_supervisor_stop(struct user_space *u);

/* ---- credentials.c ---- */

/* Record the rights of the caller, the space's creator. -EPERM if execve() would change them. */
int user_credentials_begin(struct user_space *u);
void user_credentials_end(struct user_space *u);

/*
 * 0 if the calling thread has these rights, as a new task will have; else -errno. @promised:
 * PVAS_SPAWN_SAME_RIGHTS. Descriptors and directories are compared always.
 */
int user_credentials_check(const struct user_space *u, int promised);

/* The same of a new process, which has stored its part in user_space.clone_request. */
int user_credentials_check_child(struct user_space *u, pid_t pid);

/* Has a thread of a task still these rights? */
int user_credentials_hold(const struct user_space *u, pid_t tid);

/* Have two threads of a task the same rights and control groups? */
int user_credentials_alike(pid_t a, pid_t b);

/* ---- spawn.c ---- */

int user_spawn(struct pvas_spawn_call *call);

/* ---- launcher.c: a process has one space ---- */

/*
 * Returns whether @u is now the space of this process; not if it has one already. Then no
 * thread of it forks until the space has begun, or failed to.
 */
int user_launcher_claim(struct user_space *u);
void user_launcher_begun(void);

/* Close its descriptors. No fork is looking at it when this returns: it can be freed. */
void user_launcher_release(struct user_space *u);

/* Close listener, epoll and the other descriptors of the space. */
void user_launcher_close(struct user_space *u);

/* Around all that takes locks in a thread of the application's: its signal handlers may fork. */
void user_launcher_enter(void);
void user_launcher_leave(void);

/* ---- space.c: as in struct pvas_backend_ops ---- */

int user_create(struct pvas_space *s);
void user_destroy(struct pvas_space *s);
int user_tasks(const struct pvas_space *s, struct pvas_task_info *tasks, size_t room);

#endif /* PVAS_USER_H */
