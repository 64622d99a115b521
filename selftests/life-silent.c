// SPDX-License-Identifier: GPL-2.0-only
/*
 * A FUSE server that never answers, and those that have nothing to do with its file: the
 * rest of the machine, and the other tasks of the space.
 */
#define _GNU_SOURCE
#include <linux/sched.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "silent_fuse.h"

#define LARGE (64UL << 20)
#define SMALL_KIB 16384
#define AT 0x40000000UL
#define RW (PROT_READ | PROT_WRITE)
#define WAIT_MS "/sys/module/pvas/parameters/reclaim_wait_ms"

FIXTURE(silent) {
	const char *dir;
	pid_t server;
	char wait_ms[32];
};

FIXTURE_SETUP(silent)
{
	self->server = 0;
	PT_NEED_MODULE("the launcher's memory");
	PT_NEED_ROOT();
	self->dir = pt_tmpdir();
	self->server = fuse_begin(self->dir, "f");
	if (self->server < 0)
		SKIP(return, "no FUSE: %s", strerror(-self->server));
	ASSERT_EQ(0, pt_read_file(WAIT_MS, self->wait_ms, sizeof(self->wait_ms)));
	pt_write_file(WAIT_MS, "500");
}

FIXTURE_TEARDOWN(silent)
{
	if (self->server <= 0)
		return;
	fuse_end(self->server, self->dir);
	pt_write_file(WAIT_MS, self->wait_ms);
	EXPECT_TRUE(pt_spaces_gone());
}

static bool ends(pid_t pid)
{
	int i;

	for (i = 0; i < 100; i++, usleep(50000))
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return true;
	return false;
}

static bool killed(pid_t pid)
{
	kill(pid, SIGKILL);
	return ends(pid);
}

