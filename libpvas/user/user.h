/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The user backend: a space without a module and without root.
 *
 * The launcher's own mm is the space. One seccomp filter, inherited by all
 * tasks, lets every system call through but those that place or change
 * mappings; of these it lets through what names addresses inside the caller's
 * own partition. The rest goes to worker threads of the launcher, which share
 * the mm and so can make the call in the task's stead, at an address of their
 * choice.
 *
 *	user.c		the space: where it lies, how it begins and ends
 *	filter.c	the filter
 *	supervisor.c	the thread that has the filter, makes tasks and sees them end
 *	reclaim.c	the partition of one that has ended becomes free
 *	worker.c	the threads that answer the filter's calls
 *	pool.c	how many they are, and how they end
 *	files.c	they have descriptors of their own
 *	rights.c	a task keeps its ids, namespaces and capabilities
 *	exe.c	the answer to readlink("/proc/PID/exe")
 *	fork.c	fork() in a task leaves its peers alone
 *	place.c	the memory of a partition: placement, brk
 *	caller.c	what a caller is: task or not; its memory and files
 *	spawn.c	starting a task: the launcher's side
 *	credentials.c	whether its rights are the tasks'
 *	child.c	starting a task: in the new process
 *	program.c	which file is the program: #! and ELF checks
 *	stack.c	the new task's stack
 */
#ifndef PVAS_USER_H
#define PVAS_USER_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../kmod/pvas_layout.h"
#include "../backend.h"

#define PAGE		4096UL
#define PAGE_UP(n)	(((n) + PAGE - 1) & ~(PAGE - 1))
#define PAGE_DOWN(n)	((n) & ~(PAGE - 1))

#define HUGE_2M		(2UL << 20)
#define HUGE_1G		(1UL << 30)

#define WORKERS		4	/* at first */
#define WORKERS_MAX	32	/* if others wait for file servers */
#define REUSE_SLOTS	16
#define FORKS_MAX	4
#define PIDFDS_NOTED	4096

#define USER_STUCK_MS	5	/* how soon to try again to reclaim a partition */
#define USER_STUCK_LOOKS 200	/* from then on nobody waits for it */

/**
 * struct user_page - a page of the launcher's for each partition
 * @brk:	the task's program break
 * @heap_end:	what is mapped for it ends here
 * @loader:	where the loader's copy is
 * @exe:	its program, for readlink of /proc/self/exe
 *
 * Ordinary memory, so that a fork child has a copy of its own, which says what
 * held when it forked. Not in the partition: where that has something changes
 * from one task to the next, but a fork child can outlive its parent. Side by
 * side, they need no page table each.
 */
struct user_page {
	uint64_t brk;
	uint64_t heap_end;
	uint64_t loader;
	char exe[PAGE - 24];
};

/**
 * struct user_part - a partition
 * @state:	PVAS_PART_*; under user_space.lock
 * @gen:	how often it was taken; the same
 * @pid:	its task
 * @pidfd:	of its task, -1 if none
 * @exec_tid:	who in it has called execve, 0: nobody
 * @exec_looks:	how often to look soon whether it has succeeded
 * @hand:	futex between launcher and new process: HAND_*
 * @base:	where it begins
 * @end:	and ends
 * @reclaim:	it has ended: below this, all is unmapped
 * @slice:	how much to unmap next
 * @stuck:	how often a worker kept it from being reclaimed
 * @next:	to be reclaimed after this one
 * @marked:	some of it may be MADV_DONTFORK by us; this and the next under fork_lock
 * @exempt:	it is never marked
 * @forks:	threads that are about to fork
 * @nr_forks:	how many
 * @lock:	of all below, which the new process fills before it is a task
 * @load:	where its program's address 0 is
 * @heap:	where the brk heap begins
 * @brk:	and ends
 * @heap_end:	what is mapped for it ends here: see user_brk()
 * @page:	of it, never NULL
 * @stack:	where the stack begins, growing down
 * @skew:	so far below @stack its contents end
 * @mmap_top:	mappings are placed below
 * @cursor:	below this, nothing was placed yet, or not lately
 * @reuse:	addresses worth another try, by length
 */
