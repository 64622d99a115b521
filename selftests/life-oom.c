// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a space of which the OOM killer has chosen a task. A tracer holds the task in its
 * exit, so that each test knows what happens first. And what a page fault that never ends, with
 * mmap_lock, holds up: neither the OOM reaper nor the end of other tasks.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "cgroup.h"
#include "packet_ring.h"
#include "pvas_test.h"
#include "silent_fuse.h"
#include "window.h"

#define USED (32 << 20)
#define LIMIT "4M"

static const struct rlimit no_core;

static void use_memory(void)
{
	char *p = mmap(NULL, USED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 1, USED);
	pt_say("r");
}

TASK(say_and_wait)
{
	pt_say("r");
	pause();
}

/*
 * A task that is past its start: one that maps something beside a fault that hangs waits for
 * mmap_lock as a writer, and all others behind it.
 */
static pid_t start_waiting(struct pvas_space *space, unsigned int index)
{
	int out[2] = { -1, -1 }, err = pipe(out);
	pid_t pid = pt_start_task_fd(space, index, "say_and_wait", out[1]);

	return !err && pid > 0 && pt_hear(out[0]) == 'r' ? pid : -1;
}

TASK(use_and_wait)
{
	use_memory();
	pause();
}

/*
 * It ends when its parent says so. 5.10 takes note of an exit before the place where a tracer
 * holds it, as later kernels do, only if there is another thread.
 */
TASK(use_and_exit)
{
	pt_start_threads(1);
	use_memory();
	pt_hear(atoi(pt_args[1]));
	_exit(0);
}

TASK(use_and_crash)
{
	setrlimit(RLIMIT_CORE, &no_core);
	pt_start_threads(1);
	use_memory();
	pt_hear(atoi(pt_args[1]));
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

/* How often it has happened in the group */
static long events(const char *group, const char *name)
{
	long n = pt_file_kib(cg_file(group, "memory.events"), name);

	return n < 0 ? 0 : n;
}

static bool wait_for_events(const char *group, const char *name, long n)
{
	int tries;

	for (tries = 0; tries < 1000 && events(group, name) < n; tries++)
		usleep(10000);
	return tries < 1000;
}

struct hit {
	char group[128];
	struct pvas_space *space;
	pid_t victim;
	pid_t limiter;
	int go[2];
};

/* A task of the group, which has its memory and ends when it is told, or -1 */
static pid_t start_in_group(struct hit *h, unsigned int index, const char *name)
{
	struct pvas_spawn_attr attr = {
		.size = sizeof(attr), .setup = enter_cgroup, .setup_arg = h->group,
	};
	char out[16], in[16];
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)name, out, in, NULL };
	int ready[2];
	pid_t pid;

	if (pipe(ready))
		return -1;
	snprintf(out, sizeof(out), "%d", ready[1]);
	snprintf(in, sizeof(in), "%d", h->go[0]);
	if (pvas_task_spawn(h->space, index, pt_self(), argv, environ, &attr, &pid) != (int)index ||
	    pt_hear(ready[0]) != 'r')
		return -1;
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static bool hold_at_exit(pid_t pid)
{
	return !ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXIT);
}

/* Waits until the task is in its exit. A signal on the way is passed on. */
static bool is_held(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8))
			return true;
		ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(status));
	}
	return false;
}

/* Its write returns when the group has less, or nobody is left to kill. */
static pid_t limit_memory(const char *group)
{
	pid_t pid = fork();

	if (!pid) {
		pt_write_file(cg_file(group, "memory.max"), LIMIT);
		_exit(0);
	}
	return pid;
}

/* The space's memory is charged there, and that is not to be why anything fails. */
static void lift_limit(struct hit *h)
{
	pt_kill(h->limiter);
	pt_write_file(cg_file(h->group, "memory.max"), "max");
}

static int hit_begin(struct hit *h)
{
	int err = make_cgroup("oom", h->group, sizeof(h->group)) ?:
		pt_write_file(cg_file(CG_ROOT, "cgroup.subtree_control"), "+memory");

	return err ?: pipe(h->go) ? -errno : 0;
}

