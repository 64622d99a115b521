// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every allocation that can fail does, one after the other: the kernel's fault
 * injection lets the n-th allocation of a call fail, for n = 1, 2, 3, ... until
 * the call makes fewer than n. Each failure must give an error that says so,
 * leave nothing behind, and the same call must work the next time. faults-end.c has
 * the ends of tasks and spaces, which can't fail.
 *
 * Needs a kernel with CONFIG_FAILSLAB and CONFIG_FAIL_PAGE_ALLOC, as the debug
 * kernel is; Debian's are not.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fail_nth.h"
#include "kselftest_harness.h"
#include "pvas_test.h"

#define MAX_NTH		2000	/* more than an exec makes: then it is a failure */
#define RW		(PROT_READ | PROT_WRITE)

/* ---- create ---- */

/**
 * struct creation - a space that is created with an allocation failing
 * @fd:		of fail-nth, in the creator
 * @raw:	it
 * @reached:	there were as many; shared with the creator
 * @spaces:	how many others there are
 * @pause_ms:	before each, so that the last one's hooks are gone
 */
struct creation {
	int fd;
	struct pt_raw *raw;
	bool *reached;
	int spaces;
	unsigned int pause_ms;
};

static int before_create(void *arg)
{
	struct fail_attempt *a = arg;
	struct creation *c = a->arg;

	c->fd = fail_open_nth(0);
	if (c->fd < 0)
		return -errno;
	c->raw->nth_fd = c->fd;
	snprintf(c->raw->nth_text, sizeof(c->raw->nth_text), "%u", a->nth);
	return 0;
}

static int create_once(struct fail_attempt *a)
{
	struct creation *c = a->arg;
	struct pt_raw raw;
	int err;

	usleep(c->pause_ms * 1000);
	*c->reached = true;
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = before_create;
	raw.prepare_arg = a;
	c->raw = &raw;
	err = pt_raw_create(&raw);
	*c->reached = *raw.nth_left && atoi(raw.nth_left) == 0;
	if (!err && fail_spawn(&raw) < 0)
		err = -ENOTRECOVERABLE;
	pt_raw_close(&raw);
	while (waitpid(-1, NULL, 0) > 0)
		;
	if (fail_spaces_become(c->spaces) != c->spaces) {
		say("create, allocation %u: a space is left", a->nth);
		return -ENOTRECOVERABLE;
	}
	return *c->reached ? err : err ? -ENOTRECOVERABLE : -ENODATA;
}

