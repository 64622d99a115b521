// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend's queue of requests of callers outside: what they are charged for, and that
 * none is forgotten. The requests are made up, there is no space.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"
#include "user/worker.h"
#include "kselftest_harness.h"

#define CREDIT		5000000
#define DEAD		5000
#define BURN_NS		50000000
#define SHARE		4		/* as in queue.c */
#define COST_GUESS	1000000
#define HELPERS		OUTSIDE_MAX

static struct user_space u;
static int served, go;

static void begin(void)
{
	user_init_condition(&u.queue.added);
	user_init_condition(&u.pool_changed);
	pthread_mutex_init(&u.pool_lock, NULL);
	u.listener = -1;	/* so nobody waits for an answer */
	u.queue.credit = CREDIT;
	u.queue.refilled = now_ns();
}

static void defer(int n)
{
	struct user_request *r;

	while (n--) {
		r = calloc(1, sizeof(*r));
		r->u = &u;
		user_queue_defer(&u, r);
	}
}

static void end(pthread_t *threads, int n)
{
	pthread_mutex_lock(&u.pool_lock);
	u.abandoned = 1;
	pthread_cond_broadcast(&u.queue.added);
	pthread_mutex_unlock(&u.pool_lock);
	while (n--)
		pthread_join(threads[n], NULL);
}

static int left(void)
{
	int n;

	pthread_mutex_lock(&u.pool_lock);
	n = u.queue.deferred.first || u.queue.nr_outside;
	pthread_mutex_unlock(&u.pool_lock);
	return n;
}

/* Callers that have been killed leave the others' share of the processor alone. */
TEST(the_dead_pay_nothing)
{
	pthread_t helper;

	begin();
	defer(DEAD);
	u.nr_helpers_live = 1;
	ASSERT_EQ(pthread_create(&helper, NULL, user_helper_main, &u), 0);
	while (left())
		usleep(1000);
	EXPECT_GE(u.queue.credit, CREDIT);
	end(&helper, 1);
}

