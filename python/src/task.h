/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The block that each task of Python shows to its peers, and how they find it.
 *
 * A task exports one pointer, to its struct task_block. A reader that holds a record of
 * a peer (see record.h) has its address in a slot of its *own* block, as a hazard
 * pointer (M. Michael, "Hazard Pointers: Safe Memory Reclamation for Lock-Free Objects",
 * IEEE TPDS 2004): the owner looks into the blocks of all tasks that run before it frees a
 * record. So a reader that is killed holds nothing, with nobody to clean up after it.
 */
#ifndef PVAS_PYTHON_TASK_H
#define PVAS_PYTHON_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <pvas.h>

#define TASK_MAGIC	0x3130595053415650ULL	/* changes with the layout */
#define TASK_NAME	"pvas.python"
#define TASK_NAMES	PVAS_EXPORT_MAX
#define TASK_SLOTS	509

/* Readers never free them, so that the owner of a record can go through them at any time. */
struct task_slots {
	struct task_slots *next;
	uint64_t held[TASK_SLOTS];
};

/**
 * struct task_block - a task's side for its peers
 * @magic:	TASK_MAGIC, stored last
 * @leaving:	it is ending, and only waits for its readers: don't wait for it
 * @released:	futex: a reader has let go of a record of this task
 * @waiters:	threads that sleep on it
 * @slots:	what it holds of others
 * @names:	what it shares, for lists that people read; an empty name is free
 */
struct task_block {
	uint64_t magic;
	uint32_t leaving;
	uint32_t released;
	uint32_t waiters;
	uint32_t reserved;
	struct task_slots slots;
	char names[TASK_NAMES][PVAS_NAME_MAX + 1];
};

/* Which task, and not its successor in the same partition */
struct task_id {
	unsigned int index;
	unsigned int gen;
};

extern struct task_block task_block;

/* Returns 1 if the caller is a task, 0 if not, or -errno. To be called once. */
int task_init(void);

/* Is it a task still? A child made by fork() is none. */
int task_attached(void);

struct task_id task_self(void);

/* Ranks are counted by the partitions that tasks can have; -1: no such partition. */
int task_rank_of(unsigned int index);
int task_index_of(unsigned int rank);

/* Is it memory of another task? Also in a child made by fork(), and in a signal handler. */
int task_is_foreign(const void *addr);

/* In whose partition it is, or was: pvas_task_find() knows living tasks only. */
unsigned int task_index_at(const void *addr);

/* Has it ended? With a @gen of 0: has the first task that the partition gets? */
int task_ended(struct task_id id);

/* Will it end without doing more for others? Its memory is there still. */
int task_leaving(struct task_id id);

/* The block of a running task of Python; NULL: there is none. */
struct task_block *task_block_of(unsigned int index, struct task_id *id);

/* 0 and a slot that holds @address, or -ENOMEM */
int task_hold(uint64_t address, uint64_t **slot);

/* Let go of it, and tell the owner, whose block is @owner. */
void task_release(uint64_t *slot, struct task_block *owner, struct task_id id);

/*
 * All addresses that are held by any task, or by another one that isn't leaving if only the
 * @working count, in a block for free(); their number, or -errno
 */
int task_held(uint64_t **all, bool working);

/* Sleep until @word is not @value, at most @ms. */
void task_wait(uint32_t *word, uint32_t value, int ms);
void task_wake(uint32_t *word, int count);

#endif