static int sweep_create(int spaces, unsigned int pause_ms)
{
	struct creation c = { .spaces = spaces, .pause_ms = pause_ms };

	c.reached = mmap(NULL, 4096, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return fail_sweep("create", (struct fail_attempt){ .once = create_once, .arg = &c });
}

/* The hooks are in place: another space has them. */
FAULT_TEST(create)
{
	struct pt_raw other;
	int failed;

	ASSERT_EQ(0, pt_raw_make(&other));
	failed = sweep_create(pt_spaces(), 0);
	EXPECT_LE(2, failed);
	TH_LOG("%d allocations made it fail", failed);
	pt_raw_close(&other);
	EXPECT_EQ(0, fail_spaces_become(0));
}

/* ---- arm, attach, open, close ---- */

static int open_device(void __attribute__((unused)) *arg)
{
	int fd = pt_open();

	if (fd < 0)
		return -errno;
	return close(fd) ? -errno : 0;
}

static int arm(void *arg)
{
	struct pt_raw *raw = arg;
	int err = pt_raw_arm(raw->fd, 0, raw->create.first, 0);

	return err ? err : pt_raw_arm(raw->fd, 0, 0, PVAS_SPAWN_CANCEL);
}

static int arm_and_die(void *arg)
{
	struct pt_raw *raw = arg;

	return pt_raw_arm(raw->fd, 0, raw->create.first, 0);
}

static int query(void *arg)
{
	static struct pvas_task tasks[16];
	struct pvas_query q = {
		.size = sizeof(q), .tasks = (uintptr_t)tasks, .count = PT_ARRAY_SIZE(tasks),
	};

	return pt_ioctl(*(int *)arg, PVAS_IOC_QUERY, &q);
}

FAULT_TEST(open_arm_query)
{
	struct pt_raw raw;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_LT(0, fail_sweep_child("open", open_device, NULL));
	EXPECT_LT(1, fail_sweep_child("arm", arm, &raw));
	EXPECT_LT(1, fail_sweep_child("arm and die", arm_and_die, &raw));
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	pid = fail_spawn(&raw);
	ASSERT_LT(0, pid);
	EXPECT_LT(0, fail_sweep_child("query", query, &raw.fd));
	EXPECT_EQ(1, pt_raw_count(raw.fd));
	pt_kill(pid);
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	pt_raw_close(&raw);
	EXPECT_EQ(0, fail_spaces_become(0));
}

static const char key[] = "faults";

static int attach_by_key(void __attribute__((unused)) *arg)
{
	struct pvas_attach attach = {
		.size = sizeof(attach), .key = (uintptr_t)key, .key_len = sizeof(key),
	};
	int fd = pt_open(), err;

	if (fd < 0)
		return -errno;
	err = pt_ioctl(fd, PVAS_IOC_ATTACH, &attach);
	if (!err)
		err = pt_raw_arm(fd, 0, attach.first, 0);
	close(fd);
	return err;
}

FAULT_TEST(attach_and_arm)
{
	struct pt_raw raw;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.create.flags = PVAS_CREATE_KEY;
	raw.create.key = (uintptr_t)key;
	raw.create.key_len = sizeof(key);
	ASSERT_EQ(0, pt_raw_create(&raw));
	EXPECT_LT(1, fail_sweep_child("attach and arm", attach_by_key, NULL));
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	pt_raw_close(&raw);
	EXPECT_EQ(0, fail_spaces_become(0));
}

/* ---- exec ---- */

/* An exec with the nth allocation failing; -errno */
static int exec_with_nth(void *arg)
{
	const unsigned int *nth = arg;
	int fd = fail_open_nth(0), err;

	pt_self();
	if (fd < 0 || fail_set_nth(fd, *nth))
		return -ENOTRECOVERABLE;
	err = fail_exec(NULL);
	fail_set_nth(fd, 0);
	return err;
}

/* Is the puppet there, or has the exec killed it? 0: there, or what it died of. */
static int puppet_status(struct pt_raw *raw, pid_t pid)
{
	long limit = now_ms() + pt_timeout() * 1000L / 2, ret;
	bool asked = false;
	int status;

	/* It may be about to die: a call that it answers tells. */
	while (now_ms() < limit) {
		asked = asked || pt_raw_ask(raw, raw->create.first, SYS_getpid, (long[6]){ 0 });
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
		if (asked && pt_raw_answer(raw, raw->create.first, &ret))
			return ret == pid ? 0 : -1;
		usleep(10000);
	}
	return -1;
}

FAULT_TEST(exec)
{
	unsigned int nth, refused = 0, killed = 0;
	bool done = false;
	struct pt_raw raw;
	int status, fd;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	for (nth = 1; !done && nth < MAX_NTH; nth++) {
		pid = pt_raw_spawn_by(&raw, raw.create.first, exec_with_nth, &nth);
		if (pid < 0) {
			ASSERT_TRUE(fail_proper(pid)) TH_LOG("allocation %u: %d", nth, pid);
			refused++;
		} else {
			status = puppet_status(&raw, pid);
			ASSERT_TRUE(status == 0 || status == SIGKILL || status == SIGSEGV ||
				    status == SIGBUS)
				TH_LOG("allocation %u: status %d", nth, status);
			killed += status != 0;
			fd = status ? -1 : fail_open_nth(pid);
			done = !status && fd >= 0 && !fail_reached(fd);
			close(fd);
			if (!status)
				pt_kill(pid);
		}
		ASSERT_EQ(0, pt_raw_count(raw.fd)) TH_LOG("allocation %u", nth);
	}
	EXPECT_TRUE(done);
	EXPECT_LT(10, refused);
	TH_LOG("%u refused, %u killed, of %u", refused, killed, nth - 2);
	pt_raw_close(&raw);
	EXPECT_EQ(0, fail_spaces_become(0));
}

/* ---- in a task: its children, threads, mappings, and its end ---- */

/* A child that can't leave its peers' memory is killed before it runs: pvas_fix_copy(). */
static int do_fork(void __attribute__((unused)) *arg)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(7);
	status = pt_wait(pid);
	return status == 7 ? 0 : status == 256 + SIGKILL ? -ENOMEM : -ECHILD;
}