static bool may_enter(struct hit *h)
{
	pid_t late = pt_start_task(h->space, 3, "succeed");

	return late > 0 && !pt_wait(late);
}

static void hit_end(struct hit *h)
{
	pvas_space_destroy(h->space);
	remove_cgroup(h->group);
}

#define HIT_BEGIN(h)								\
	PT_NEED_ROOT();								\
	if (hit_begin(h))							\
		SKIP(return, "no memory controller in cgroup2");		\
	/* Not before: hit_begin() takes us to a mount namespace of our own. */	\
	(h)->space = PT_SPACE()

/*
 * nobody enters a space once the OOM killer struck it, though the victim is not yet
 * gone: it would not see that memory again
 */
MODULE_TEST(oom_victim_held, "the launcher is the victim")
{
	struct hit h;

	HIT_BEGIN(&h);
	h.victim = start_in_group(&h, 1, "use_and_wait");
	ASSERT_LT(0, h.victim);
	ASSERT_TRUE(hold_at_exit(h.victim));
	h.limiter = limit_memory(h.group);
	ASSERT_TRUE(wait_for_events(h.group, "oom_kill ", 1));
	lift_limit(&h);
	EXPECT_FALSE(may_enter(&h));
	ASSERT_TRUE(is_held(h.victim));
	ptrace(PTRACE_CONT, h.victim, 0, 0);
	EXPECT_EQ(256 + SIGKILL, pt_wait(h.victim));
	hit_end(&h);
}

/* The OOM killer only marks a task that is already exiting, and does not kill it. */
static void choose_exiting(struct __test_metadata *_metadata, const char *name, int status)
{
	struct hit h;

	HIT_BEGIN(&h);
	h.victim = start_in_group(&h, 1, name);
	ASSERT_LT(0, h.victim);
	ASSERT_TRUE(hold_at_exit(h.victim));
	ASSERT_EQ(1, write(h.go[1], "g", 1));
	ASSERT_TRUE(is_held(h.victim));
	h.limiter = limit_memory(h.group);
	/* It is asked again and again, but first when nobody has been chosen. */
	ASSERT_TRUE(wait_for_events(h.group, "oom ", 2));
	lift_limit(&h);
	ptrace(PTRACE_CONT, h.victim, 0, 0);
	EXPECT_EQ(status, pt_wait(h.victim));
	EXPECT_EQ(0, events(h.group, "oom_kill "));
	EXPECT_FALSE(may_enter(&h));
	hit_end(&h);
}

/* nor when it was exiting by itself, and ends with status 0: the OOM reaper comes seconds later */
MODULE_TEST(oom_of_an_exit, "the launcher is the victim")
{
	choose_exiting(_metadata, "use_and_exit", 0);
}

/* nor when it ends by another signal */
MODULE_TEST(oom_of_a_crash, "the launcher is the victim")
{
	choose_exiting(_metadata, "use_and_crash", 256 + SIGSEGV);
}

/* nor when it has gone before the tasks that were killed with it, which can't find its mark */
MODULE_TEST(oom_victim_first, "the launcher is the victim")
{
	struct hit h;
	pid_t peer;

	HIT_BEGIN(&h);
	h.victim = start_in_group(&h, 1, "use_and_exit");
	ASSERT_LT(0, h.victim);
	peer = start_waiting(h.space, 2);
	ASSERT_LT(0, peer);
	ASSERT_TRUE(hold_at_exit(h.victim) && hold_at_exit(peer));
	ASSERT_EQ(1, write(h.go[1], "g", 1));
	ASSERT_TRUE(is_held(h.victim));
	h.limiter = limit_memory(h.group);
	ASSERT_TRUE(wait_for_events(h.group, "oom_kill ", 1));
	ASSERT_TRUE(is_held(peer));
	lift_limit(&h);
	ptrace(PTRACE_CONT, h.victim, 0, 0);
	EXPECT_EQ(0, pt_wait(h.victim));
	EXPECT_FALSE(may_enter(&h));
	ptrace(PTRACE_CONT, peer, 0, 0);
	EXPECT_EQ(256 + SIGKILL, pt_wait(peer));
	EXPECT_FALSE(may_enter(&h));
	hit_end(&h);
}

