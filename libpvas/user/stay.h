/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The user backend: the execve() of a task that stays in its space.
 *
 * An execve() would leave the mm, so the task itself does what an execve() does. The worker
 * that gets the call copies the arguments, sends a signal to the calling thread, and has the
 * kernel restart the call. A handler of the launcher's runs before that: it either becomes the
 * program, in the task's partition, or returns. Then the call is made again, and leaves the
 * space or fails as it always would. All registers and the signal mask are in the frame that
 * the kernel has made for the handler.
 *
 * The signal is one that the C library uses within, and that programs neither block nor catch.
 * Its handler passes on to the library what was not sent for an execve(): see user_handler.
 *
 * Only the first thread can become the program, because the process is left with its id. The
 * others end by the same signal.
 */
#ifndef PVAS_USER_STAY_H
#define PVAS_USER_STAY_H

#include "child.h"
#include "worker.h"

#define STAY_STACK_SIZE	(512UL << 10)
#define USER_STAY_FIRST_STACK (4UL << 20) /* of the first thread's stack, at its top */
#define USER_STAY_FRAME	7168	/* a signal frame with the registers of AVX-512, and the handler */
#define STAY_TLS_WORDS	320	/* what functions of the C library may look at */

/* It is the worker's until it is claimed, then the thread's until it is given back or ends. */
enum user_stay_state {
	STAY_NEW,
	STAY_PUT_OFF,	/* another signal's handler comes first, and then the call again */
	STAY_REFUSED,	/* the next call with the same arguments leaves */
	STAY_TAKEN,	/* the first thread goes on */
	STAY_DONE,	/* the new program runs */
};

/* Settings of a thread that an execve() keeps */
struct user_stay_thread {
	uint64_t scheduling[8];		/* struct sched_attr */
	uint64_t affinity[128];
	uint64_t nodes[16];
	int policy;
	long io_priority;
	long timer_slack;
	long securebits;
	long session_keyring;
	long nr_groups;
	long personality;
	long l1d_flush;
	long cpuid;
	int tsc;
	long machine_check;
	long io_flusher;
	uint64_t core_cookie;
	uint64_t spaces[2];
};

/**
 * struct user_stay - an execve() of a task: the head of a mapping of the launcher's
 * @u:		the space
 * @part:	the partition
 * @size:	of the mapping
 * @state:	STAY_*
 * @tid:	the thread that has made the call
 * @began:	when the worker has made it: now_ms()
 * @tries:	how often it has been restarted before the handler came
 * @again:	address of the system call instruction
 * @nr:		number of the call
 * @args:	its arguments, to recognise it
 * @dirfd:	of execveat(), if the path is relative to it; else AT_FDCWD
 * @file:	the path as it was given
 * @securebits:	of the launcher
 * @asks:	STAY_ASKS_*, of a worker
 * @confirmed:	its answer: 1, or
 * @others:	how many other threads there are, or -errno
 * @mask:	the signals that were blocked
 * @path:	copies of its arguments
 * @argv:
 * @envp:
 * @call:	the same for the functions that start a task
 * @prog:	the program
 * @thread:	of @tid, if that is not the first thread
 * @thread_pointers: of @tid and, if it is handed over to, the first thread
 * @stacks:	tops of their stacks
 * @tls:	for their thread pointers: the task's own may be none, and is unmapped
 */
struct user_stay {
	struct user_space *u;
	struct user_part *part;
	size_t size;
	int state;
	pid_t tid;
	int64_t began;
	int tries;
	uint64_t again;
	int nr;
	uint64_t args[6];
	int dirfd;
	long securebits;
	int asks;
	int confirmed;
	int others;
	uint64_t mask;
	char *file;
	char *path;
	char **argv;
	char **envp;
	struct pvas_spawn_call call;
	struct user_program prog;
	struct user_stay_thread thread;
	uint64_t thread_pointers[2];
	uint64_t stacks[2];
	uint64_t tls[2][STAY_TLS_WORDS];
};

/*
 * In a worker, under user_part.lock, for a thread of the task: have it go on in
 * user_stay_signal(), when its call has been answered by this error. Returns 0 if it has to leave
 * the space, or -errno if it can't do that now.
 */
#define STAY_RESTART	(-513)		/* ERESTARTNOINTR */
int user_stay(struct user_request *r);

