// SPDX-License-Identifier: LGPL-2.1-or-later
/* The export areas: names, generations, races, waiting. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "clock.h"
#include "fake.h"
#include "pvas.h"
#include "rawsys.h"
#include "slot.h"
#include "kselftest_harness.h"

static char *const P1 = (char *)0x1111, *const P2 = (char *)0x2222;

static void *value(long v)
{
	return (void *)v;
}

FIXTURE(space)
{
	struct pvas_header *h;
	struct pvas_self a, b;
};

FIXTURE_SETUP(space)
{
	self->h = fake_header();
	self->a = fake_task(self->h, 3, 1);
	self->b = fake_task(self->h, 9, 2);
}

FIXTURE_TEARDOWN(space)
{
	munmap(self->h, self->h->length);
}

TEST_F(space, export_and_import)
{
	void *p = NULL;

	EXPECT_EQ(pvas_import_as(&self->b, 3, "x", &p), -ENOENT);
	EXPECT_EQ(pvas_export_as(&self->a, "x", P1), 0);
	EXPECT_EQ(pvas_import_as(&self->b, 3, "x", &p), 3);
	EXPECT_EQ(p, P1);
	EXPECT_EQ(pvas_import_as(&self->b, 9, "x", &p), -ENOENT);
	EXPECT_EQ(pvas_import_as(&self->a, 3, "x", &p), 3);
	EXPECT_EQ(pvas_export_as(&self->a, "null", NULL), 0);
	EXPECT_EQ(pvas_import_as(&self->b, 3, "null", &p), 3);
	EXPECT_EQ(p, NULL);
}

TEST_F(space, same_name_twice)
{
	void *p;

	EXPECT_EQ(pvas_export_as(&self->a, "x", P1), 0);
	EXPECT_EQ(pvas_export_as(&self->a, "x", P2), -EEXIST);
	EXPECT_EQ(pvas_export_as(&self->b, "x", P2), 0);
	EXPECT_EQ(pvas_import_as(&self->a, 9, "x", &p), 9);
	EXPECT_EQ(p, P2);
	EXPECT_EQ(pvas_import_as(&self->a, PVAS_ANY, "x", &p), 3);
	EXPECT_EQ(p, P1);
	fake_state(self->h, 3, PVAS_PART_ENDING);
	EXPECT_EQ(pvas_import_as(&self->a, PVAS_ANY, "x", &p), 9);
}

TEST_F(space, unexport)
{
	void *p;

	EXPECT_EQ(pvas_unexport_as(&self->a, "x"), -ENOENT);
	EXPECT_EQ(pvas_export_as(&self->a, "x", P1), 0);
	EXPECT_EQ(pvas_unexport_as(&self->b, "x"), -ENOENT);
	EXPECT_EQ(pvas_unexport_as(&self->a, "x"), 0);
	EXPECT_EQ(pvas_import_as(&self->b, 3, "x", &p), -ENOENT);
	EXPECT_EQ(pvas_export_as(&self->a, "x", P2), 0);
	EXPECT_EQ(pvas_import_as(&self->b, 3, "x", &p), 3);
	EXPECT_EQ(p, P2);
}

TEST_F(space, bad_names)
{
	char name[PVAS_NAME_MAX + 2];
	void *p;

	memset(name, 'n', sizeof(name));
	name[PVAS_NAME_MAX + 1] = 0;
	EXPECT_EQ(pvas_export_as(&self->a, "", P1), -EINVAL);
	EXPECT_EQ(pvas_export_as(&self->a, name, P1), -EINVAL);
	EXPECT_EQ(pvas_unexport_as(&self->a, name), -EINVAL);
	EXPECT_EQ(pvas_import_as(&self->a, 3, name, &p), -EINVAL);
	name[PVAS_NAME_MAX] = 0;
	EXPECT_EQ(pvas_export_as(&self->a, name, P1), 0);
	EXPECT_EQ(pvas_import_as(&self->b, 3, name, &p), 3);
	name[PVAS_NAME_MAX - 1] = 0;
	EXPECT_EQ(pvas_import_as(&self->b, 3, name, &p), -ENOENT);
	EXPECT_EQ(pvas_import_as(&self->a, 0, "x", &p), -EINVAL);
	EXPECT_EQ(pvas_import_as(&self->a, self->h->last + 1, "x", &p), -EINVAL);
	EXPECT_EQ(pvas_import_wait_as(&self->a, 0, "x", 0, &p), -EINVAL);
}

TEST_F(space, full)
{
	char name[16];
	void *p;
	int i;

	for (i = 0; i < PVAS_AREA_SLOTS; i++) {
		sprintf(name, "n%d", i);
		ASSERT_EQ(pvas_export_as(&self->a, name, value(i)), 0);
	}
	EXPECT_EQ(pvas_export_as(&self->a, "more", P1), -ENOSPC);
	EXPECT_EQ(pvas_export_as(&self->a, "n17", P1), -EEXIST);
	EXPECT_EQ(pvas_import_as(&self->b, 3, "more", &p), -ENOENT);
	for (i = 0; i < PVAS_AREA_SLOTS; i++) {
		sprintf(name, "n%d", i);
		ASSERT_EQ(pvas_import_as(&self->b, 3, name, &p), 3);
		EXPECT_EQ(p, value(i));
	}
	EXPECT_EQ(pvas_unexport_as(&self->a, "n17"), 0);
	EXPECT_EQ(pvas_export_as(&self->a, "more", P1), 0);
	EXPECT_EQ(pvas_export_as(&self->a, "n17", P1), -ENOSPC);
}

TEST_F(space, withdrawn_slots_are_used_again)
{
	char name[16];
	int i;

	for (i = 0; i < 100 * PVAS_AREA_SLOTS; i++) {
		sprintf(name, "n%d", i);
		ASSERT_EQ(pvas_export_as(&self->a, name, P1), 0);
		ASSERT_EQ(pvas_unexport_as(&self->a, name), 0);
	}
}

TEST_F(space, names_end_with_their_generation)
{
	struct pvas_self next;
	char name[16];
	void *p;
	int i;

	for (i = 0; i < PVAS_AREA_SLOTS; i++) {
		sprintf(name, "n%d", i);
		ASSERT_EQ(pvas_export_as(&self->a, name, P1), 0);
	}
	fake_state(self->h, 3, PVAS_PART_ENDING);
	EXPECT_EQ(pvas_import_as(&self->b, 3, "n1", &p), -ENOENT);
	fake_state(self->h, 3, PVAS_PART_FREE);
	next = fake_task(self->h, 3, 4);
	EXPECT_EQ(pvas_import_as(&self->b, 3, "n1", &p), -ENOENT);
	EXPECT_EQ(pvas_unexport_as(&next, "n1"), -ENOENT);
	EXPECT_EQ(pvas_export_as(&next, "n1", P2), 0);
	EXPECT_EQ(pvas_import_as(&self->b, 3, "n1", &p), 3);
	EXPECT_EQ(p, P2);
}

/* A task killed in the middle of an export leaves the lock and a BUSY slot. */
TEST_F(space, killed_exporter)
{
	struct pvas_area *area = pvas_header_area(self->h, 3);
	struct pvas_self next;
	struct pvas_name n;
	struct pvas_slot *s;
	void *p;

	ASSERT_EQ(pvas_name_set(&n, "x"), 0);
	area->lock = 1ULL << 32 | (uint32_t)getpid();	/* an existing tid, of an old gen */
	s = &area->slots[n.hash % PVAS_AREA_SLOTS];
	s->tag = pvas_slot_next(0, 1, PVAS_SLOT_BUSY);
	EXPECT_EQ(pvas_import_as(&self->b, 3, "x", &p), -ENOENT);
	next = fake_task(self->h, 3, 2);
	EXPECT_EQ(pvas_export_as(&next, "x", P1), 0);
	EXPECT_EQ(pvas_import_as(&self->b, 3, "x", &p), 3);
}

