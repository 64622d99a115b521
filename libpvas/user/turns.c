// SPDX-License-Identifier: LGPL-2.1-or-later
/* User backend: forks and calls that map memory take turns: see turns.h. */
#include <errno.h>
#include <time.h>

#include "clock.h"
#include "worker.h"

#define NAP_MIN_NS	20000
#define NAP_MAX_NS	500000

/* ---- who waits: under fork_lock ---- */

static void enter(struct user_turns *t, struct user_turn *turn)
{
	struct user_turn **end = &t->first;

	while (*end)
		end = &(*end)->next;
	*end = turn;
}

static void leave(struct user_turns *t, const struct user_turn *turn)
{
	struct user_turn **at = &t->first;

	while (*at != turn)
		at = &(*at)->next;
	*at = turn->next;
}

/* Has one begun before @turn that it has to wait for? */
static int is_behind(const struct user_turns *t, const struct user_turn *turn)
{
	const struct user_turn *other;

	for (other = t->first; other != turn; other = other->next)
		if (other->is_fork ? other->part != turn->part : turn->is_fork)
			return 1;
	return 0;
}

/* ---- forks that have had their turn ---- */

static int peer_forks(struct user_space *u, const struct user_part *own)
{
	unsigned int i, k;

	if (u->turns.launcher_since && own &&
	    now_ns() - u->turns.launcher_since < LONGEST_TURN_NS)
		return 1;
	for (i = u->space->first; i <= u->space->last; i++) {
		struct user_part *p = &u->parts[i];

		if (p == own || !p->nr_forks || !user_fork_count(u, p))
			continue;
		for (k = 0; k < p->nr_forks; k++)
			if (p->forks[k].early)
				return 1;
	}
	return 0;
}

static int is_loading(const struct user_part *p)
{
	return __atomic_load_n(&p->loading.active, __ATOMIC_SEQ_CST) != 0;
}

/* First the calls: one that begins to load ends as such only then. */
static unsigned int count_mapping(const struct user_space *u)
{
	unsigned int n = __atomic_load_n(&u->turns.mapping, __ATOMIC_SEQ_CST), i;

	for (i = u->space->first; i <= u->space->last; i++)
		n += is_loading(&u->parts[i]);
	return n;
}

/* As many as have ended are waited for again: whoever begins now is not to pass for one of them. */
static void settle(struct user_space *u)
{
	unsigned int stuck = __atomic_load_n(&u->turns.stuck, __ATOMIC_SEQ_CST), n;

	if (!stuck)
		return;
	n = count_mapping(u);
	while (n < stuck && !__atomic_compare_exchange_n(&u->turns.stuck, &stuck, n, 0,
							 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

/* Those that have once been waited for in vain may go on until one of them ends. */
static int others_map(struct user_space *u, int64_t since)
{
	const unsigned int n = count_mapping(u);
	struct user_turns *t = &u->turns;

	if (n < __atomic_load_n(&t->stuck, __ATOMIC_SEQ_CST) ||
	    now_ns() - since >= LONGEST_MAPPING_NS)
		__atomic_store_n(&t->stuck, n, __ATOMIC_SEQ_CST);
	return n > __atomic_load_n(&t->stuck, __ATOMIC_SEQ_CST);
}

static int must_wait(struct user_space *u, const struct user_turn *turn, int64_t since)
{
	if (turn->is_fork && others_map(u, since))
		return 1;
	return is_behind(&u->turns, turn) || peer_forks(u, turn->part);
}

static int wait_for_turn(struct user_space *u, struct user_turn *turn,
			 const struct user_request *r)
{
	struct timespec nap = { .tv_nsec = NAP_MIN_NS };
	const int64_t begin = now_ns();
	int given_up = 0;

	enter(&u->turns, turn);
	while (!given_up && must_wait(u, turn, begin) && now_ns() - begin < LONGEST_WAIT_NS) {
		pthread_mutex_unlock(&u->fork_lock);
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < NAP_MAX_NS)
			nap.tv_nsec *= 2;
		given_up = r && user_request_given_up(r);
		pthread_mutex_lock(&u->fork_lock);
	}
	leave(&u->turns, turn);
	return given_up ? -ESRCH : 0;
}

/* ---- for others ---- */

int user_turn_begin(struct user_space *u, const struct user_part *part,
		    const struct user_request *r)
{
	struct user_turn turn = { .part = part, .is_fork = 1 };

	__atomic_store_n(&u->turns.ever, 1, __ATOMIC_RELAXED);
	/* From here on no mapping call begins without fork_lock. */
	__atomic_add_fetch(&u->turns.forking, 1, __ATOMIC_SEQ_CST);
	return wait_for_turn(u, &turn, r);
}

void user_turn_end(struct user_space *u)
{
	__atomic_sub_fetch(&u->turns.forking, 1, __ATOMIC_SEQ_CST);
}

/* The loader has its turn already, as long as forks wait for it. */
static int has_turn(const struct user_part *p)
{
	return is_loading(p) && now_ns() - p->loads_since < LONGEST_MAPPING_NS;
}

int user_map_begin(struct user_space *u, const struct user_part *part,
		   const struct user_request *r)
{
	struct user_turn turn = { .part = part };
	int err;

	settle(u);
	__atomic_add_fetch(&u->turns.mapping, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&u->turns.forking, __ATOMIC_SEQ_CST) || has_turn(part))
		return 0;
	__atomic_sub_fetch(&u->turns.mapping, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&u->fork_lock);
	err = wait_for_turn(u, &turn, r);
	if (!err)
		__atomic_add_fetch(&u->turns.mapping, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&u->fork_lock);
	return err;
}

void user_map_end(struct user_space *u)
{
	__atomic_sub_fetch(&u->turns.mapping, 1, __ATOMIC_SEQ_CST);
}

void user_load_begin(struct user_space *u, struct user_part *p)
{
	p->loads_since = now_ns();
	p->loading.mark = user_loader_mark(u->cookie);
	__atomic_store_n(&p->loading.active, 1, __ATOMIC_SEQ_CST);
}

void user_load_end(struct user_part *p)
{
	__atomic_store_n(&p->loading.active, 0, __ATOMIC_RELEASE);
}
