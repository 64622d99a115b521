// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two tasks map as near to the border of their partitions as they may. The kernel makes no area
 * of both, and neither the end of one nor its locks act on the other, nor a userfaultfd that
 * both have. See bounds-edge.c for the pages between.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "maps.h"

#define UPPER_LEN	(64UL << 20)	/* several times as much as is freed in one step */
#define LOWER_LEN	(16 * PAGE)
#define BYTE		42

/* In a task: says that it is ready, and waits until it may go on. */
static void meet(void)
{
	char c = 'r';

	CHECK_EQ(1, write(atoi(pt_args[0]), &c, 1));
	CHECK_EQ(1, read(atoi(pt_args[1]), &c, 1));
}

static char *map_at(uintptr_t at, size_t len)
{
	char *p = mmap((void *)at, len, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK(p == (char *)at);
	return p;
}

/* The area that has that address: its begin, or 0, and how much of it is locked */
static uintptr_t area_of(const void *at, long *locked)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long from, to;
	uintptr_t found = 0;
	char line[4096];

	*locked = -1;
	while (f && *locked < 0 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			found = from <= (uintptr_t)at && (uintptr_t)at < to ? from : 0;
		else if (found)
			sscanf(line, "Locked: %ld", locked);
	}
	if (f)
		fclose(f);
	return found;
}

static long locked_kb(const void *at)
{
	long kb;

	return area_of(at, &kb) ? kb : -1;
}

struct neighbour {
	pid_t pid;
	int up[2], down[2];
};

static int start(struct neighbour *n, struct pvas_space *space, unsigned int index,
		 const char *name)
{
	char c;
	int ret;

	if (pipe2(n->up, 0) || pipe2(n->down, 0))
		return -errno;
	ret = pt_start_task_fds(space, index, name, n->up[1], n->down[0], &n->pid);
	close(n->up[1]);
	close(n->down[0]);
	if (ret < 0)
		return ret;
	return read(n->up[0], &c, 1) == 1 ? 0 : -EPIPE;
}

static int end(struct neighbour *n)
{
	int ret = write(n->down[1], "g", 1) == 1 ? pt_wait(n->pid) : -errno;

	close(n->up[0]);
	close(n->down[1]);
	return ret;
}

/* ---- nothing is mapped at the border ---- */

/* The file that both have, and that the kernel makes one area of where offsets go on */
#define FILE_FD 202
#define FILE_PAGES 4

static void map_file(uintptr_t at, unsigned int page)
{
	char *p = mmap((void *)at, PAGE, RW, MAP_SHARED | MAP_FIXED_NOREPLACE, FILE_FD,
		       page * PAGE);

	CHECK(p == (char *)at);
	p[0] = BYTE;
}

TASK(lower_maps_file)
{
	map_file(last_end() - PAGE, 0);
	meet();
}

TASK(upper_maps_file)
{
	long kb;

	/* With the two pages between, it would be one area. */
	CHECK_ERR(ENOMEM, mmap((void *)pt_base(), 2 * PAGE, RW, MAP_SHARED | MAP_FIXED, FILE_FD,
			       2 * PAGE));
	map_file(first_page(), 3);
	CHECK_EQ(first_page(), area_of((void *)first_page(), &kb));
	CHECK_EQ(pt_base() - 2 * PAGE, area_of((char *)pt_base() - 2 * PAGE, &kb));
	CHECK_EQ(0, area_of((char *)pt_base() - PAGE, &kb));
	CHECK_EQ(0, area_of((char *)pt_base(), &kb));
	meet();
}

