/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * User backend: far memory. The tasks' large mappings lie in the far parts of their partitions,
 * which the pager (../far_ops.h) provides; all other memory is as ever.
 *
 *	far.c		calls that map, unmap and change far memory
 *	far_args.c	which memory a system call's arguments mean
 *	far_hold.c	far memory in system calls that the pager can't serve
 *	far_io.c	of these, long transfers from and to files
 *	far_robust.c	mutexes of threads that end
 *	far_seen.c	what others may see
 */
#ifndef PVAS_USER_FAR_H
#define PVAS_USER_FAR_H

#include "../far_ops.h"
#include "worker.h"

#define NR_FUTEX_WAITV	449	/* 5.16 */
#define NR_STATMOUNT	457	/* 6.8 */
#define NR_LISTMOUNT	458

struct user_far_held;

/**
 * struct user_far - the far memory of a space
 * @ops:	the pager
 * @threshold:	mappings of so many bytes are far
 * @length:	of each far part
 * @rows:	partitions that have one, from the first on
 * @kernel:	the pager serves the kernel's faults: nothing has to be held for calls
 * @told_full:	the user knows that there is no more
 * @told_held:	the user knows that a call could not be served
 * @lock:	protects @held
 * @held:	what is held for calls
 * @nr_held:	of these, how many; read without the lock
 */
struct user_far {
	const struct pvas_far_ops *ops;
	uint64_t threshold, length;
	unsigned int rows;
	int kernel;
	int told_full, told_held;
	pthread_mutex_t lock;
	struct user_far_held *held;
	unsigned int nr_held;
};

/* The next space of this process has far memory if libpvas_set_far() was called. 0 or -errno */
int user_far_begin(struct user_space *u);
void user_far_finish(struct user_space *u);

/* A partition was reserved: set its far part. */
void user_far_begin_part(const struct user_space *u, struct user_part *p);
/* Its task is gone: free that. 0: a store has a page of it still, call again. */
int user_far_end_part(struct user_space *u, const struct user_part *p);

/* Is it in a far part, of any partition? */
int user_far_has(const struct user_space *u, uint64_t addr);

/*
 * A task's call, with the partition's lock not held. Returns whether it is answered: *@value is
 * the result, or @r->continued is set.
 */
int user_far_call(struct user_request *r, int64_t *value);

/* ---- far_args.c ---- */

/**
 * struct user_far_piece - memory that a system call uses
 * @write:	the kernel may write there
 */
struct user_far_piece {
	uint64_t addr, len;
	int write;
};

/**
 * struct user_far_list - all pieces of a call that lie in far parts
 * @piece:	to be freed
 * @err:	they could not be found out: -ENOMEM
 */
struct user_far_list {
	struct user_space *u;
	struct user_far_piece *piece;
	unsigned int count, room;
	int err;
};

/* One piece more, if it is far. */
void user_far_add(struct user_far_list *list, uint64_t addr, uint64_t len, int write);

/* Read from the task's memory, far or not. Whether all was there */
int user_far_fetch(const struct user_far_list *list, uint64_t from, void *to, size_t len);

/* ---- far_robust.c: the mutexes that threads have which end by this call ---- */
void user_far_locks(const struct user_request *r, struct user_far_list *list);

void user_far_pieces(const struct user_request *r, struct user_far_list *list);

/* ---- far_hold.c ---- */

/* Bring in what the call uses, and hold it while the kernel makes the call. 0 or -errno. */
int64_t user_far_hold(struct user_request *r);

/* A thread, or all of the process, ends: hold the robust mutexes that they have. */
void user_far_hold_locks(struct user_request *r);

/* The thread makes another call: the last one is over. */
void user_far_returned(struct user_far *f, pid_t tid);

/* All threads of the task are gone. */
void user_far_forget(struct user_far *f, const struct user_part *p);

void user_far_free_holds(struct user_far *f);

/* ---- far_io.c ---- */

/*
 * A transfer between a file and more far memory than can be held: make it here, in pieces.
 * Returns whether it was, with its result in *@value.
 */
int user_far_transfer(const struct user_request *r, int64_t *value);

#endif