/* A vfork child is killed while it holds the lock: its parent must not block. */
TEST_F(space, dead_lock_holder)
{
	pid_t pid = fork();
	void *p;

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	pvas_header_area(self->h, 3)->lock = 1ULL << 32 | (uint32_t)pid;
	EXPECT_EQ(pvas_export_as(&self->a, "x", P1), 0);
	EXPECT_EQ(pvas_import_as(&self->b, 3, "x", &p), 3);
}

/* ---- races ---- */

struct race {
	struct pvas_self me;
	struct pvas_header *h;
	int wins;
	int stop;
	long bad;
	long seen;
};

static void *export_same(void *arg)
{
	struct race *r = arg;
	char name[16];
	int i;

	for (i = 0; i < 200; i++) {
		sprintf(name, "n%d", i);
		if (!pvas_export_as(&r->me, name, P1))
			__atomic_fetch_add(&r->wins, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

TEST_F(space, one_thread_wins_a_name)
{
	struct race r = { .me = self->a };
	pthread_t t[4];
	int i;

	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, export_same, &r);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	EXPECT_EQ(r.wins, 200);
}

/* The owner moves names between slots; the value always fits the name. */
static void *churn(void *arg)
{
	struct race *r = arg;
	char name[16];
	long i;

	for (i = 1; !__atomic_load_n(&r->stop, __ATOMIC_RELAXED); i++) {
		sprintf(name, "v%ld", i % 7);
		pvas_export_as(&r->me, name, value(i % 7 + 10 * (i % 1000)));
		sprintf(name, "v%ld", (i + 3) % 7);
		pvas_unexport_as(&r->me, name);
	}
	return NULL;
}

static void *watch(void *arg)
{
	struct race *r = arg;
	char name[16];
	void *p;
	long i;

	for (i = 0; !__atomic_load_n(&r->stop, __ATOMIC_RELAXED); i++) {
		sprintf(name, "v%ld", i % 7);
		if (pvas_import_as(&r->me, 3, name, &p) != 3)
			continue;
		__atomic_fetch_add(&r->seen, 1, __ATOMIC_RELAXED);
		if ((long)p % 10 != i % 7)
			__atomic_fetch_add(&r->bad, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

TEST_F(space, readers_never_see_a_torn_slot)
{
	struct race r = { .me = self->a };
	pthread_t w, t[2];

	pthread_create(&w, NULL, churn, &r);
	pthread_create(&t[0], NULL, watch, &r);
	pthread_create(&t[1], NULL, watch, &r);
	sleep(1);
	__atomic_store_n(&r.stop, 1, __ATOMIC_RELAXED);
	pthread_join(w, NULL);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	EXPECT_GT(r.seen, 100);
	EXPECT_EQ(r.bad, 0);
}

/* Owners are killed in the middle of an export, repeatedly: nothing hangs. */
TEST_F(space, killed_owners_leave_no_trace)
{
	struct pvas_self me;
	char name[16];
	int gen, i;
	pid_t pid;
	void *p;

	for (gen = 10; gen < 60; gen++) {
		me = fake_task(self->h, 5, gen);
		pid = fork();
		if (!pid) {
			for (i = 0;; i++) {
				sprintf(name, "n%d", i % 50);
				pvas_export_as(&me, name, value(gen));
				pvas_unexport_as(&me, name);
			}
		}
		usleep(1000 + gen * 37);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	me = fake_task(self->h, 5, gen);
	for (i = 0; i < 50; i++) {
		sprintf(name, "n%d", i);
		EXPECT_EQ(pvas_import_as(&self->a, 5, name, &p), -ENOENT);
		EXPECT_EQ(pvas_export_as(&me, name, P1), 0);
	}
}

/* ---- waiting ---- */

static void *export_later(void *arg)
{
	struct race *r = arg;

	usleep(30000);
	pvas_export_as(&r->me, "late", P2);
	return NULL;
}

static void *end_later(void *arg)
{
	struct race *r = arg;

	usleep(30000);
	fake_state(r->h, r->me.index, PVAS_PART_ENDING);
	return NULL;
}

TEST_F(space, wait_for_a_name)
{
	struct race r = { .me = self->a };
	int64_t t0 = now_ms();
	pthread_t t;
	void *p;

	pthread_create(&t, NULL, export_later, &r);
	EXPECT_EQ(pvas_import_wait_as(&self->b, 3, "late", 10000, &p), 3);
	EXPECT_EQ(p, P2);
	EXPECT_LT(now_ms() - t0, 5000);
	pthread_join(t, NULL);
	EXPECT_EQ(pvas_header_area(self->h, 3)->exports.waiters, 0);
	EXPECT_EQ(pvas_import_wait_as(&self->b, 3, "late", 0, &p), 3);
}

TEST_F(space, wait_for_any)
{
	struct race r = { .me = self->a };
	pthread_t t;
	void *p;

	pthread_create(&t, NULL, export_later, &r);
	EXPECT_EQ(pvas_import_wait_as(&self->b, PVAS_ANY, "late", -1, &p), 3);
	EXPECT_EQ(p, P2);
	pthread_join(t, NULL);
}

TEST_F(space, wait_times_out)
{
	int64_t t0 = now_ms();
	void *p;

	EXPECT_EQ(pvas_import_wait_as(&self->b, 3, "never", 0, &p), -ETIMEDOUT);
	EXPECT_EQ(pvas_import_wait_as(&self->b, 3, "never", 120, &p), -ETIMEDOUT);
	EXPECT_GE(now_ms() - t0, 120);
	EXPECT_EQ(pvas_import_wait_as(&self->b, PVAS_ANY, "never", 60, &p), -ETIMEDOUT);
	/* Partition 20 has had no task yet, so the call waits for one. */
	EXPECT_EQ(pvas_import_wait_as(&self->b, 20, "never", 60, &p), -ETIMEDOUT);
}

TEST_F(space, wait_sees_the_owner_end)
{
	struct race r = { .me = self->a, .h = self->h };
	pthread_t t;
	void *p;

	pthread_create(&t, NULL, end_later, &r);
	EXPECT_EQ(pvas_import_wait_as(&self->b, 3, "never", -1, &p), -EOWNERDEAD);
	pthread_join(t, NULL);
	fake_state(self->h, 3, PVAS_PART_FREE);
	EXPECT_EQ(pvas_import_wait_as(&self->b, 3, "never", -1, &p), -EOWNERDEAD);
}

TEST_F(space, wait_for_a_task_that_starts_late)
{
	pid_t pid = fork();
	void *p;

	if (!pid) {
		struct pvas_self me = { self->h, 30, 77 };

		usleep(30000);
		pvas_header_part(self->h, 30)->gen = 77;
		fake_state(self->h, 30, PVAS_PART_ARMED);
		usleep(80000);
		fake_task(self->h, 30, 77);
		pvas_export_as(&me, "late", P1);
		pause();
	}
	EXPECT_EQ(pvas_import_wait_as(&self->b, 30, "late", 10000, &p), 30);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- the table ---- */

TEST_F(space, part_info)
{
	struct pvas_task_info info;

	pvas_partition_info(self->h, 9, &info);
	EXPECT_EQ(info.index, 9);
	EXPECT_EQ(info.state, PVAS_TASK_RUNNING);
	EXPECT_EQ(info.gen, 2);
	EXPECT_EQ(info.pid, getpid());
	EXPECT_EQ(info.base, (void *)(9UL << 36));
	EXPECT_EQ(info.length, 1UL << 36);
}

TEST(entries)
{
	EXPECT_EQ(pvas_header_entries(32), PVAS_MAX_TASKS + 2);
	EXPECT_EQ(pvas_header_entries(35), 4096);
	EXPECT_EQ(pvas_header_entries(36), 2048);
	EXPECT_EQ(pvas_header_entries(43), 16);
}

/* The test itself is not a task. */
TEST(outside)
{
	struct pvas_task_info info;
	void *p;

	errno = 7;
	EXPECT_EQ(pvas_task_get_index(), -ESRCH);
	EXPECT_EQ(pvas_space_get_id(NULL), 0);
	EXPECT_EQ(pvas_name_export("x", NULL), -ESRCH);
	EXPECT_EQ(pvas_name_unexport("x"), -ESRCH);
	EXPECT_EQ(pvas_name_import(1, "x", &p), -ESRCH);
	EXPECT_EQ(pvas_name_import_wait(1, "x", -1, &p), -ESRCH);
	EXPECT_EQ(pvas_task_get(1, &info), -ESRCH);
	EXPECT_EQ(pvas_task_find(&info), -ESRCH);
	EXPECT_EQ(pvas_partition_get(1, &p, NULL), -ESRCH);
	EXPECT_EQ(pvas_task_list(NULL, NULL, 0), -ESRCH);
	EXPECT_EQ(pvas_space_get_bounds(NULL, NULL, NULL, NULL), -ESRCH);
	EXPECT_EQ(errno, 7);
}

TEST_HARNESS_MAIN