/* ---- a page fault that holds mmap_lock and waits for a file server ---- */

#define WAIT_MS "/sys/module/pvas/parameters/reclaim_wait_ms"
/* Longer than a worker tries before it waits for the lock */
#define WORKER_TRIES_S 3
#define PEERS 3
#define TRIES 400

static void read_hung_page(void)
{
	int fd = open(getenv(FUSE_FILE_ENV), O_RDONLY);
	volatile char *p = mmap(NULL, FUSE_PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	CHECK(p != MAP_FAILED);
	close(fd);
	if (p != MAP_FAILED)
		p[0];
}

TASK(read_hung_page)
{
	read_hung_page();
}

TASK(read_hung_page_when_told)
{
	pt_say("r");
	CHECK_EQ('g', pt_hear(atoi(pt_args[1])));
	read_hung_page();
}

/* Says how large its partition is. */
TASK(map_ring)
{
	uint64_t size = pt_size();

	CHECK(packet_ring_map());
	CHECK_EQ(sizeof(size), (size_t)write(atoi(pt_args[0]), &size, sizeof(size)));
	CHECK_EQ('g', pt_hear(atoi(pt_args[1])));
}

/* Bounded: without the server, nothing else would end it. */
static bool ends(pid_t pid)
{
	int tries;

	for (tries = 0; tries < TRIES; tries++, usleep(50000))
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return true;
	return false;
}

static bool is_small(const char *group)
{
	char buf[64];
	int tries;

	for (tries = 0; tries < TRIES; tries++, usleep(50000))
		if (!pt_read_file(cg_file(group, "memory.current"), buf, sizeof(buf)) &&
		    atol(buf) < USED / 2)
			return true;
	return false;
}

static char old_wait_ms[32];

static void wait_shorter(void)
{
	pt_read_file(WAIT_MS, old_wait_ms, sizeof(old_wait_ms));
	pt_write_file(WAIT_MS, "500");
}

/* tasks that are killed end, although memory of one that ended before can't be unmapped yet */
MODULE_TEST(hung_fault_and_peers, "no worker of the kernel unmaps")
{
	struct pvas_space *space;
	const char *dir = pt_tmpdir();
	pid_t server, peer[PEERS], hung;
	int i;

	PT_NEED_ROOT();
	server = fuse_begin(dir, FUSE_HANGS);
	if (server < 0)
		SKIP(return, "no FUSE: %s", strerror(-server));
	space = PT_SPACE();
	for (i = 0; i < PEERS; i++) {
		peer[i] = start_waiting(space, i + 1);
		ASSERT_LT(0, peer[i]);
	}
	hung = pt_start_task(space, PEERS + 1, "read_hung_page");
	ASSERT_LT(0, hung);
	ASSERT_TRUE(fuse_has_stopped(server));
	wait_shorter();
	for (i = 0; i < PEERS; i++) {
		if (i)
			sleep(WORKER_TRIES_S);
		kill(peer[i], SIGKILL);
		EXPECT_TRUE(ends(peer[i]));
	}
	/* All are freed when it can be. */
	pt_kill(server);
	EXPECT_EQ(256 + SIGBUS, pt_wait(hung));
	for (i = 0; i < TRIES && pvas_task_list(space, NULL, 0) > 0; i++)
		usleep(50000);
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	pt_write_file(WAIT_MS, old_wait_ms);
	pvas_space_destroy(space);
	umount2(dir, MNT_DETACH);
}

struct told {
	pid_t pid;
	int out[2], in[2];
};

static bool start_told(struct told *t, struct pvas_space *space, unsigned int index,
		       const char *name)
{
	return !pipe(t->out) && !pipe(t->in) &&
	       pt_start_task_fds(space, index, name, t->out[1], t->in[0], &t->pid) >= 0;
}

/*
 * nor if the fault begins when a worker has just found the lock free, for an area whose end
 * can wait for others
 */
MODULE_TEST(hung_fault_in_between, "no worker of the kernel unmaps")
{
	struct told reader, ring;
	struct pvas_space *space;
	const char *dir = pt_tmpdir();
	struct window window = { .map = -1 };
	pid_t server, peer;
	uint64_t size;
	int i;

	PT_NEED_ROOT();
	i = packet_ring();
	if (i < 0)
		SKIP(return, "this kernel has no packet rings: %s", strerror(errno));
	close(i);
	i = window_make_at(&window, "vm_munmap", WINDOW_ARG2);
	if (window_is_missing(i))
		SKIP(return, "no BPF program can be attached: %s", strerror(-i));
	ASSERT_EQ(0, i);
	server = fuse_begin(dir, FUSE_HANGS);
	if (server < 0)
		SKIP(return, "no FUSE: %s", strerror(-server));
	space = PT_SPACE();
	peer = start_waiting(space, 1);
	ASSERT_LT(0, peer);
	ASSERT_TRUE(start_told(&reader, space, 2, "read_hung_page_when_told"));
	ASSERT_EQ('r', pt_hear(reader.out[0]));
	ASSERT_TRUE(start_told(&ring, space, 3, "map_ring"));
	ASSERT_EQ(sizeof(size), (size_t)read(ring.out[0], &size, sizeof(size)));
	wait_shorter();
	/* Only what has a slow area is unmapped as a whole. */
	window_hold(&window, size);
	ASSERT_EQ(1, write(ring.in[1], "g", 1));
	EXPECT_EQ(0, pt_wait(ring.pid));
	ASSERT_TRUE(window_is_open(&window));
	ASSERT_EQ(1, write(reader.in[1], "g", 1));
	ASSERT_TRUE(fuse_has_stopped(server));
	ASSERT_TRUE(window_close(&window));
	sleep(WORKER_TRIES_S);
	kill(peer, SIGKILL);
	EXPECT_TRUE(ends(peer));
	pt_kill(server);
	EXPECT_EQ(256 + SIGBUS, pt_wait(reader.pid));
	for (i = 0; i < TRIES && pvas_task_list(space, NULL, 0) > 0; i++)
		usleep(50000);
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	window_break(&window);
	pt_write_file(WAIT_MS, old_wait_ms);
	pvas_space_destroy(space);
	umount2(dir, MNT_DETACH);
}

/* the OOM reaper takes the victim's memory then, and the OOM killer no other process */
MODULE_TEST(hung_fault_and_oom, "the launcher is the victim")
{
	const char *dir = pt_tmpdir();
	pid_t server, peer, hung;
	struct hit h;

	PT_NEED_ROOT();
	if (hit_begin(&h))
		SKIP(return, "no memory controller in cgroup2");
	server = fuse_begin(dir, FUSE_HANGS);
	if (server < 0)
		SKIP(return, "no FUSE: %s", strerror(-server));
	h.space = PT_SPACE();
	h.victim = start_in_group(&h, 1, "use_and_wait");
	ASSERT_LT(0, h.victim);
	peer = start_waiting(h.space, 2);
	ASSERT_LT(0, peer);
	hung = pt_start_task(h.space, 3, "read_hung_page");
	ASSERT_LT(0, hung);
	ASSERT_TRUE(fuse_has_stopped(server));
	wait_shorter();
	kill(peer, SIGKILL);
	EXPECT_TRUE(ends(peer));
	sleep(WORKER_TRIES_S);
	h.limiter = limit_memory(h.group);
	EXPECT_TRUE(wait_for_events(h.group, "oom_kill ", 1));
	EXPECT_TRUE(is_small(h.group));
	lift_limit(&h);
	pt_kill(server);
	EXPECT_EQ(256 + SIGKILL, pt_wait(h.victim));
	EXPECT_EQ(256 + SIGKILL, pt_wait(hung));
	pt_write_file(WAIT_MS, old_wait_ms);
	umount2(dir, MNT_DETACH);
	hit_end(&h);
}

PT_MAIN()