static int map_at(void *arg)
{
	void *p = mmap((void *)AT, LARGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	(void)arg;
	return p == (void *)AT ? 0 : -ENOMEM;
}

/* with the last task, which has filled it, goes the memory in partition 0 */
TEST_F(silent, last_task)
{
	int file = open(getenv(FUSE_FILE_ENV), O_RDWR), zero = open("/dev/zero", O_RDONLY), i;
	struct pt_raw raw;
	long page;
	pid_t pid;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = map_at;
	raw.keep = AT;
	ASSERT_EQ(0, pt_raw_create(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	page = pt_raw_call(&raw, 1, SYS_mmap, 0, FUSE_PAGE, RW, MAP_SHARED, file, 0);
	ASSERT_LT(0, page);
	EXPECT_EQ(0, pt_raw_call(&raw, 1, SYS_close, file));
	close(file);
	EXPECT_EQ(LARGE, pt_raw_call(&raw, 1, SYS_read, zero, AT, LARGE));
	EXPECT_EQ(1, pt_raw_call(&raw, 1, SYS_read, zero, page, 1));
	EXPECT_LT(LARGE / 2048, pt_resident_kib());	/* the counter is approximate */
	kill(pid, SIGKILL);
	for (i = 0; i < 100 && pt_resident_kib() > SMALL_KIB; i++)
		usleep(50000);
	EXPECT_GE(SMALL_KIB, pt_resident_kib());
	EXPECT_GT(0, pt_raw_arm(raw.fd, 0, 2, 0));
	EXPECT_TRUE(ends(pid));
	close(raw.mem);
	close(raw.fd);
	close(zero);
}

/* ---- after an OOM kill, the partitions are not unmapped one by one ---- */

/*
 * Below, what is unmapped first, a changed page of the silent server's; above, a file of memory,
 * whose pages are in the page tables or, with the letter 'f', only in the file
 */
static void be_victim(char letter, bool when_told)
{
	char mark = 'x';
	int file = open(getenv(FUSE_FILE_ENV), O_RDWR), mem = memfd_create("x", 0);
	char *page, *p, *at = (char *)pt_base() + (1 << 20);

	page = mmap(at, FUSE_PAGE, RW, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
	CHECK(page == at);
	CHECK_EQ(0, posix_fallocate(mem, 0, LARGE));
	p = mmap(NULL, LARGE, RW, MAP_SHARED, mem, 0);
	CHECK(p != MAP_FAILED);
	CHECK_EQ(0, close(file));
	CHECK_EQ(0, close(mem));
	CHECK_EQ(0, pt_write_file("/proc/self/oom_score_adj", "1000"));
	if (pt_failed)
		return;
	if (letter != 'f')
		memset(p, 1, LARGE);
	if (when_told) {
		pt_say("t");
		mark = pt_hear(atoi(pt_args[1]));
	}
	page[0] = mark;
	pt_say("r");
	pause();
}

TASK(map_file_and_be_victim)
{
	be_victim('f', false);
}

TASK(fill_file_and_be_victim)
{
	be_victim('p', false);
}

TASK(map_file_and_be_victim_when_told)
{
	be_victim('f', true);
}

static long shmem_kib(void)
{
	return pt_file_kib("/proc/meminfo", "Shmem:");
}

static void choose_victim(struct __test_metadata *_metadata, const char *name)
{
	struct pvas_space *space = PT_SPACE();
	long shmem = shmem_kib();
	int out[2], i;
	pid_t pid;

	ASSERT_EQ(0, pipe(out));
	ASSERT_EQ(1, pt_start_task_fds(space, 1, name, out[1], out[0], &pid));
	ASSERT_EQ('r', pt_hear(out[0]));
	EXPECT_LT(shmem + (long)(LARGE / 2048), shmem_kib());
	ASSERT_EQ(0, pt_write_file("/proc/sysrq-trigger", "f"));
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	pvas_space_destroy(space);
	for (i = 0; i < 100 && shmem_kib() > shmem + SMALL_KIB; i++)
		usleep(50000);
	EXPECT_GT(shmem + SMALL_KIB, shmem_kib());
	/* Its space is what waits for the server. */
	EXPECT_EQ(1, pt_spaces());
}

/* a silent server keeps no other file's memory either, when all of the mm is freed at once */
TEST_F(silent, oom_victim)
{
	choose_victim(_metadata, "map_file_and_be_victim");
}

/* nor that which the mm counts as its own */
TEST_F(silent, oom_victim_with_pages)
{
	choose_victim(_metadata, "fill_file_and_be_victim");
}

#define VICTIMS 3

/* nor that of several tasks, none of which waits for the server in its exit */
TEST_F(silent, oom_victims)
{
	struct pvas_space *space = PT_SPACE();
	long shmem = shmem_kib();
	pid_t pid[VICTIMS];
	int out[2], in[2], i;

	ASSERT_EQ(0, pipe(out));
	ASSERT_EQ(0, pipe(in));
	for (i = 0; i < VICTIMS; i++) {
		ASSERT_EQ(i + 1, pt_start_task_fds(space, i + 1, "map_file_and_be_victim_when_told",
						   out[1], in[0], &pid[i]));
		ASSERT_EQ('t', pt_hear(out[0]));
	}
	/* The server does not answer for the letter of the last one. */
	for (i = 0; i < VICTIMS; i++) {
		ASSERT_EQ(1, write(in[1], i < VICTIMS - 1 ? (char []){ FUSE_ANSWERED } : "x", 1));
		ASSERT_EQ('r', pt_hear(out[0]));
	}
	ASSERT_EQ(0, pt_write_file("/proc/sysrq-trigger", "f"));
	for (i = 0; i < VICTIMS; i++) {
		EXPECT_TRUE(ends(pid[i]));
	}
	for (i = 0; i < 100 && shmem_kib() > shmem + SMALL_KIB; i++)
		usleep(50000);
	EXPECT_GT(shmem + SMALL_KIB, shmem_kib());
	EXPECT_EQ(1, pt_spaces());
	pvas_space_destroy(space);
}

TASK(change_silent_file)
{
	int file = open(getenv(FUSE_FILE_ENV), O_RDWR);
	char *page = mmap(NULL, FUSE_PAGE, RW, MAP_SHARED, file, 0);

	CHECK(page != MAP_FAILED);
	close(file);
	if (pt_failed)
		return;
	page[0] = 1;
	pt_say("r");
	pause();
}

/* ---- what else is mapped in the task that ends ---- */

#define FILES 8

/* Files of a file system in memory, changed and unlinked; and a changed page of the server's */
TASK(map_other_files)
{
	int file[2], fd, i;
	char *page, *p;

	/* Before and after the others: which is first, in the end, is by chance. */
	file[0] = open(getenv(FUSE_FILE_ENV), O_RDWR);
	for (i = 0; i < FILES && !pt_failed; i++) {
		fd = open("/mnt/x", O_RDWR | O_CREAT | O_EXCL, 0600);
		CHECK_EQ(0, ftruncate(fd, LARGE / FILES));
		p = mmap(NULL, LARGE / FILES, RW, MAP_SHARED, fd, 0);
		CHECK(p != MAP_FAILED);
		if (!pt_failed)
			memset(p, 1, LARGE / FILES);
		CHECK_EQ(0, unlink("/mnt/x"));
		close(fd);
	}
	file[1] = open(getenv(FUSE_FILE_ENV), O_RDWR);
	for (i = 0; i < 2; i++) {
		page = mmap(NULL, FUSE_PAGE, RW, MAP_SHARED, file[i], 0);
		CHECK(page != MAP_FAILED);
		close(file[i]);
	}
	if (pt_failed)
		return;
	page[0] = 1;
	pt_say("r");
	pause();
}

static long unevictable_kib(void)
{
	return pt_file_kib("/proc/meminfo", "Unevictable:");
}

/* none of it waits for the server, in whichever order they are released */
TEST_F(silent, other_files)
{
	struct pvas_space *space = PT_SPACE();
	long before = unevictable_kib();
	int out[2], i;
	pid_t pid;

	ASSERT_EQ(0, mount("none", "/mnt", "ramfs", 0, NULL));
	ASSERT_EQ(0, pipe(out));
	ASSERT_EQ(1, pt_start_task_fds(space, 1, "map_other_files", out[1], out[0], &pid));
	ASSERT_EQ('r', pt_hear(out[0]));
	EXPECT_LT(before + (long)(LARGE / 2048), unevictable_kib());
	EXPECT_TRUE(killed(pid));
	for (i = 0; i < 100 && unevictable_kib() > before + SMALL_KIB / 4; i++)
		usleep(50000);
	EXPECT_GT(before + SMALL_KIB / 4, unevictable_kib());
	pvas_space_destroy(space);
	umount2("/mnt", MNT_DETACH);
}

/* A task that changes that file, and another one, which acts when it reads a letter */
struct pair {
	struct pvas_space *space;
	int from, to;
	pid_t changer, other;
};

static void start_pair(struct __test_metadata *_metadata, struct pair *pair, const char *other)
{
	int out[2], in[2];

	pair->space = PT_SPACE();
	ASSERT_EQ(0, pipe(out));
	ASSERT_EQ(0, pipe(in));
	pair->from = out[0];
	pair->to = in[1];
	ASSERT_EQ(1, pt_start_task_fds(pair->space, 1, "change_silent_file", out[1], in[0],
				       &pair->changer));
	ASSERT_EQ('r', pt_hear(pair->from));
	ASSERT_EQ(2, pt_start_task_fds(pair->space, 2, other, out[1], in[0], &pair->other));
	ASSERT_EQ('r', pt_hear(pair->from));
}

/* The other one does as it is told, and says so in time. */
static bool other_does(const struct pair *pair, char letter)
{
	struct pollfd ready = { .fd = pair->from, .events = POLLIN };

	return write(pair->to, &letter, 1) == 1 && poll(&ready, 1, 5000) == 1 &&
	       pt_hear(pair->from) == letter;
}

TASK(map_when_told)
{
	char *p;

	pt_say("r");
	while (pt_hear(atoi(pt_args[1]))) {
		p = mmap(NULL, LARGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED);
		p[0] = 1;
		CHECK_EQ(0, munmap(p, LARGE));
		pt_say("m");
	}
}

/* a task that ends with such a mapping stops none of the others, nor their ends */
TEST_F(silent, dead_peer)
{
	struct pair pair;

	start_pair(_metadata, &pair, "map_when_told");
	EXPECT_TRUE(killed(pair.changer));
	sleep(1);
	EXPECT_TRUE(other_does(&pair, 'm'));
	EXPECT_TRUE(killed(pair.other));
	pvas_space_destroy(pair.space);
}

TASK(fork_when_told)
{
	pid_t pid;

	pt_say("r");
	while (pt_hear(atoi(pt_args[1]))) {
		pid = fork();
		if (!pid)
			_exit(0);
		CHECK_EQ(0, pt_wait(pid));
		pt_say("f");
	}
}

/* and a living one with such a mapping stops no other's fork child */
TEST_F(silent, living_peer)
{
	struct pair pair;

	start_pair(_metadata, &pair, "fork_when_told");
	EXPECT_TRUE(other_does(&pair, 'f'));
	EXPECT_TRUE(killed(pair.other));
	EXPECT_TRUE(killed(pair.changer));
	pvas_space_destroy(pair.space);
}

/* There is no number for a descriptor of the child, which clone3() notices late: it has the mm. */
TASK(fail_to_fork_when_told)
{
	const struct rlimit none = { 0, 0 };
	struct clone_args args = { .flags = CLONE_PIDFD, .exit_signal = SIGCHLD };
	int pidfd;

	args.pidfd = (uintptr_t)&pidfd;
	CHECK_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	pt_say("r");
	while (pt_hear(atoi(pt_args[1]))) {
		CHECK_ERR(EMFILE, syscall(SYS_clone3, &args, sizeof(args)));
		pt_say("f");
	}
}

/* nor does it stop another's fork that fails */
TEST_F(silent, failing_fork)
{
	struct pair pair;

	start_pair(_metadata, &pair, "fail_to_fork_when_told");
	EXPECT_TRUE(other_does(&pair, 'f'));
	EXPECT_TRUE(killed(pair.other));
	EXPECT_TRUE(killed(pair.changer));
	pvas_space_destroy(pair.space);
}

/* ---- more of them than a space has workers ---- */

#define CHANGERS 9

/* All have closed the file before anything is changed: closing it can wait, too. */
TASK(change_to_letter)
{
	int file = open(getenv(FUSE_FILE_ENV), O_RDWR);
	char *page = mmap(NULL, FUSE_PAGE, RW, MAP_SHARED, file, 0);

	CHECK(page != MAP_FAILED);
	close(file);
	pt_say("r");
	while (page != MAP_FAILED) {
		page[0] = pt_hear(atoi(pt_args[1]));
		pt_say("d");
	}
}

/* The server does not answer for the letter of the last one. */
static bool start_changers(struct pvas_space *space, pid_t *pid)
{
	int out[2], in[CHANGERS][2], i;
	char letter;

	if (pipe(out))
		return false;
	for (i = 0; i < CHANGERS; i++)
		if (pipe(in[i]) ||
		    pt_start_task_fds(space, i + 1, "change_to_letter", out[1], in[i][0],
				      &pid[i]) != i + 1 || pt_hear(out[0]) != 'r')
			return false;
	for (i = 0; i < CHANGERS; i++) {
		letter = i < CHANGERS - 1 ? FUSE_ANSWERED : 'x';
		if (write(in[i][1], &letter, 1) != 1 || pt_hear(out[0]) != 'd')
			return false;
	}
	return true;
}

/* many tasks that end with such a mapping keep nobody's partition from being freed */
TEST_F(silent, many_dead_peers)
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid[CHANGERS], other;
	int i;

	ASSERT_TRUE(start_changers(space, pid));
	for (i = 0; i < CHANGERS; i++)
		kill(pid[i], SIGKILL);
	for (i = 0; i < CHANGERS; i++) {
		EXPECT_TRUE(ends(pid[i]));
	}
	/* Its program's file is not of those that are released at once. */
	for (i = 0; i < 3; i++) {
		other = pt_start_task(space, CHANGERS + 1, "succeed");
		EXPECT_LT(0, other);
		if (other > 0)
			EXPECT_EQ(0, pt_wait(other));
	}
	pvas_space_destroy(space);
}

PT_MAIN()
