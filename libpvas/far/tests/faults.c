// SPDX-License-Identifier: LGPL-2.1-or-later
/* Trouble around the pager: children, signals, memory freed too early. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "far_test.h"

#define PAGE ((size_t)65536)
#define RAM (64 * PAGE)
#define SIZE (256 * PAGE)

FIXTURE(faults)
{
	volatile char *p;
};

FIXTURE_VARIANT(faults)
{
	struct how how;
};

FIXTURE_VARIANT_ADD(faults, move) { { "zip", PAGE } };
FIXTURE_VARIANT_ADD(faults, no_move) { { "zip", PAGE, .no_move = true } };

FIXTURE_VARIANT_ADD(faults, r3) { { "zip", PAGE, .protocol = "r3" } };
FIXTURE_VARIANT_ADD(faults, r58) { { "zip", PAGE, .protocol = "r58" } };
FIXTURE_VARIANT_ADD(faults, r77) { { "zip", PAGE, .protocol = "r77" } };
FIXTURE_VARIANT_ADD(faults, r77_no_move) { { "zip", PAGE, .no_move = true, .protocol = "r77" } };

FIXTURE_SETUP(faults)
{
	ASSERT_EQ(0, open_far(&variant->how, RAM, SIZE));
	ASSERT_EQ(0, pvas_far_alloc((void **)&self->p, SIZE));
	memset((char *)self->p, 3, SIZE);
}

FIXTURE_TEARDOWN(faults)
{
	pvas_far_close();
}

/* ---- children ---- */

TEST_F(faults, fork_child_has_none)
{
	pid_t pid = fork();
	void *q;
	int status;

	if (!pid) {
		if (pvas_far_alloc(&q, 1) != -ECHILD || pvas_far_open(NULL) != -ECHILD)
			_exit(1);
		_exit(self->p[SIZE - 1]);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGSEGV, WTERMSIG(status));
	EXPECT_EQ(3, self->p[0]);
}

TEST_F(faults, commands_can_be_run)
{
	EXPECT_EQ(0, system("test -d /"));
	EXPECT_EQ(3, self->p[0]);
}

/* ---- signals ---- */

static volatile char *in_handler;
static volatile int seen;

static void on_signal(int sig)
{
	(void)sig;
	seen = in_handler[0] + in_handler[SIZE / 2];
}

TEST_F(faults, touched_in_a_handler)
{
	in_handler = self->p;
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	EXPECT_EQ(6, seen);
}

/* ---- memory that goes away while threads page it ---- */

static __thread sigjmp_buf out;

static void on_segv(int sig)
{
	siglongjmp(out, sig);
}

#define THREADS 4
#define TOUCHES 64	/* of each thread, before the memory goes */
#define GONE_SECONDS 60	/* of a busy machine; no thread may need them */

static unsigned int touching;
static bool stop;

/* Touch at random until told to stop, or until the memory is gone: 1 */
static void *touch(void *arg)
{
	volatile char *p = arg;
	uint64_t seed = (uintptr_t)&seed;
	unsigned int n;

	if (sigsetjmp(out, 1))
		return (void *)1;
	for (n = 0; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); n++) {
		p[next_random(&seed) % (SIZE / 2)] += 1;
		if (n == TOUCHES)
			__atomic_fetch_add(&touching, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void touch_while(volatile char *p, void (*change)(volatile char *p), void **gone)
{
	pthread_t thread[THREADS];
	struct timespec until;
	int i;

	stop = false;
	touching = 0;
	signal(SIGSEGV, on_segv);
	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, touch, (char *)p);
	while (__atomic_load_n(&touching, __ATOMIC_ACQUIRE) < THREADS)
		usleep(1000);
	change(p);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += GONE_SECONDS;
	for (i = 0; i < THREADS; i++) {
		if (!pthread_timedjoin_np(thread[i], &gone[i], &until))
			continue;
		__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
		pthread_join(thread[i], &gone[i]);
	}
	signal(SIGSEGV, SIG_DFL);
}

static void free_far(volatile char *p)
{
	pvas_far_free((char *)p);
}

static void unmap_far(volatile char *p)
{
	munmap((char *)p, SIZE / 2);
}

/* A thread that still touches it gets a signal; the pager serves others as before. */
TEST_F(faults, freed_while_paged)
{
	volatile char *q;
	void *gone[THREADS];
	size_t i;
	int t;

	touch_while(self->p, free_far, gone);
	for (t = 0; t < THREADS; t++)
		EXPECT_EQ((void *)1, gone[t]);
	ASSERT_EQ(0, pvas_far_alloc((void **)&q, SIZE));
	for (i = 0; i < SIZE; i += PAGE)
		EXPECT_EQ(0, q[i]);
}

TEST_F(faults, unmapped_while_paged)
{
	void *gone[THREADS];
	size_t i;
	int t;

	touch_while(self->p, unmap_far, gone);
	for (t = 0; t < THREADS; t++)
		EXPECT_EQ((void *)1, gone[t]);
	for (i = SIZE / 2; i < SIZE; i += PAGE)
		EXPECT_EQ(3, self->p[i]);
}

/* The program drops memory, which it must not: no thread may hang. */
TEST_F(faults, dropped_by_the_program)
{
	size_t i;

	for (i = 0; i < 8 * PAGE; i += PAGE)
		self->p[i] = 4;
	madvise((char *)self->p, 8 * PAGE, MADV_DONTNEED);
	for (i = 0; i < 8 * PAGE; i += PAGE)
		EXPECT_EQ(0, self->p[i]);
	madvise((char *)self->p, 8 * PAGE, MADV_DONTNEED);
	for (i = 8 * PAGE; i < SIZE; i += PAGE)
		EXPECT_EQ(3, self->p[i]);
}

/* Moved memory would be no longer far, and read as zeros: an error instead. */
static void move_far(const struct how *how)
{
	volatile char *p;
	void *to;

	if (open_far(how, RAM, SIZE) || pvas_far_alloc((void **)&p, SIZE))
		_exit(10);
	memset((char *)p, 3, SIZE);
	to = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p = mremap((char *)p, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	_exit(p[0] == 3 ? 11 : 12);
}

TEST(moved_by_the_program)
{
	const struct how how = { "zip", PAGE };
	char said[200];
	int tube[2], status;
	ssize_t n;
	pid_t pid;

	ASSERT_EQ(0, pipe(tube));
	pid = fork();
	if (!pid) {
		dup2(tube[1], 2);
		move_far(&how);
	}
	close(tube[1]);
	n = read(tube[0], said, sizeof(said) - 1);
	said[n > 0 ? n : 0] = 0;
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(1, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	EXPECT_STREQ("pvas-far: the program has moved far memory by mremap(), which is not possible\n",
		     said);
	close(tube[0]);
}

TEST_HARNESS_MAIN
