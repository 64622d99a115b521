// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: requests of callers that are not threads of a task.
 *
 * These are fork and vfork children, what they have started, and threads that run a
 * peer's code. Processes outside the space can make requests without end, and can make
 * each of them hang (its arguments can be in a file whose server doesn't answer). So
 * workers only receive their requests, and helpers handle them: first they identify the
 * caller, if that is quick; one outside, or not identified, then waits for its turn. Its calls get
 * a share of one processor, and only some of the helpers. The order is that of arrival,
 * and each thread can have one request, so all get an equal part of that share.
 *
 * Other users, sandboxes (by user namespaces, which they need for a file system of their own)
 * get half of these helpers only for calls that can hang, and so do all that install filters, and
 * each user a quarter of that: the tasks' own fork children don't wait for them, nor does one
 * user for another. A caller is told from others at its turn, for that has its cost, too.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "worker.h"

#define SHARE		4		/* a quarter of a processor */
#define CREDIT_MAX	10000000	/* for short bursts: 10 ms */
#define CREDIT_RESUME	500000		/* once it is used up; longer pauses, fewer of them */
#define COST_MIN	20000		/* to receive, queue and answer a request, and to make it */
#define COST_GUESS	1000000		/* until it is known; limits how many begin at once */
#define SWEEP_MIN	64		/* requests */

static void link_last(struct user_list *list, struct user_request *r)
{
	r->next = NULL;
	if (list->first)
		list->last->next = r;
	else
		list->first = r;
	list->last = r;
}

static unsigned int drop_dead(struct user_list *list)
{
	struct user_request *r = list->first, *next;
	unsigned int nr_kept = 0;

	list->first = NULL;
	for (; r; r = next) {
		next = r->next;
		if (user_request_is_dead(r)) {
			free(r);
			continue;
		}
		link_last(list, r);
		nr_kept++;
	}
	return nr_kept;
}

/*
 * A list that nobody serves at the moment is not to grow by callers that come and are killed:
 * no limit of theirs counts it. So it is at most twice as long as they are many, and the time
 * for each new request is constant.
 */
static void append(struct user_queue *q, struct user_list *list, struct user_request *r)
{
	link_last(list, r);
	if (++q->nr_waiting <= q->sweep_at)
		return;
	q->nr_waiting = drop_dead(&q->arrived) + drop_dead(&q->deferred) +
			drop_dead(&q->strangers);
	q->sweep_at = 2 * q->nr_waiting < SWEEP_MIN ? SWEEP_MIN : 2 * q->nr_waiting;
}

/* The one behind @before, or the first */
static struct user_request *take(struct user_queue *q, struct user_list *list,
				 struct user_request *before)
{
	struct user_request *r = before ? before->next : list->first;

	if (before)
		before->next = r->next;
	else
		list->first = r->next;
	if (list->last == r)
		list->last = before;
	q->nr_waiting--;
	q->nr_taken++;
	return r;
}

int user_queue_add(struct user_space *u, const struct user_request *r)
{
	struct user_request *copy = malloc(sizeof(*copy));
	int err = -EINTR;

	if (!copy)
		return -ENOMEM;
	*copy = *r;
	pthread_mutex_lock(&u->pool_lock);
	if (!u->abandoned) {
		err = 0;
		append(&u->queue, &u->queue.arrived, copy);
		if (u->nr_helpers_idle)
			pthread_cond_signal(&u->queue.added);
		else
			pthread_cond_broadcast(&u->pool_changed);
	}
	pthread_mutex_unlock(&u->pool_lock);
	if (err)
		free(copy);
	return err;
}

void user_queue_defer(struct user_space *u, struct user_request *r)
{
	struct user_queue *q = &u->queue;

	pthread_mutex_lock(&u->pool_lock);
	/* This helper can hang before it comes back to the list. */
	if (!q->deferred.first && u->nr_helpers_idle)
		pthread_cond_signal(&q->added);
	r->turn = q->nr_deferred++;
	append(q, &q->deferred, r);
	pthread_mutex_unlock(&u->pool_lock);
}

/* ---- what calls of callers outside cost ---- */

static int64_t time_of(clockid_t clock)
{
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void charge(struct user_queue *q, struct user_meter *m)
{
	int64_t used = time_of(m->clock) - m->begin;

	if (used <= m->charged)
		return;
	q->credit -= used - m->charged;
	m->charged = used;
}

/*
 * Charge them while they run: no number of expensive calls can begin before the first of
 * them is paid.
 */
static void charge_all(struct user_queue *q)
{
	unsigned int i;

	for (i = 0; q->nr_outside && i < OUTSIDE_MAX; i++)
		if (q->meters[i].clock)
			charge(q, &q->meters[i]);
}

static void begin_outside(struct user_queue *q, struct user_request *r)
{
	struct user_meter *m = q->meters;

	while (m->clock)
		m++;
	m->owner = r->stranger ? r->owner : -1;
	pthread_getcpuclockid(pthread_self(), &m->clock);
	m->begin = time_of(m->clock);
	m->charged = COST_GUESS;
	q->credit -= COST_GUESS;
	q->nr_outside++;
	q->nr_strangers += r->stranger;
	r->meter = m;
}

/* Returns in how many ns there is credit; 0: now. */
static int64_t refill(struct user_queue *q)
{
	int64_t now = now_ns();

	charge_all(q);
	q->credit += (now - q->refilled) / SHARE;
	if (q->credit > CREDIT_MAX)
		q->credit = CREDIT_MAX;
	q->refilled = now;
	if (q->credit <= 0)
		q->paused = 1;
	if (q->paused && q->credit < CREDIT_RESUME)
		return (CREDIT_RESUME - q->credit) * SHARE;
	q->paused = 0;
	return 0;
}

/* Has the owner of @r helpers left? */
static int has_share(const struct user_queue *q, const struct user_request *r)
{
	unsigned int i, n = 0;

	for (i = 0; i < OUTSIDE_MAX; i++)
		n += q->meters[i].clock && q->meters[i].owner == r->owner;
	return n < OWNER_MAX && q->nr_strangers < STRANGERS_MAX;
}

/* The first one that can be served, and the one before it. */
static struct user_request *next_stranger(const struct user_queue *q, struct user_request **before)
{
	struct user_request *r = q->strangers.first;

	*before = NULL;
	if (q->nr_strangers >= STRANGERS_MAX)
		return NULL;
	for (; r && !has_share(q, r); r = r->next)
		*before = r;
	return r;
}

static int can_serve_outside(const struct user_queue *q)
{
	struct user_request *before;

	return q->nr_outside < OUTSIDE_MAX && (q->deferred.first || next_stranger(q, &before));
}

/* The one that was deferred first, of those that can be served. */
static struct user_request *take_outside(struct user_queue *q)
{
	struct user_request *before;
	const struct user_request *own = q->deferred.first, *other = next_stranger(q, &before);

	if (!own || (other && (int)(other->turn - own->turn) < 0))
		return take(q, &q->strangers, before);
	return take(q, &q->deferred, NULL);
}

/* Others don't pay for a caller that has been killed. */
static void end_meter(struct user_queue *q, struct user_request *r, int waited)
{
	struct user_meter *m = r->meter;
	int64_t cost = time_of(m->clock) - m->begin + (int64_t)user_reader_cost();

	if (cost < COST_MIN)
		cost = COST_MIN;
	q->credit += m->charged - (waited ? cost : 0);
	m->clock = 0;
	q->nr_outside--;
	r->meter = NULL;
}

int user_queue_admit(struct user_space *u, struct user_request *r)
{
	struct user_queue *q = &u->queue;
	int admitted;

	pthread_mutex_lock(&u->pool_lock);
	admitted = has_share(q, r);
	if (admitted) {
		r->meter->owner = r->owner;
		q->nr_strangers++;
	} else {
		end_meter(q, r, 1);
		append(q, &q->strangers, r);
	}
	pthread_mutex_unlock(&u->pool_lock);
	return admitted;
}

void user_queue_done(struct user_space *u, struct user_request *r, int waited)
{
	struct user_queue *q = &u->queue;

	pthread_mutex_lock(&u->pool_lock);
	end_meter(q, r, waited);
	q->nr_strangers -= r->stranger;
	if (can_serve_outside(q) && u->nr_helpers_idle && q->credit >= CREDIT_RESUME)
		pthread_cond_signal(&q->added);
	pthread_mutex_unlock(&u->pool_lock);
}

/* ---- the next request ---- */

/* For @ns, or for ever if that is 0 */
static void wait_for_requests(struct user_space *u, int64_t ns)
{
	int64_t until = u->queue.refilled + ns;
	struct timespec t = { .tv_sec = until / 1000000000, .tv_nsec = until % 1000000000 };

	u->nr_helpers_idle++;
	u->queue.nr_paused += !!ns;
	if (ns)
		pthread_cond_timedwait(&u->queue.added, &u->pool_lock, &t);
	else
		pthread_cond_wait(&u->queue.added, &u->pool_lock);
	u->queue.nr_paused -= !!ns;
	u->nr_helpers_idle--;
}

struct user_request *user_queue_next(struct user_space *u)
{
	struct user_queue *q = &u->queue;
	struct user_request *r = NULL;
	int64_t wait;

	pthread_mutex_lock(&u->pool_lock);
	while (!u->abandoned && !r) {
		wait = 0;
		if (q->arrived.first) {
			r = take(q, &q->arrived, NULL);
		} else if (can_serve_outside(q) && !(wait = refill(q))) {
			r = take_outside(q);
			begin_outside(q, r);
		} else {
			wait_for_requests(u, wait);
		}
	}
	/* This helper can hang in it, and nobody may come for those behind it. */
	if (user_queue_stuck(u))
		pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
	return r;
}

/*
 * A helper that waits for credit takes what was deferred when there is some. Others that are
 * idle have to be woken.
 */
int user_queue_stuck(const struct user_space *u)
{
	const struct user_queue *q = &u->queue;

	return q->arrived.first || (can_serve_outside(q) && !q->nr_paused);
}

int user_queue_wake(struct user_space *u)
{
	if (u->nr_helpers_idle)
		pthread_cond_signal(&u->queue.added);
	return u->nr_helpers_idle > 0;
}

static void free_list(struct user_list *list)
{
	struct user_request *r;

	while ((r = list->first)) {
		list->first = r->next;
		free(r);
	}
}

void user_queue_free(struct user_space *u)
{
	free_list(&u->queue.arrived);
	free_list(&u->queue.deferred);
	free_list(&u->queue.strangers);
}
