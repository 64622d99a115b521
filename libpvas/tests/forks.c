// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: a partition counts as being copied until the thread that forks has done so,
 * and no longer, also if its number becomes another's; meanwhile no peer forks or maps. This
 * process is the task; there is no space. Needs root, to give a process a number.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "helpers.h"
#include "user/worker.h"
#include "kselftest_harness.h"

#define SHIFT	32
#define FIRST	1	/* nothing is mapped there */

static struct user_part parts[FIRST + 2];
static struct pvas_space space = { .shift = SHIFT, .first = FIRST, .last = FIRST + 1 };
static struct user_space u = {
	.space = &space, .parts = parts, .fork_lock = PTHREAD_MUTEX_INITIALIZER, .listener = -1,
};
static struct user_part *const mine = &parts[FIRST], *const peers = &parts[FIRST + 1];

static void __attribute__((noreturn)) spin(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		;
}

/* A process with that number, which is soon free. It spins, and is as large as this one. */
static pid_t start_as(pid_t number)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number, .set_tid_size = 1,
	};
	int tries = 5000;
	pid_t pid;

	do {
		pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	} while (pid < 0 && errno == EEXIST && --tries && !usleep(1000));
	if (!pid)
		spin();
	return pid;
}

/* A thread that runs that partition's code is about to fork. */
static int prepare(struct user_part *p, pid_t tid)
{
	const struct user_request r = { .u = &u, .part = p, .tid = tid };
	int err = user_fork_prepare(&r, 0);

	user_fork_answered(&r);
	return err;
}

/* The peer forks: is our memory marked, so that its child gets none? */
static int is_kept_from_peers_fork(void)
{
	mine->marked = 0;
	prepare(peers, getpid());
	user_fork_returned(&u, peers, getpid());
	return mine->marked;
}

static pid_t forker;
static int forker_ends;

/* A thread in a fork runs. */
static void *run(void *unused)
{
	__atomic_store_n(&forker, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&forker_ends, __ATOMIC_ACQUIRE))
		;
	return unused;
}

static pid_t start_forker(pthread_t *thread)
{
	if (pthread_create(thread, NULL, run, NULL))
		return -1;
	while (!__atomic_load_n(&forker, __ATOMIC_ACQUIRE))
		;
	return forker;
}

static void end_forker(pthread_t thread)
{
	__atomic_store_n(&forker_ends, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

static int begin(void)
{
	mine->state = peers->state = PVAS_PART_RUNNING;
	mine->pid = getpid();
	peers->pid = 1;
	parts[FIRST].base = (uint64_t)FIRST << SHIFT;
	parts[FIRST + 1].base = (uint64_t)(FIRST + 1) << SHIFT;
	return user_proc_begin() ?: user_caller_begin();
}

static int64_t processor_time(pthread_t thread)
{
	struct timespec t;
	clockid_t clock;

	if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &t))
		return -1;
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

#define COPY_BEGINS_NS	5000000
#define COPY_BEGUN_NS	100000000

/*
 * It may still be forking, as long as it has not run for long; nor does a peer that has waited for
 * it in vain mark it then.
 */
TEST(a_thread_that_runs)
{
	pthread_t thread;
	int64_t before;

	ASSERT_EQ(begin(), 0);
	start_forker(&thread);
	before = processor_time(thread);
	prepare(mine, forker);
	EXPECT_EQ(is_kept_from_peers_fork(), processor_time(thread) - before >= COPY_BEGUN_NS);
	EXPECT_GE(processor_time(thread) - before, COPY_BEGINS_NS);
	while (processor_time(thread) - before < 2 * COPY_BEGUN_NS)
		usleep(1000);
	EXPECT_EQ(is_kept_from_peers_fork(), 1);
	end_forker(thread);
}

/* A process that is in clone(), and does not get on until it is killed */
static pid_t start_blocked(void)
{
	pid_t pid = fork();
	char text[8] = "";
	int tries = 5000, number = 0;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0)) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		_exit(1);
	}
	while (tries-- && number != SYS_clone && !usleep(1000)) {
		user_proc_read(pid, "syscall", text, sizeof(text));
		number = atoi(text);
	}
	return pid;
}

#define TURN_MS (LONGEST_TURN_NS / 1000000)
#define MAPPING_MS (LONGEST_MAPPING_NS / 1000000)

static int64_t begin_to_map(const struct user_part *part)
{
	int64_t begin = now_ns();

	user_map_begin(&u, part, NULL);
	return (now_ns() - begin) / 1000000;
}