struct user_part {
	uint32_t state;
	uint32_t gen;
	pid_t pid;
	int pidfd;
	pid_t exec_tid;
	int exec_looks;
	int hand;
	uint64_t base;
	uint64_t end;
	uint64_t reclaim;
	uint64_t slice;
	unsigned int stuck;
	struct user_part *next;
	int marked;
	int exempt;
	pid_t forks[FORKS_MAX];
	unsigned int nr_forks;
	pthread_mutex_t lock;
	uint64_t load;
	uint64_t heap;
	uint64_t brk;
	uint64_t heap_end;
	struct user_page *page;
	uint64_t stack;
	uint64_t skew;
	uint64_t mmap_top;
	uint64_t cursor;
	struct {
		uint64_t at;
		uint64_t len;
	} reuse[REUSE_SLOTS];
};

#define HAND_DEAD	0	/* the kernel stores it (CLONE_CHILD_CLEARTID) */
#define HAND_WAIT	1
#define HAND_DONE	2	/* the task runs, and needs the launcher no more */

/**
 * struct user_order - what the keeper is asked to do
 * @call:	a spawn to be made, or NULL
 * @part:	where
 * @tls:	of the caller, who waits: the new process borrows it
 * @stack:	top of the stack it begins on
 * @persona:	of the caller, for personality(2)
 * @caller:	thread whose processor affinity it gets
 * @done:	the keeper has looked: @err holds
 * @err:	0 or -errno
 */
struct user_order {
	struct pvas_spawn_call *call;
	struct user_part *part;
	void *tls;
	void *stack;
	unsigned long persona;
	pid_t caller;
	int done;
	int err;
};

/* What the new process is handed. */
struct user_start {
	struct user_space *u;
	struct user_part *part;
	struct pvas_spawn_call *call;
	unsigned long persona;
	pid_t caller;
};

/**
 * struct user_space - what pvas_space.priv points to
 * @space:	the handle
 * @owner:	the process that made it
 * @header:	in partition 0
 * @listener:	where the filter's calls arrive
 * @epoll:	the keeper waits here
 * @wake:	eventfd: the keeper has something to do
 * @maps:	/proc/self/maps
 * @keeper:	thread
 * @keeper_tid:	its number
 * @pool:	thread that makes workers
 * @workers:	threads; these and the following are under @pool_lock
 * @nr_workers:	how many
 * @nr_live:	of these, have not ended
 * @nr_slow:	of these, are not waiting for a call
 * @nr_served:	how often one was through
 * @abandoned:	no call is served any more; who is in one ends when it is over
 * @pool_live:	@pool has not ended
 * @pool_ready:	it has begun
 * @pool_stop:	it shall end
 * @pool_err:	workers could not be made: -errno
 * @pool_lock:	taken after all others
 * @pool_changed: one of these has changed
 * @ends:	how often a task has begun or ended; counted before their partition is taken
 * @nr_execs:	partitions with an @exec_tid
 * @ended:	partitions to be reclaimed; the keeper's
 * @pidfds:	which descriptors are tasks' pidfds
 * @fork_lock:	of the marks against fork; taken after no other of these
 * @lock:	of the partitions' states, of @order and @stop
 * @changed:	one of these has changed
 * @order:	for the keeper
 * @start:	of the process being started
 * @stop:	the space is ending
 * @has_keeper:	@keeper is there, and to be joined
 * @ready:	it has begun, or failed to:
 * @err:	why, and @why says more
 * @securebits:	of the thread that made it
 * @fixed:	kernel.randomize_va_space is 0
 * @pages:	one for each partition
 * @aux:	pairs of the auxiliary vector that are the machine's
 * @nr_aux:	how many
 * @entries:	of @parts
 * @parts:	by index
 */
struct user_space {
	struct pvas_space *space;
	pid_t owner;
	struct pvas_header *header;
	int listener;
	int epoll;
	int wake;
	int maps;
	pthread_t keeper;
	pid_t keeper_tid;
	pthread_t pool;
	pthread_t workers[WORKERS_MAX];
	unsigned int nr_workers;
	unsigned int nr_live;
	unsigned int nr_slow;
	unsigned int nr_served;
	int abandoned;
	int pool_live;
	int pool_ready;
	int pool_stop;
	int pool_err;
	pthread_mutex_t pool_lock;
	pthread_cond_t pool_changed;
	unsigned int ends;
	unsigned int nr_execs;
	struct user_part *ended;
	uint64_t pidfds[PIDFDS_NOTED / 64];
	pthread_mutex_t fork_lock;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct user_order order;
	struct user_start start;
	int stop;
	int has_keeper;
	int ready;
	int err;
	const char *why;
	long securebits;
	int fixed;
	struct user_page *pages;
	uint64_t aux[32];
	unsigned int nr_aux;
	uint32_t entries;
	struct user_part *parts;
};