/* A listener of seccomp, for which no request waits */
static int listener(void)
{
	struct sock_filter allow = { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW };
	struct sock_fprog program = { 1, &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* Nobody serves the list. Callers come, are killed, and leave nothing in it. */
TEST(the_dead_take_no_memory)
{
	const struct user_request r = { .u = &u };
	struct mallinfo2 before, after;
	int i;

	begin();
	u.listener = listener();
	ASSERT_GE(u.listener, 0);
	before = mallinfo2();
	for (i = 0; i < 20 * DEAD; i++) {
		ASSERT_EQ(user_queue_add(&u, &r), 0);
		defer(1);
	}
	after = mallinfo2();
	EXPECT_LT(after.uordblks - before.uordblks, 1000 * sizeof(r));
	close(u.listener);
	user_queue_free(&u);
}

static void burn(int64_t ns)
{
	struct timespec t;
	int64_t now, until = 0;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		now = t.tv_sec * 1000000000LL + t.tv_nsec;
		until = until ? until : now + ns;
	} while (now < until);
}

/* A helper that comes back only at the end */
static void *serve(void *arg)
{
	const int64_t *ns = arg;
	struct user_request *r;

	while ((r = user_queue_next(&u))) {
		burn(*ns);
		__atomic_add_fetch(&served, 1, __ATOMIC_SEQ_CST);
		while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
			usleep(1000);
		user_queue_done(&u, r, 1);
		free(r);
	}
	return NULL;
}

/* Until each of @n helpers has asked for a request, and has one or waits for it */
static void all_have_asked(unsigned int n)
{
	unsigned int asked;

	do {
		usleep(1000);
		pthread_mutex_lock(&u.pool_lock);
		asked = u.queue.nr_taken + u.nr_helpers_idle;
		pthread_mutex_unlock(&u.pool_lock);
	} while (asked < n);
}

static void finish(pthread_t *helpers)
{
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	while (left())
		usleep(1000);
	end(helpers, HELPERS);
}

/* Expensive calls wait until those before them are paid for, however many helpers there are. */
TEST(few_begin_at_once)
{
	pthread_t helpers[HELPERS];
	int64_t ns = 1, from, last = 0;
	unsigned int i, taken;

	begin();
	from = u.queue.refilled;
	defer(HELPERS);
	for (i = 0; i < HELPERS; i++)
		ASSERT_EQ(pthread_create(&helpers[i], NULL, serve, &ns), 0);
	all_have_asked(HELPERS);
	pthread_mutex_lock(&u.pool_lock);
	taken = u.queue.nr_taken;
	last = now_ns();
	pthread_mutex_unlock(&u.pool_lock);
	EXPECT_GT(taken, 0);
	EXPECT_LE(taken, (CREDIT + (last - from) / SHARE) / COST_GUESS + 1);
	finish(helpers);
}

/* A call that goes on is charged for: the next ones don't wait for its end to be fewer. */
TEST(running_calls_are_charged)
{
	pthread_t helpers[HELPERS];
	int64_t ns = BURN_NS, from, credit;
	int i;

	begin();
	from = u.queue.refilled;
	defer(1);
	ASSERT_EQ(pthread_create(&helpers[0], NULL, serve, &ns), 0);
	while (!__atomic_load_n(&served, __ATOMIC_SEQ_CST))
		usleep(1000);
	defer(1);
	for (i = 1; i < HELPERS; i++)
		ASSERT_EQ(pthread_create(&helpers[i], NULL, serve, &ns), 0);
	all_have_asked(HELPERS);
	pthread_mutex_lock(&u.pool_lock);
	credit = u.queue.credit;
	EXPECT_LE(credit, CREDIT + (now_ns() - from) / SHARE - BURN_NS);
	pthread_mutex_unlock(&u.pool_lock);
	finish(helpers);
}

/* ---- a call that hangs ---- */

#define BEHIND	20	/* others */

static void *no_worker(void *arg)
{
	while (!__atomic_load_n(&u.abandoned, __ATOMIC_ACQUIRE))
		usleep(1000);
	user_worker_ends(&u);
	return NULL;
}

/* The first request hangs. */
static void *serve_or_hang(void *arg)
{
	struct user_request *r;

	while ((r = user_queue_next(&u))) {
		if (!__atomic_fetch_add(&served, 1, __ATOMIC_SEQ_CST))
			while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
				usleep(1000);
		user_queue_done(&u, r, 1);
		free(r);
	}
	user_helper_ends(&u);
	return NULL;
}

static void no_credit(void)
{
	pthread_mutex_lock(&u.pool_lock);
	u.queue.credit = -CREDIT;
	u.queue.refilled = now_ns();
	pthread_mutex_unlock(&u.pool_lock);
}

/* @more helpers than the one of the pool are idle when the requests come. */
static void hang_first(struct __test_metadata *_metadata, unsigned int more)
{
	pthread_t helpers[HELPERS];
	unsigned int i;

	alarm(60);
	begin();
	u.wake = -1;
	ASSERT_EQ(user_proc_begin(), 0);
	ASSERT_EQ(user_reader_begin(), 0);
	u.ready = 1;
	ASSERT_EQ(user_workers_begin(&u, no_worker, serve_or_hang), 0);
	ASSERT_EQ(user_workers_wait(&u), 0);
	ASSERT_EQ(user_workers_ready(&u), 0);
	u.nr_helpers_live += more;
	for (i = 0; i < more; i++) {
		ASSERT_EQ(pthread_create(&helpers[i], NULL, serve_or_hang, NULL), 0);
	}
	all_have_asked(1 + more);
	no_credit();
	defer(1 + BEHIND);
	while (__atomic_load_n(&served, __ATOMIC_SEQ_CST) < 1 + BEHIND)
		usleep(1000);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	while (left())
		usleep(1000);
	EXPECT_EQ(user_workers_join(&u), 0);
	while (more--)
		pthread_join(helpers[more], NULL);
}

/* The helper that waits for credit takes it. Nobody makes a further call. */
TEST(hung_call_keeps_none_from_a_new_helper)
{
	hang_first(_metadata, 0);
}

TEST(hung_call_keeps_none_from_idle_helpers)
{
	hang_first(_metadata, 3);
}

/*
 * The first task's start reports that there are no workers: pvas_space_create() has not waited for
 * them. Nor are there any later, when the space is still there.
 */
TEST(no_worker_can_start)
{
	struct rlimit limit, none;

	if (getuid())
		SKIP(return, "needs another user id");
	begin();
	pthread_mutex_init(&u.lock, NULL);
	user_init_condition(&u.changed);
	u.wake = -1;
	ASSERT_EQ(user_proc_begin(), 0);
	ASSERT_EQ(user_workers_begin(&u, no_worker, serve_or_hang), 0);
	/* One that nobody else has, because the limit is of all processes of a user */
	ASSERT_EQ(setresuid(0x40000000 + getpid(), 0x40000000 + getpid(), 0), 0);
	ASSERT_EQ(getrlimit(RLIMIT_NPROC, &limit), 0);
	none = (struct rlimit){ 1, limit.rlim_max };
	ASSERT_EQ(setrlimit(RLIMIT_NPROC, &none), 0);
	pthread_mutex_lock(&u.lock);
	u.ready = 1;
	pthread_cond_broadcast(&u.changed);
	pthread_mutex_unlock(&u.lock);
	EXPECT_EQ(user_workers_ready(&u), -EAGAIN);
	ASSERT_EQ(setrlimit(RLIMIT_NPROC, &limit), 0);
	usleep(50000);
	EXPECT_EQ(u.nr_workers + u.nr_helpers, 0);
	EXPECT_EQ(user_workers_join(&u), 0);
}

#define STRANGERS	1	/* user_request.nr of these */

static int served_own;

/* As serve(), but at its turn a request is found to be a stranger's, and hangs. */
static void *serve_strangers(void *unused)
{
	struct user_request *r;

	while ((r = user_queue_next(&u))) {
		if (r->nr == STRANGERS && !r->stranger) {
			r->stranger = 1;
			if (!user_queue_admit(&u, r))
				continue;
		}
		__atomic_add_fetch(r->stranger ? &served : &served_own, 1, __ATOMIC_SEQ_CST);
		while (r->stranger && !__atomic_load_n(&go, __ATOMIC_ACQUIRE))
			usleep(1000);
		user_queue_done(&u, r, 1);
		free(r);
	}
	return unused;
}

static void defer_strangers(int n, int64_t owner)
{
	struct user_request *r;

	while (n--) {
		r = calloc(1, sizeof(*r));
		r->u = &u;
		r->nr = STRANGERS;
		r->owner = owner;
		user_queue_defer(&u, r);
	}
}

/* Those of one user hang: another's come to their turn. */
TEST(hung_strangers_keep_none_of_another_user)
{
	pthread_t helpers[HELPERS];
	int i;

	alarm(60);
	begin();
	u.queue.credit = INT64_MAX / 2;
	defer_strangers(HELPERS, 0);
	defer_strangers(1, 1);
	for (i = 0; i < HELPERS; i++)
		ASSERT_EQ(pthread_create(&helpers[i], NULL, serve_strangers, NULL), 0);
	while (__atomic_load_n(&served, __ATOMIC_SEQ_CST) < OWNER_MAX + 1)
		usleep(1000);
	usleep(100000);
	EXPECT_EQ(__atomic_load_n(&served, __ATOMIC_SEQ_CST), OWNER_MAX + 1);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	while (left())
		usleep(1000);
	end(helpers, HELPERS);
	EXPECT_EQ(u.queue.nr_strangers, 0);
	EXPECT_EQ(u.queue.nr_waiting, 0);
}

/* All places for strangers' calls are taken, and more of them wait. Others come to their turn. */
TEST(hung_strangers_keep_none_of_the_job)
{
	pthread_t helpers[HELPERS];
	int i;

	alarm(60);
	begin();
	u.queue.credit = INT64_MAX / 2;
	defer_strangers(2 * HELPERS, 0);
	for (i = 0; i < HELPERS; i++)
		ASSERT_EQ(pthread_create(&helpers[i], NULL, serve_strangers, NULL), 0);
	all_have_asked(HELPERS);
	defer(1);
	while (!__atomic_load_n(&served_own, __ATOMIC_SEQ_CST))
		usleep(1000);
	EXPECT_LE(__atomic_load_n(&served, __ATOMIC_SEQ_CST), STRANGERS_MAX);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&served, __ATOMIC_SEQ_CST) < 2 * HELPERS)
		usleep(1000);
	while (left())
		usleep(1000);
	end(helpers, HELPERS);
	EXPECT_EQ(u.queue.nr_strangers, 0);
}

TEST_HARNESS_MAIN