/* But not for ever */
TEST(peers_wait_for_a_fork)
{
	pid_t other;
	int64_t begun;

	ASSERT_EQ(begin(), 0);
	EXPECT_LT(begin_to_map(peers), TURN_MS);
	user_map_end(&u);
	other = start_blocked();
	begun = now_ns();
	prepare(mine, other);
	EXPECT_LT(begin_to_map(mine), TURN_MS);
	user_map_end(&u);
	EXPECT_GE(begin_to_map(peers) + 5, TURN_MS - (now_ns() - begun) / 1000000);
	user_map_end(&u);
	EXPECT_GE((now_ns() - begun) / 1000000, TURN_MS);
	/* Nobody waits for it again, and it is copied along. */
	EXPECT_LT(begin_to_map(peers), TURN_MS);
	user_map_end(&u);
	EXPECT_EQ(is_kept_from_peers_fork(), 0);
	EXPECT_EQ(mine->nr_forks, 1);
	kill(other, SIGKILL);
	end_of(other);
	EXPECT_EQ(is_kept_from_peers_fork(), 1);
	EXPECT_EQ(mine->nr_forks, 0);
}

static unsigned int count_forks(void)
{
	unsigned int n;

	pthread_mutex_lock(&u.fork_lock);
	n = user_fork_count(&u, mine);
	pthread_mutex_unlock(&u.fork_lock);
	return n;
}

/* Nor for one whose thread has no processor, although it may not have begun. */
TEST(peers_of_a_thread_that_starves)
{
	struct user_fork *const f = mine->forks;
	pthread_t thread;

	ASSERT_EQ(begin(), 0);
	prepare(mine, start_forker(&thread));
	f->time = INT64_MAX;
	f->since = now_ns();
	EXPECT_EQ(count_forks(), 1);
	EXPECT_EQ(f->early, 1);
	f->since -= LONGEST_STARVED_NS;
	EXPECT_EQ(count_forks(), 1);
	EXPECT_EQ(f->early, 0);
	end_forker(thread);
}

/* The time in which the launcher is stopped, before it has answered, does not count. */
TEST(a_launcher_that_is_stopped)
{
	struct user_fork *const f = mine->forks;
	struct user_request r = { .u = &u, .part = mine, .id = 7 };

	ASSERT_EQ(begin(), 0);
	r.tid = start_blocked();
	EXPECT_EQ(user_fork_prepare(&r, 1), 0);
	f->since = f->until = 0;
	EXPECT_EQ(count_forks(), 1);
	EXPECT_EQ(f->early, 1);
	user_fork_answered(&r);
	EXPECT_GE(now_ns(), f->since);
	EXPECT_GT(f->until, now_ns());
	f->since -= LONGEST_TURN_NS;
	EXPECT_EQ(count_forks(), 0);
	kill(r.tid, SIGKILL);
	end_of(r.tid);
}

TEST(a_fork_waits_for_what_is_being_mapped)
{
	int64_t begun;

	ASSERT_EQ(begin(), 0);
	user_map_begin(&u, peers, NULL);
	begun = now_ns();
	prepare(mine, getpid());
	EXPECT_GE((now_ns() - begun) / 1000000, MAPPING_MS);
	user_fork_returned(&u, mine, getpid());
	/* Nor does another fork, for the same call. */
	begun = now_ns();
	prepare(mine, getpid());
	EXPECT_LT((now_ns() - begun) / 1000000, MAPPING_MS);
	user_fork_returned(&u, mine, getpid());
	/* But for one that begins later */
	user_map_begin(&u, peers, NULL);
	begun = now_ns();
	prepare(mine, getpid());
	EXPECT_GE((now_ns() - begun) / 1000000, MAPPING_MS);
	user_fork_returned(&u, mine, getpid());
	/* Or that one begins when another has just ended */
	EXPECT_EQ(u.turns.stuck, 2);
	user_map_end(&u);
	user_map_begin(&u, peers, NULL);
	EXPECT_EQ(u.turns.stuck, 1);
	user_map_end(&u);
	user_map_end(&u);
	begun = now_ns();
	prepare(mine, getpid());
	EXPECT_LT((now_ns() - begun) / 1000000, MAPPING_MS);
	user_fork_returned(&u, mine, getpid());
	EXPECT_EQ(u.turns.forking, 0);
	EXPECT_EQ(u.turns.mapping, 0);
}

/* A program that is being mapped counts as one call, and its loader's calls don't wait. */
TEST(a_fork_waits_for_a_program)
{
	const struct user_request r = { .u = &u, .tid = getpid() };
	int64_t begun;

	ASSERT_EQ(begin(), 0);
	user_load_begin(&u, peers);
	begun = now_ns();
	prepare(mine, getpid());
	EXPECT_GE((now_ns() - begun) / 1000000, MAPPING_MS);
	EXPECT_EQ(u.turns.stuck, 1);
	user_fork_returned(&u, mine, getpid());
	user_load_end(peers);
	prepare(mine, getpid());
	EXPECT_EQ(u.turns.stuck, 0);
	user_fork_returned(&u, mine, getpid());
	u.turns.launcher_since = now_ns() + 3600 * 1000000000LL;
	u.turns.forking = 1;
	user_load_begin(&u, peers);
	peers->loads_since += 3600 * 1000000000LL;
	u.abandoned = 1;
	EXPECT_EQ(user_map_begin(&u, peers, &r), 0);
	EXPECT_EQ(u.turns.mapping, 1);
	EXPECT_EQ(user_map_begin(&u, mine, &r), -ESRCH);
}