/* one file, mapped by two tasks with offsets that go on from one partition to the next */
MODULE_TEST(file_of_neighbours, "each task has an mm of its own")
{
	struct pvas_space *space = PT_SPACE();
	struct neighbour upper, lower;
	int fd = memfd_create("file", 0);

	ASSERT_EQ(0, ftruncate(fd, FILE_PAGES * PAGE));
	ASSERT_EQ(FILE_FD, dup2(fd, FILE_FD));
	ASSERT_EQ(0, start(&lower, space, 1, "lower_maps_file"));
	ASSERT_EQ(0, start(&upper, space, 2, "upper_maps_file"));
	EXPECT_EQ(0, end(&upper));
	EXPECT_EQ(0, end(&lower));
	pvas_space_destroy(space);
}

/* ---- and as near as may be, tasks don't meet ---- */

TASK(lower)
{
	char *p = map_at(last_end() - LOWER_LEN, LOWER_LEN);

	memset(p, BYTE, LOWER_LEN);
	meet();
}

TASK(upper_keeps)
{
	char *p = map_at(first_page(), UPPER_LEN);
	size_t i, gone = 0;
	unsigned char in;

	memset(p, BYTE, UPPER_LEN);
	meet();
	for (i = 0; i < UPPER_LEN; i += PAGE)
		gone += mincore(p + i, PAGE, &in) || p[i] != BYTE;
	CHECK_EQ(0, gone);
}

/* one that ends unmaps its own part */
MODULE_TEST(end_of_a_neighbour, "each task has an mm of its own")
{
	struct pvas_space *space = PT_SPACE();
	struct neighbour upper, lower;

	ASSERT_EQ(0, start(&upper, space, 2, "upper_keeps"));
	ASSERT_EQ(0, start(&lower, space, 1, "lower"));
	EXPECT_EQ(0, end(&lower));
	EXPECT_EQ(0, end(&upper));
	pvas_space_destroy(space);
}

TASK(upper_locks)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	char *p = map_at(first_page(), LOWER_LEN);
	long kb;

	CHECK_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	meet();
	CHECK_EQ((uintptr_t)p, area_of(p, &kb));
	CHECK_EQ(0, mlock(p, LOWER_LEN));
	CHECK_EQ(LOWER_LEN >> 10, locked_kb(p));
	CHECK_EQ(0, locked_kb(p - 3 * PAGE));
	CHECK_EQ(0, munlock(p, LOWER_LEN));
	CHECK_EQ(0, locked_kb(p));
	CHECK_EQ((uintptr_t)p, area_of(p, &kb));
	CHECK_EQ(0, mlockall(MCL_CURRENT));
	CHECK_EQ(LOWER_LEN >> 10, locked_kb(p));
	CHECK_EQ(0, locked_kb(p - 3 * PAGE));
	CHECK_EQ(0, munlockall());
	CHECK_EQ(0, locked_kb(p));
}

TASK(lower_locks)
{
	char *p = map_at(last_end() - LOWER_LEN, LOWER_LEN);

	memset(p, BYTE, LOWER_LEN);
	meet();
	CHECK_EQ(0, mlockall(MCL_CURRENT));
	CHECK_EQ(LOWER_LEN >> 10, locked_kb(p));
	CHECK_EQ(0, locked_kb(p + LOWER_LEN + 2 * PAGE));
	CHECK_EQ(0, munlockall());
	CHECK_EQ(0, locked_kb(p));
	CHECK_EQ(0, mlock(p, LOWER_LEN));
	CHECK_EQ(LOWER_LEN >> 10, locked_kb(p));
	CHECK_EQ(0, locked_kb(p + LOWER_LEN + 2 * PAGE));
}

TASK(upper_rests)
{
	map_at(first_page(), LOWER_LEN);
	meet();
}

/* locks hold, in the own part: on either side */
MODULE_TEST(locks, "each task has an mm of its own")
{
	struct pvas_space *space = PT_SPACE();
	struct neighbour upper, lower;

	ASSERT_EQ(0, start(&upper, space, 2, "upper_locks"));
	ASSERT_EQ(0, start(&lower, space, 1, "lower"));
	EXPECT_EQ(0, end(&upper));
	EXPECT_EQ(0, end(&lower));
	ASSERT_EQ(0, start(&upper, space, 2, "upper_rests"));
	ASSERT_EQ(0, start(&lower, space, 1, "lower_locks"));
	EXPECT_EQ(0, end(&lower));
	EXPECT_EQ(0, end(&upper));
	pvas_space_destroy(space);
}