/* Would [addr, addr + len) reach outside? As the module's pvas_mm_foreign(). */
static inline int user_foreign(const struct user_part *p, uint64_t addr, uint64_t len)
{
	return addr < p->base || addr > p->end || len > p->end - addr;
}

/* The loader's copy in each partition is above the stack, with a page between. */
static inline uint64_t user_loader_of(const struct user_part *p)
{
	return p->stack + PAGE;
}

size_t user_loader_length(void);

/* ---- filter.c ---- */

/* No such system call: always goes to a worker, who may want to know that it's over. */
#define USER_NR_STOP	0x5056

/*
 * Put the calling thread, and all processes it will make, under the filter.
 * Returns the listener, or -errno with the text set in @why.
 */
int user_filter_install(unsigned int shift, uint32_t first, uint32_t last, const char **why);

/* ---- supervisor.c ---- */

int user_keeper_start(struct user_space *u);
void user_keeper_stop(struct user_space *u);
void user_keeper_wake(struct user_space *u);

/* Have the partition freed when its task ends. */
int user_keeper_watch(struct user_space *u, struct user_part *p);

/* Thread @tid calls execve: if a task leaves the space by it, free its partition. */
void user_keeper_expect_exec(struct user_space *u, pid_t tid);

/* It has, or nobody waits for it. */
void user_keeper_forget_exec(struct user_space *u, struct user_part *p);

/* The descriptor @fd is the pidfd of a task, or no longer. */
void user_pidfd_note(struct user_space *u, int fd, int there);

/* A partition has no process any more. Under user_space.lock. */
void user_forget_process(struct user_space *u, struct user_part *p);

/* Has the process behind a pidfd ended? */
int user_pidfd_dead(int pidfd);

/* Its task is gone or going; in a moment the keeper will have freed it. Under user_space.lock. */
int user_part_ending(const struct user_part *p);

/* Note a partition's state where tasks see it. Under user_space.lock, or before they can. */
void user_publish(struct user_space *u, struct user_part *p, uint32_t state);

/* ---- reclaim.c: in the keeper ---- */

/* The task is gone from the partition. */
void user_reclaim_begin(struct user_space *u, struct user_part *p);

/* For a millisecond. Returns in how many more to go on; -1: there is nothing left. */
int user_reclaim_some(struct user_space *u);

/* ---- spawn.c ---- */

int user_spawn(struct pvas_spawn_call *call);

/* ---- credentials.c ---- */

/* Note what can't be asked later, of the thread that makes the space. */
void user_same_begin(struct user_space *u);

/* 0 if the calling thread has the rights that a new task will have; else -errno. */
int user_same_rights(const struct user_space *u);

/* ---- worker.c ---- */

void *user_worker_main(void *arg);

/* In a worker: is the call that it answers still waiting for that? */
int user_request_valid(void);

/* ---- pool.c ---- */

int user_workers_start(struct user_space *u);

/* In the keeper: have them end, but for those that are in slow calls. */
void user_workers_dismiss(struct user_space *u);

/* Returns how many have not come back: then the space must not be freed. */
int user_workers_join(struct user_space *u);

/* In a worker: it serves a call, which can take long, unless the space is ending (-EINTR). */
int user_worker_slow(struct user_space *u);

/* It is over. */
void user_worker_quick(struct user_space *u);

/* It was over too late: this worker shall end. */
int user_worker_left(void);

/* It ends. */
void user_worker_ends(struct user_space *u);

/* ---- files.c ---- */

#define FILES_STEP 64

/* Descriptors to be closed. */
struct user_files {
	int *fds;
	unsigned int count;
};

/* In the pool's thread: from now on it has a table of its own, a copy. */
void user_files_leave(const struct user_space *u, struct user_files *f);

/* Close what was only copied. */
void user_files_close(struct user_files *f);

/* ---- rights.c ---- */

/* Would this call of a task, with arguments in @memory, leave it its rights? */
int user_rights_kept(int nr, const uint64_t *args, pid_t memory);

/* The same of a clone that shares the mm. */
int user_rights_kept_by_clone(uint64_t flags);

/* ---- exe.c ---- */

/*
 * Is @path, of a thread that is @inside or of a fork child, the exe link of a
 * task? Then @exe is filled, as a string.
 */
