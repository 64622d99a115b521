/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Forks and calls that map memory take turns.
 *
 * A fork copies what its peers have mapped since their memory was marked (fork.c). So, in the order
 * in which they begin, a fork waits for mapping calls of all tasks and for forks of its peers, and
 * a mapping call waits for forks of its peers. A fork counts for LONGEST_TURN_NS at most, or as
 * long as its thread has no processor, for LONGEST_STARVED_NS; mapping calls, which can wait for a
 * hung file server, for LONGEST_MAPPING_NS, once for all forks.
 *
 * A program that is being mapped, at the start of a task or in an execve() that stays, counts as
 * one mapping call: the loader's own need no worker.
 */
#ifndef PVAS_USER_TURNS_H
#define PVAS_USER_TURNS_H

#include <pthread.h>
#include <stdint.h>

#define LONGEST_TURN_NS		200000000LL
#define LONGEST_STARVED_NS	1000000000LL
#define LONGEST_MAPPING_NS	1000000000LL
#define LONGEST_WAIT_NS		10000000000LL	/* whatever happens */

struct user_part;
struct user_request;
struct user_space;

/**
 * struct user_turn - a fork or a mapping call that waits
 * @part:	of which partition; NULL: the launcher's fork
 * @is_fork:	it is a fork
 * @next:	the one that has begun after it
 */
struct user_turn {
	const struct user_part *part;
	int is_fork;
	struct user_turn *next;
};

/**
 * struct user_turns - whose turn it is
 * @mapping:	mapping calls in progress
 * @stuck:	so many of them have been waited for in vain
 * @forking:	forks that wait, or are not known to be complete
 * @ever:	there has been a fork
 * @launcher_since: when the launcher's fork began, 0 if it makes none; under fork_lock, as @first
 * @first:	who waits, in order
 */
struct user_turns {
	unsigned int mapping;
	unsigned int stuck;
	unsigned int forking;
	int ever;
	int64_t launcher_since;
	struct user_turn *first;
};

/*
 * A call that maps in @part begins, and ends. The caller has no lock that a mapping call takes.
 * Returns -ESRCH, and nothing has begun, if the caller of the request @r is dead or the space ends
 * before its turn has come; not without a request.
 */
int user_map_begin(struct user_space *u, const struct user_part *part,
		   const struct user_request *r);
void user_map_end(struct user_space *u);

/* In the turn of a call that maps: a program is going to be mapped. Its loader ends that; or: */
void user_load_begin(struct user_space *u, struct user_part *p);
void user_load_end(struct user_part *p);

/*
 * By this in the upper half of a descriptor the filter knows the loader's mappings. The kernel
 * ignores that half, where compilers leave 0 or all ones.
 */
static inline uint32_t user_loader_mark(uint64_t cookie)
{
	return ((uint32_t)cookie & INT32_MAX) | 1;
}

/*
 * The same under fork_lock, which is dropped meanwhile: waits for the turn of a fork in @part. It
 * lasts until its thread is among @part's forks, or has forked, or has no turn.
 */
int user_turn_begin(struct user_space *u, const struct user_part *part,
		    const struct user_request *r);
void user_turn_end(struct user_space *u);

#endif /* PVAS_USER_TURNS_H */