/* ---- a userfaultfd that both have ---- */

#define MAIL_FD 200	/* and MAIL_FD + 1: a pipe */
#define SHARED_LEN (2 * PAGE)

static int register_pages(int uffd, const char *at)
{
	struct uffdio_register reg = {
		.range = { (uintptr_t)at, SHARED_LEN }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	return ioctl(uffd, UFFDIO_REGISTER, &reg);
}

/* Is the area with that address registered? */
static bool is_registered(const char *at)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	bool here = false, found = false;
	unsigned long from, to;
	char line[4096];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from <= (uintptr_t)at && (uintptr_t)at < to;
		else if (here && !strncmp(line, "VmFlags:", 8))
			found |= strstr(line, " um") != NULL;
	}
	if (f)
		fclose(f);
	return found;
}

/* A userfaultfd, or -1 */
static int new_uffd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = pt_userfaultfd(O_CLOEXEC);

	return fd < 0 || ioctl(fd, UFFDIO_API, &api) ? -1 : fd;
}

static bool send_uffd(int fd)
{
	const int mail[2] = { getpid(), fd };

	return write(MAIL_FD + 1, mail, sizeof(mail)) == sizeof(mail);
}

static int received_uffd(void)
{
	int mail[2];

	if (read(MAIL_FD, mail, sizeof(mail)) != sizeof(mail))
		return -1;
	return syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, mail[0], 0), mail[1], 0);
}

TASK(lower_registers)
{
	char *at = map_at(last_end() - SHARED_LEN, SHARED_LEN);
	int fd = new_uffd();

	CHECK(fd >= 0);
	CHECK_EQ(0, register_pages(fd, at));
	CHECK(send_uffd(fd));
	meet();
	CHECK(is_registered(at));
}

TASK(upper_registers)
{
	char *at = map_at(first_page(), SHARED_LEN), *other = anon(SHARED_LEN);
	int fd = received_uffd();

	CHECK(fd >= 0);
	CHECK_EQ(0, register_pages(fd, other));
	CHECK_EQ(0, register_pages(fd, at));
	CHECK(is_registered(at) && is_registered(other));
	CHECK_ERR(EPERM, register_pages(fd, at - 2 * PAGE - SHARED_LEN));
	meet();
}

/* Two tasks, of which the first sends the second its userfaultfd, start and end. */
static void share_uffd(struct __test_metadata *_metadata, const char *sender, int index,
		       const char *receiver)
{
	struct pvas_space *space = PT_SPACE();
	struct neighbour one, two;
	int mail[2];

	ASSERT_EQ(0, pipe(mail));
	ASSERT_EQ(MAIL_FD, dup2(mail[0], MAIL_FD));
	ASSERT_EQ(MAIL_FD + 1, dup2(mail[1], MAIL_FD + 1));
	ASSERT_EQ(0, start(&one, space, 1, sender));
	ASSERT_EQ(0, start(&two, space, index, receiver));
	EXPECT_EQ(0, end(&two));
	EXPECT_EQ(0, end(&one));
	pvas_space_destroy(space);
}

/* each registers its part, and neither takes the other's away */
MODULE_TEST(userfaultfd_of_neighbours, "each task has an mm of its own")
{
	share_uffd(_metadata, "lower_registers", 2, "upper_registers");
}

/* ---- an area that grows while a peer registers one of its own ---- */

#define GROWN	200	/* pages */
#define HOLES	1000	/* areas that each REGISTER looks at, so that it takes long */
#define GROW_MS	5000

