// SPDX-License-Identifier: LGPL-2.1-or-later
/* The store file:PATH with several transfers at once, by io_uring, and where that is forbidden. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>

#include "far_test.h"
#include "ring.h"

#define PAGE ((size_t)4096)
#define RAM (128 * PAGE)
#define PAGES 1024UL
#define SIZE (PAGES * PAGE)

/* ---- the ring alone ---- */

static int open_file(void)
{
	char path[] = "/var/tmp/pvas-far-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	return fd;
}

static bool may_have_rings(void)
{
	struct far_ring r;

	if (far_ring_open(&r))
		return false;
	far_ring_close(&r);
	return true;
}

TEST(transfers)
{
	static char out[FAR_RING_DEPTH][PAGE], in[FAR_RING_DEPTH][PAGE];
	struct far_transfer t[FAR_RING_DEPTH];
	int fd = open_file(), round, i;
	struct far_ring r;

	if (!may_have_rings())
		SKIP(return, "no io_uring here");
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, far_ring_open(&r));
	for (round = 0; round < 100; round++) {
		for (i = 0; i < FAR_RING_DEPTH; i++) {
			memset(out[i], round + i, PAGE);
			t[i] = (struct far_transfer){ 1, out[i], PAGE, i * (off_t)PAGE };
		}
		ASSERT_EQ(0, far_ring_run(&r, fd, t, FAR_RING_DEPTH));
		for (i = 0; i < FAR_RING_DEPTH; i++) {
			ASSERT_EQ(PAGE, t[i].done);
			t[i] = (struct far_transfer){ 0, in[i], PAGE, i * (off_t)PAGE };
		}
		ASSERT_EQ(0, far_ring_run(&r, fd, t, FAR_RING_DEPTH));
		ASSERT_EQ(0, memcmp(in, out, sizeof(in)));
	}
	far_ring_close(&r);
	close(fd);
}

/* Each tells its own result. */
TEST(transfers_fail)
{
	static char page[PAGE];
	int fd = open_file(), full = open("/dev/full", O_RDWR | O_CLOEXEC);
	struct far_transfer t[3] = {
		{ 1, page, PAGE, 0 }, { 0, page, PAGE, 1 << 20 }, { 0, (void *)8, PAGE, 0 },
	};
	struct far_ring r;

	if (!may_have_rings())
		SKIP(return, "no io_uring here");
	ASSERT_EQ(0, far_ring_open(&r));
	ASSERT_EQ(0, far_ring_run(&r, fd, t, 1));
	ASSERT_EQ(0, far_ring_run(&r, fd, t, 3));
	EXPECT_EQ(PAGE, t[0].done);
	EXPECT_EQ(0, t[1].done);
	EXPECT_EQ(-EFAULT, t[2].done);
	ASSERT_EQ(0, far_ring_run(&r, full, t, 1));
	EXPECT_EQ(-ENOSPC, t[0].done);
	ASSERT_EQ(0, far_ring_run(&r, -1, t, 1));
	EXPECT_EQ(-EBADF, t[0].done);
	far_ring_close(&r);
	close(full);
	close(fd);
}

/* ---- the pager ---- */

/* How many descriptors of this process have such a name */
static int count_open(const char *name)
{
	char link[64], found[256];
	int fd, count = 0;
	ssize_t n;

	for (fd = 0; fd < 256; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, found, sizeof(found) - 1);
		found[n > 0 ? n : 0] = 0;
		count += !strcmp(found, name);
	}
	return count;
}

/* No two pages that follow each other are neighbours: they leave as many transfers. */
static size_t nth_page(size_t i)
{
	return i * 237 % PAGES;
}

static void write_all(uint64_t *p, uint64_t seed)
{
	size_t i, n;

	for (i = 0; i < PAGES; i++) {
		n = nth_page(i);
		p[n * (PAGE / 8) + n % 512] = seed + n;
		p[n * (PAGE / 8) + 511] = seed - n;
	}
}

static int read_all(const uint64_t *p, uint64_t seed)
{
	size_t i, n;

	for (i = 0; i < PAGES; i++) {
		n = nth_page(i);
		if (p[n * (PAGE / 8) + n % 512] != (n % 512 == 511 ? seed - n : seed + n) ||
		    p[n * (PAGE / 8) + 511] != seed - n)
			return 1;
	}
	return 0;
}

static uint64_t *begin(const char *stores, unsigned int copies)
{
	struct how how = { stores, PAGE, copies };
	void *p;

	return open_far(&how, RAM, SIZE) || pvas_far_alloc(&p, SIZE) ? NULL : p;
}