/* A listener to which no caller's request is known */
static int start_listener(void)
{
	struct sock_filter allow = { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW };
	const struct sock_fprog prog = { .len = 1, .filter = &allow };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &prog);
}

/* With a fork that is not going to end, and a call that maps, too */
static void nothing_begins(struct __test_metadata *_metadata)
{
	const struct user_request r = { .u = &u, .part = peers, .tid = getpid() };

	u.turns.launcher_since = now_ns() + 3600 * 1000000000LL;
	u.turns.forking = 1;
	EXPECT_EQ(user_map_begin(&u, peers, &r), -ESRCH);
	EXPECT_EQ(u.turns.mapping, 0);
	u.turns.mapping = 1;
	EXPECT_EQ(user_fork_prepare(&r, 0), -ESRCH);
	EXPECT_EQ(peers->nr_forks, 0);
	EXPECT_EQ(u.turns.mapping, 1);
	EXPECT_EQ(u.turns.forking, 1);
	EXPECT_EQ(u.turns.first, NULL);
}

/* It neither maps nor forks later, nor keeps its partition. */
TEST(a_caller_that_is_dead)
{
	ASSERT_EQ(begin(), 0);
	u.listener = start_listener();
	ASSERT_GE(u.listener, 0);
	nothing_begins(_metadata);
}

TEST(a_space_that_ends)
{
	ASSERT_EQ(begin(), 0);
	u.abandoned = 1;
	nothing_begins(_metadata);
}

/* More threads than there is room for: all can fork, and nothing is lost for ever. */
TEST(many_that_fork)
{
	pid_t blocked[FORKS_MAX], i;

	ASSERT_EQ(begin(), 0);
	for (i = 0; i < FORKS_MAX; i++) {
		blocked[i] = start_blocked();
		prepare(mine, blocked[i]);
	}
	prepare(mine, blocked[0]);
	prepare(mine, getpid());
	EXPECT_EQ(mine->exempt, 0);
	EXPECT_EQ(is_kept_from_peers_fork(), 0);
	for (i = 0; i < FORKS_MAX; i++) {
		kill(blocked[i], SIGKILL);
		end_of(blocked[i]);
	}
	prepare(mine, getpid());
	user_fork_returned(&u, mine, getpid());
	EXPECT_EQ(u.turns.forking, 0);
}

static void *reserve_peers(void *unused)
{
	user_fork_begin(&u, peers);
	return unused;
}

/* A partition is not reserved in the middle of a fork, which looks at its marks. */
TEST(a_partition_that_is_reserved)
{
	pthread_t thread;
	int i, changed = 0;

	ASSERT_EQ(begin(), 0);
	peers->exempt = 1;
	pthread_mutex_lock(&u.fork_lock);
	ASSERT_EQ(pthread_create(&thread, NULL, reserve_peers, NULL), 0);
	for (i = 0; i < 50; i++) {
		usleep(1000);
		changed |= !__atomic_load_n(&peers->exempt, __ATOMIC_RELAXED);
	}
	EXPECT_EQ(changed, 0);
	pthread_mutex_unlock(&u.fork_lock);
	pthread_join(thread, NULL);
	EXPECT_EQ(peers->exempt, 0);
	EXPECT_EQ(peers->marked, 1);
}

TEST(a_number_that_is_anothers)
{
	pthread_t thread;
	pid_t tid, other;

	ASSERT_EQ(begin(), 0);
	tid = start_forker(&thread);
	prepare(mine, tid);
	EXPECT_EQ(mine->nr_forks, 1);
	end_forker(thread);
	other = start_as(tid);
	if (other < 0)
		SKIP(return, "can't choose a process' number: %s", strerror(errno));
	EXPECT_EQ(other, tid);
	usleep(50000);
	EXPECT_EQ(is_kept_from_peers_fork(), 1);
	EXPECT_EQ(mine->nr_forks, 0);
	kill(other, SIGKILL);
	end_of(other);
}

/* Of a process that shares a task's memory, and is none: its number says nothing. */
TEST(a_process_number_that_is_anothers)
{
	pid_t other;

	ASSERT_EQ(begin(), 0);
	other = start_blocked();
	prepare(mine, other);
	EXPECT_EQ(mine->nr_forks, 1);
	EXPECT_EQ(is_kept_from_peers_fork(), 0);
	mine->forks[0].until = 0;
	EXPECT_EQ(is_kept_from_peers_fork(), 1);
	kill(other, SIGKILL);
	end_of(other);
}

TEST_HARNESS_MAIN