static int register_page(int uffd, const char *at)
{
	struct uffdio_register reg = {
		.range = { (uintptr_t)at, PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	return ioctl(uffd, UFFDIO_REGISTER, &reg);
}

TASK(registers_again)
{
	struct pollfd over = { .fd = atoi(pt_args[1]), .events = POLLIN };
	int fd = new_uffd(), i;
	char *own = anon(PAGE), *many = anon(HOLES * PAGE);

	for (i = 0; i < HOLES; i += 2) {
		CHECK_EQ(0, mprotect(many + i * PAGE, PAGE, PROT_READ));
	}
	CHECK(fd >= 0);
	CHECK(send_uffd(fd));
	pt_say("r");
	while (!poll(&over, 1, 0) && !pt_failed) {
		CHECK_EQ(0, register_page(fd, own));
	}
}

/* Is the page served by the userfaultfd? */
static bool fill(int uffd, char *at)
{
	static char page[PAGE] __attribute__((aligned(PAGE)));
	struct uffdio_copy copy = { (uintptr_t)at, (uintptr_t)page, PAGE, 0, 0 };

	return !ioctl(uffd, UFFDIO_COPY, &copy) || errno == EAGAIN;
}

TASK(grows_registered)
{
	char *p = anon(GROWN * PAGE);
	long until = now_ms() + GROW_MS;
	int fd = received_uffd(), i;

	CHECK(fd >= 0);
	meet();
	while (now_ms() < until && !pt_failed) {
		CHECK_EQ(0, munmap(p, GROWN * PAGE));
		map_at((uintptr_t)p, PAGE);
		CHECK_EQ(0, register_page(fd, p));
		for (i = 1; i < GROWN && !pt_failed; i++) {
			CHECK(mremap(p, i * PAGE, (i + 1) * PAGE, 0) == p);
			CHECK(fill(fd, p + i * PAGE));
		}
	}
}

/* the owner does not lose it, nor the peer's call fail */
MODULE_TEST(userfaultfd_of_growing, "each task has an mm of its own")
{
	share_uffd(_metadata, "registers_again", 3, "grows_registered");
}

/* ---- a part of a System V segment that was moved to the border ---- */

#define SEGMENT_LEN	(4 * PAGE)
#define MOVED_FROM	(2 * PAGE)

TASK(upper_moves_segment)
{
	int id = shmget(IPC_PRIVATE, SEGMENT_LEN, IPC_CREAT | 0600);
	char *p = shmat(id, NULL, 0), *moved = (char *)first_page();

	CHECK(p != (char *)-1);
	CHECK_EQ(0, shmctl(id, IPC_RMID, NULL));
	memset(p, BYTE, SEGMENT_LEN);
	CHECK(mremap(p + MOVED_FROM, SEGMENT_LEN - MOVED_FROM, SEGMENT_LEN - MOVED_FROM,
		     MREMAP_MAYMOVE | MREMAP_FIXED, moved) == moved);
	meet();
	CHECK_EQ(BYTE, moved[0]);
	CHECK_EQ(BYTE, moved[PAGE]);
	CHECK_EQ(0, shmdt(p));
}

/* The kernel looks for the segment from there upwards, and in all of the mm. */
TASK(lower_detaches)
{
	char *end = (char *)pt_base() + pt_size(), *at;

	for (at = end - SEGMENT_LEN; at < end; at += PAGE)
		CHECK(shmdt(at) == 0 || errno == EINVAL || errno == EPERM);
	meet();
}

PVAS_TEST(segments)
{
	struct pvas_space *space = PT_SPACE();
	struct neighbour upper, lower;

	ASSERT_EQ(0, start(&upper, space, 2, "upper_moves_segment"));
	ASSERT_EQ(0, start(&lower, space, 1, "lower_detaches"));
	EXPECT_EQ(0, end(&lower));
	EXPECT_EQ(0, end(&upper));
	pvas_space_destroy(space);
}

PT_MAIN()