void user_stay_free(struct user_stay *e);

/* May the process @pid become a program for its thread @tid? */
int user_stay_has_rights(const struct user_space *u, pid_t pid, pid_t tid);

/* ---- stay_answer.c ---- */

/*
 * In a worker, for a thread in the handler. STAY_ASKS_OTHERS: have the others wait, which takes
 * files that are not to be open in the task while they can fork. STAY_ASKS_RIGHTS, by the first
 * thread, while no other one runs any more: its rights can have changed since user_stay() looked at
 * them. user_stay.confirmed is set if they still are those of the space's tasks, and those of
 * the thread that has made the call. STAY_ASKS_TURN, by the first thread: it is going to map the
 * program.
 */
enum { STAY_ASKS_RIGHTS, STAY_ASKS_OTHERS, STAY_ASKS_TURN };
int64_t user_stay_answer(struct user_request *r);

/* ---- stay_signal.c ---- */

/* The instructions behind the loader, which call the handler: the same in all partitions. */
void user_stay_make_thunk(unsigned char *code, const struct user_space *u);

/* In a process that is becoming a task, when it has its memory: install the handler. */
void user_stay_catch(struct user_part *p);

/* ---- stay_threads.c: in the task ---- */

/*
 * user_part.parks: others wait; they do while the program is opened, for a time; they end; or one
 * leaves by an execve() of the kernel's
 */
enum { PARK_NOT, PARK_WAIT, PARK_OPENS, PARK_END, PARK_LEAVES };

/* In a worker: call all threads but @self to the handler. How many there are; or -errno */
int user_stay_call_others(struct user_part *p, pid_t self);

/* Have all others wait in the handler. Returns 0 if that takes too long. */
int user_stay_park_others(struct user_stay *e);
void user_stay_release_others(struct user_part *p);

/* The program is opened, while the others wait; and has been. Returns whether they still do. */
void user_stay_opens(struct user_part *p);
int user_stay_opened(struct user_part *p);

/* In the handler of one of these: wait, if there is a reason. */
void user_stay_park(struct user_part *p);

/* End all those that wait. */
void user_stay_end_others(struct user_part *p);

/* ---- stay_signals.c: in the task ---- */

/* Of those not in @mask, let through the ones with the default action; or block all again. */
void user_stay_admit_signals(uint64_t mask);
void user_stay_block_signals(void);

/* Handlers, timers and their signals */
void user_stay_reset_signals(void);

/* ---- stay_task.c: in the task ---- */

/* Becomes the program; or returns for the system call to be made again. */
void user_stay_main(struct user_stay *e);

/* When all has been checked, in the first thread. */
void user_stay_commit(struct user_stay *e);

/*
 * Has the calling thread nothing that only the kernel could take from it, and no registered
 * rseq area any more? @leader: it is the first one, and has been handed over to.
 */
int user_stay_is_ready(const struct user_stay *e, int leader);

/*
 * Has the calling thread what only the kernel's execve() can give or take: labels for its next
 * program or for what it makes, keyrings of its own, a page at address 0?
 */
int user_stay_needs_kernel(void);

/* In the first thread, when no other one runs: has it the rights to go on? */
int user_stay_ask(struct user_stay *e);

/*
 * The same, when its partition has nothing but the loader: wait for the turn to map, see turns.h.
 * If the space ends meanwhile there is none.
 */
void user_stay_ask_for_turn(struct user_stay *e);

/* In the thread that has made the call: user_stay_call_others() */
int user_stay_ask_for_others(struct user_stay *e);

/* ---- stay_robust.c: in the task ---- */

/* Does the thread hold a robust mutex with priority inheritance? */
int user_stay_inherits_priority(void);

/* Its robust mutexes have lost their owner. */
void user_stay_give_up_locks(void);

/* ---- stay_leader.c: in the task ---- */

/* Not in the first thread: have that go on, and end; or return if it can't. */
void user_stay_hand_over(struct user_stay *e);

/* In the first thread: an execve() that waits for it, or NULL. */
struct user_stay *user_stay_take_over(struct user_part *p);

/* Go on with it, or return. Then the other thread gets it back. */
void user_stay_lead(struct user_stay *e);
void user_stay_give_back(struct user_part *p);

#endif /* PVAS_USER_STAY_H */