int user_exe_of(struct user_space *u, struct user_part *p, pid_t caller, int inside,
		const char *path, char *exe, size_t len);

/* Whose task is this process, or that of this thread? */
struct user_part *user_part_of_process(struct user_space *u, pid_t tid);

/* ---- fork.c ---- */

/* Thread @tid, which runs code of @p, is about to fork. */
void user_fork_prepare(struct user_space *u, struct user_part *p, pid_t tid);

/* The launcher is. */
void user_fork_launcher(struct user_space *u);

/* @tid does something else now. */
void user_fork_returned(struct user_space *u, struct user_part *p, pid_t tid);

/* The task's memory is not to be marked. */
void user_fork_exempt(struct user_space *u, struct user_part *p);

/* It is going to map this: would that be the same? */
void user_fork_look_at_file(struct user_space *u, struct user_part *p, int fd);
int user_fork_look_at_segment(struct user_space *u, struct user_part *p, int id, uint64_t at);

/* For a partition that is taken. */
void user_fork_begin(struct user_part *p);


/* ---- place.c: all under user_part.lock, and for tasks only ---- */

struct user_mmap {
	uint64_t addr, len;
	int prot, flags, fd;
	uint64_t off;
};

/* They return an address or value, or -errno, as the system calls do. */
int64_t user_mmap(struct user_part *p, const struct user_mmap *m);
int64_t user_mremap(struct user_part *p, uint64_t old, uint64_t old_len, uint64_t new_len,
		    int flags);
int64_t user_shmat(struct user_part *p, int id, uint64_t addr, int flags, uint64_t align);
int64_t user_brk(struct user_part *p, uint64_t brk);

/* The task maps to a fixed place: there is none of what is spare beyond the break. */
void user_make_room(struct user_part *p, uint64_t addr, uint64_t len);

/* As user_brk(), for a fork child with a copy of the partition. */
int64_t user_child_brk(struct user_part *p, pid_t child, uint64_t brk);

/* Decide where things go, as the module's pvas_mm_layout(). 0 or -errno. Raw system calls only. */
int user_layout(struct user_part *p, const struct pvas_elf_image *image, uint64_t stack_limit,
		int randomize);

/* ---- caller.c ---- */

/* Once: make the page for user_caller_inside(). */
int user_caller_begin(void);

/* Does @tid share our address space? */
int user_caller_inside(pid_t tid);

/* Copy to or from a caller's memory; how much could be. */
ssize_t user_caller_read(pid_t tid, uint64_t from, void *to, size_t len);
ssize_t user_caller_write(pid_t tid, uint64_t to, const void *from, size_t len);

/* Has it an address space, whichever? */
int user_caller_has_memory(pid_t tid);

/* The process' RLIMIT_DATA */
uint64_t user_caller_data_limit(pid_t pid);

/* The process of a thread. 0: gone. */
pid_t user_caller_process(pid_t tid);

/* In a worker: a descriptor of the workers' for the thread's @fd. -errno. */
int user_caller_file(pid_t tid, int fd, int prot, int flags);

/* ---- child.c: the new process ---- */

int user_child_main(void *arg);

/* ---- program.c: in the new process: raw system calls only ---- */

#define USER_SCRIPT_DEPTH	5
#define USER_SCRIPT_HEAD	256

/**
 * struct user_program - the program to run, with what #! put before it
 * @fd:		open for reading
 * @path:	as it was found, for AT_EXECFN
 * @exe:	the kernel's name for it
 * @image:	what it needs
 * @phnum:	its program headers
 * @head:	arguments that come before argv[1], the last one first
 * @nr_head:	how many; 0: argv is unchanged
 * @lines:	what they point to
 * @depth:	how many lines
 */
struct user_program {
	int fd;
	const char *path;
	char exe[PAGE - 24];
	struct pvas_elf_image image;
	unsigned int phnum;
	const char *head[2 * USER_SCRIPT_DEPTH + 1];
	unsigned int nr_head;
	char lines[USER_SCRIPT_DEPTH][USER_SCRIPT_HEAD + 1];
	unsigned int depth;
};

int user_program_open(struct user_program *prog, const char *path);

/* ---- stack.c: the same ---- */

/* Map the stack and fill it. The start of the struct pvas_start is in @info. 0 or -errno. */
int user_stack_make(const struct user_start *s, const struct user_program *prog,
		    uint64_t *sp, uint64_t *info);

#endif /* PVAS_USER_H */