/* A guest that can't be counted is killed before it runs: see pvas_add_guest(). */
static int do_vfork(void __attribute__((unused)) *arg)
{
	pid_t pid = vfork();
	int status;

	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(7);
	status = pt_wait(pid);
	return status == 7 ? 0 : status == 256 + SIGKILL ? -ENOMEM : -ECHILD;
}

static void *nothing(void *arg)
{
	return arg;
}

static int do_thread(void __attribute__((unused)) *arg)
{
	pthread_t t;
	int err = pthread_create(&t, NULL, nothing, NULL);

	return err ? -err : -pthread_join(t, NULL);
}

static int do_map(void __attribute__((unused)) *arg)
{
	char *p = mmap(NULL, 1 << 20, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q;
	int err = 0;

	if (p == MAP_FAILED)
		return -errno;
	if (mprotect(p + 4096, 4096, PROT_NONE))
		err = -errno;
	q = mremap(p + 8192, 8192, 1 << 20, MREMAP_MAYMOVE);
	if (q == MAP_FAILED)
		err = -errno;
	else
		while (munmap(q, 1 << 20) && errno == ENOMEM)
			;
	while (munmap(p, 1 << 20) && errno == ENOMEM)
		;
	return err;
}

static int do_brk(void __attribute__((unused)) *arg)
{
	if (sbrk(1 << 20) == (void *)-1)
		return -errno;
	/* Memory that can't be given back still belongs to the task. */
	return sbrk(-(1 << 20)) == (void *)-1 ? -errno : 0;
}

/* At least @least allocations must have made it fail, or the test does not test. */
static void sweep_inside(const char *what, int (*fn)(void *arg), int least)
{
	int failed = fail_sweep(what, (struct fail_attempt){ .once = fail_here, .fn = fn });

	say("%s: %d allocations made it fail", what, failed);
	CHECK(failed >= least);
}

/* A stack that can't grow is a SIGSEGV, rightly, so it does before. */
static void grow_stack(void)
{
	volatile char stack[256 << 10];
	size_t i;

	for (i = sizeof(stack); i; i -= 4096)
		stack[i - 1] = 1;
}

TASK(fail_inside)
{
	grow_stack();
	sweep_inside("fork", do_fork, 5);
	sweep_inside("vfork", do_vfork, 3);
	sweep_inside("thread", do_thread, 1);
	sweep_inside("mmap and others", do_map, 1);
	sweep_inside("brk", do_brk, 0);
	CHECK_EQ(0, do_fork(NULL));
	CHECK_EQ(0, do_vfork(NULL));
	CHECK_EQ(0, do_thread(NULL));
}

FAULT_TEST(in_a_task)
{
	/*
	 * The kernel writes a thread's rseq area after it was preempted. If that page
	 * can't be had, as after a fork, the answer is SIGSEGV, rightly.
	 */
	setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
	EXPECT_EQ(0, pt_run_task("fail_inside"));
	EXPECT_EQ(0, fail_spaces_become(0));
}

/* ---- the hooks: last, because registering them takes seconds on a slow machine ---- */

/* The first space registers the hooks: half of them must not stay. */
FAULT_TEST(create_and_hook)
{
	int failed;

	ASSERT_EQ(0, fail_spaces_become(0));
	failed = sweep_create(0, 400);
	EXPECT_LE(3, failed);
	TH_LOG("%d allocations made it fail", failed);
}

FAULT_MAIN()