/* Write and read everything twice: 0 if all is right. */
static int use(uint64_t *p)
{
	uint64_t seed;

	for (seed = 1000000; p && seed < 3000000; seed += 1000000) {
		write_all(p, seed);
		if (read_all(p, seed))
			return 1;
	}
	return !p;
}

TEST(several_at_once)
{
	uint64_t *p = begin("file:/var/tmp", 1);

	if (!may_have_rings())
		SKIP(return, "no io_uring here");
	ASSERT_EQ(0, use(p));
	EXPECT_LE(1, count_open("anon_inode:[io_uring]"));
	EXPECT_EQ(0, pvas_far_close());
	EXPECT_EQ(0, count_open("anon_inode:[io_uring]"));
}

TEST(several_stores)
{
	EXPECT_EQ(0, use(begin("file:/var/tmp,zip,file:/var/tmp", 1)));
	EXPECT_EQ(0, pvas_far_close());
	EXPECT_EQ(0, use(begin("file:/var/tmp,zip,file:/var/tmp", 2)));
	EXPECT_EQ(0, pvas_far_close());
}

/* ---- where something is forbidden; each in a child ---- */

static int forbid(unsigned int call, unsigned int flags)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(*filter), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

static int without_setup(void)
{
	uint64_t *p;

	if (forbid(__NR_io_uring_setup, 0))
		return 2;
	p = begin("file:/var/tmp", 1);
	return use(p) || count_open("anon_inode:[io_uring]") || pvas_far_close();
}

/* In the middle of it: the threads that have rings can use them no more. */
static int without_enter(void)
{
	uint64_t *p = begin("file:/var/tmp", 1);

	if (use(p) || !count_open("anon_inode:[io_uring]") ||
	    forbid(__NR_io_uring_enter, SECCOMP_FILTER_FLAG_TSYNC))
		return 2;
	return use(p) || count_open("anon_inode:[io_uring]") || pvas_far_close();
}

static int run_child(int (*what)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(what());
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(forbidden)
{
	EXPECT_EQ(0, run_child(without_setup));
}

TEST(forbidden_later)
{
	if (!may_have_rings())
		SKIP(return, "no io_uring here");
	EXPECT_EQ(0, run_child(without_enter));
}

/* A file system in memory, which has no O_DIRECT in old kernels */
TEST(in_memory)
{
	struct statfs fs;

	if (statfs("/dev/shm", &fs) || fs.f_type != TMPFS_MAGIC)
		SKIP(return, "/dev/shm is no tmpfs");
	EXPECT_EQ(0, use(begin("file:/dev/shm", 1)));
	EXPECT_EQ(0, pvas_far_close());
}

/* ---- a store that fails while there are several transfers ---- */

/* A file without room behind it, in a file system of 2 MiB */
static int fill_up(void)
{
	int fd;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/tmp", "tmpfs", 0, "size=2M"))
		return 77;
	fd = open("/tmp/store", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, SIZE) || close(fd))
		return 2;
	use(begin("file:/tmp/store", 1));
	return 2;
}

static int truncate_it(void)
{
	char path[] = "/var/tmp/pvas-far-XXXXXX", spec[64];
	int fd = mkstemp(path);
	uint64_t *p;

	snprintf(spec, sizeof(spec), "file:%s", path);
	if (fd < 0 || ftruncate(fd, SIZE))
		return 2;
	p = begin(spec, 1);
	unlink(path);
	if (use(p) || ftruncate(fd, 0))
		return 2;
	use(p);
	return 2;
}

/* As run_child(), with its standard error in @said */
static int run_failing(int (*what)(void), char *said, size_t room)
{
	int tube[2], old = dup(2), status;
	ssize_t n;

	if (pipe(tube))
		return -1;
	dup2(tube[1], 2);
	status = run_child(what);
	dup2(old, 2);
	close(old);
	close(tube[1]);
	n = read(tube[0], said, room - 1);
	said[n > 0 ? n : 0] = 0;
	close(tube[0]);
	return status;
}

TEST(full)
{
	char said[1000];
	int status = run_failing(fill_up, said, sizeof(said));

	if (status == 77)
		SKIP(return, "may not mount a file system");
	EXPECT_EQ(1, status);
	EXPECT_STREQ("pvas-far: file:/tmp/store: write: No space left on device\n", said);
}

TEST(truncated)
{
	char said[1000];

	EXPECT_EQ(1, run_failing(truncate_it, said, sizeof(said)));
	EXPECT_NE(NULL, strstr(said, ": it was truncated\n"));
	EXPECT_EQ(strlen(said) - 1, strcspn(said, "\n"));
}

TEST_HARNESS_MAIN
