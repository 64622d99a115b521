// SPDX-License-Identifier: LGPL-2.1-or-later
/* The functions of pvas_far.h: each errno, advice, pins, and what they promise. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "helpers.h"

#include "far_test.h"

#define FAILS(error, call) EXPECT_EQ(-(error), call)

static const struct how small = { "zip", 65536 };

#define PAGE ((size_t)65536)
#define RAM (64 * PAGE)
#define SIZE (256 * PAGE)

/* ---- without a pager ---- */

TEST(no_pager)
{
	struct pvas_far_counters c = { .size = sizeof(c) };
	void *p = &c;

	FAILS(ESRCH, pvas_far_close());
	FAILS(ESRCH, pvas_far_alloc(&p, 1));
	FAILS(ESRCH, pvas_far_free(p));
	FAILS(ESRCH, pvas_far_advise(p, 1, PVAS_FAR_COLD));
	FAILS(ESRCH, pvas_far_pin(p, 1));
	FAILS(ESRCH, pvas_far_unpin(p, 1));
	FAILS(ESRCH, pvas_far_get_counters(&c));
	EXPECT_NE(NULL, strstr(pvas_far_error(), "no pager"));
}

/* pvas_far_open() with these attributes */
static int far_open(const char *stores, uint64_t ram, uint64_t far_size, uint64_t page)
{
	struct pvas_far_attr a = {
		.size = sizeof(a), .stores = stores, .ram = ram, .far = far_size, .page = page,
	};

	return pvas_far_open(&a);
}

TEST(bad_attributes)
{
	struct { struct pvas_far_attr a; uint64_t later; } longer = {
		.a.size = sizeof(longer), .later = 1,
	};
	struct pvas_far_attr a = { .size = 8 };

	FAILS(EINVAL, pvas_far_open(&a));
	FAILS(E2BIG, pvas_far_open(&longer.a));
	a = (struct pvas_far_attr){ .size = sizeof(a), .flags = 1U << 31 };
	FAILS(EINVAL, pvas_far_open(&a));
	a = (struct pvas_far_attr){ .size = sizeof(a), .copies = 3 };
	FAILS(EINVAL, pvas_far_open(&a));
	a = (struct pvas_far_attr){ .size = sizeof(a), .copies = 2, .stores = "zip", .ram = RAM };
	FAILS(EINVAL, pvas_far_open(&a));
	a = (struct pvas_far_attr){ .size = sizeof(a), .threads = 65 };
	FAILS(EINVAL, pvas_far_open(&a));
	FAILS(EINVAL, far_open("zip", RAM, SIZE, 2048));
	FAILS(EINVAL, far_open("zip", RAM, SIZE, 3 * PAGE));
	FAILS(EINVAL, far_open("zip", RAM, SIZE, (size_t)128 << 20));
	FAILS(EINVAL, far_open("zip", RAM, (uint64_t)1 << 50, PAGE));
	FAILS(EINVAL, far_open("zip", (PVAS_FAR_RAM_MIN_PAGES - 1) * PAGE, SIZE, PAGE));
	EXPECT_NE(NULL, strstr(pvas_far_error(), "2097152 at least"));
}

TEST(bad_stores)
{
	EXPECT_GT(0, far_open("nowhere", RAM, SIZE, PAGE));
	FAILS(EINVAL, far_open("zip,,zip", RAM, SIZE, PAGE));
	FAILS(EINVAL, far_open("zip:9", RAM, SIZE, PAGE));
	FAILS(EINVAL, far_open("file:", RAM, SIZE, PAGE));
	FAILS(EINVAL, far_open("file:/dev/null", RAM, SIZE, PAGE));
	FAILS(ENOENT, far_open("file:/nowhere/at/all", RAM, SIZE, PAGE));
	FAILS(ENOTDIR, far_open("file:/dev/null/x", RAM, SIZE, PAGE));
	EXPECT_NE(NULL, strstr(pvas_far_error(), "file:/dev/null/x"));
	/* After all that, a good one */
	EXPECT_EQ(0, far_open("zip", RAM, SIZE, PAGE));
	FAILS(EBUSY, far_open("zip", RAM, SIZE, PAGE));
	EXPECT_EQ(0, pvas_far_close());
}

TEST(page_that_adapts)
{
	struct pvas_far_attr attr = { .size = sizeof(attr), .ram = 8 * MIB };

	setenv("PVAS_FAR_PAGE", "automatic", 1);
	FAILS(EINVAL, pvas_far_open(&attr));
	setenv("PVAS_FAR_PAGE", "auto", 1);
	ASSERT_EQ(0, pvas_far_open(&attr));
	EXPECT_EQ(16384, counters().page);
	EXPECT_EQ(0, pvas_far_close());
	/* The budget has room for enough pages. */
	attr.ram = PVAS_FAR_RAM_MIN_PAGES * 4096;
	ASSERT_EQ(0, pvas_far_open(&attr));
	EXPECT_EQ(4096, counters().page);
	EXPECT_EQ(0, pvas_far_close());
	unsetenv("PVAS_FAR_PAGE");
}

TEST(environment)
{
	setenv("PVAS_FAR_RAM", "4M", 1);
	setenv("PVAS_FAR_PAGE", "64K", 1);
	setenv("PVAS_FAR_SIZE", "1G", 1);
	ASSERT_EQ(0, pvas_far_open(NULL));
	EXPECT_EQ(4 * MIB, counters().ram);
	EXPECT_EQ(65536, counters().page);
	EXPECT_EQ(0, pvas_far_close());
	setenv("PVAS_FAR_RAM", "4X", 1);
	FAILS(EINVAL, pvas_far_open(NULL));
	EXPECT_NE(NULL, strstr(pvas_far_error(), "PVAS_FAR_RAM=4X"));
	setenv("PVAS_FAR_RAM", "4M", 1);
	setenv("PVAS_FAR", "file:/nowhere", 1);
	FAILS(ENOENT, pvas_far_open(NULL));
}

TEST(too_few_resources)
{
	struct rlimit limit = { 0 }, old;

	getrlimit(RLIMIT_NOFILE, &old);
	limit.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	FAILS(EMFILE, far_open("zip", RAM, SIZE, PAGE));
	setrlimit(RLIMIT_NOFILE, &old);
	limit = (struct rlimit){ (rlim_t)1 << 30, (rlim_t)1 << 30 };
	setrlimit(RLIMIT_AS, &limit);
	FAILS(ENOMEM, far_open("zip", RAM, (uint64_t)1 << 40, PAGE));
}

/* Calls that a container's filter, or the kernel, may refuse */
static const int uffd[] = { __NR_userfaultfd };
static const int file[] = { __NR_openat };
static const int thread[] = { __NR_clone, __NR_clone3 };

TEST(no_userfaultfd)
{
	struct pvas_far_attr a = { .size = sizeof(a), .flags = PVAS_FAR_USER_FAULTS_ONLY };

	forbid(uffd, 1, ENOSYS);
	FAILS(ENOSYS, pvas_far_open(&a));
	EXPECT_NE(NULL, strstr(pvas_far_error(), "no userfaultfd"));
}

TEST(userfaultfd_forbidden)
{
	struct pvas_far_attr a = { .size = sizeof(a), .flags = PVAS_FAR_USER_FAULTS_ONLY };

	forbid(uffd, 1, EPERM);
	FAILS(EPERM, pvas_far_open(&a));
}

TEST(too_many_files)
{
	struct pvas_far_attr a = { .size = sizeof(a), .flags = PVAS_FAR_USER_FAULTS_ONLY };

	forbid(uffd, 1, ENFILE);
	FAILS(ENFILE, pvas_far_open(&a));
}

TEST(file_may_not_be_opened)
{
	forbid(file, 1, EACCES);
	FAILS(EACCES, far_open("file:/var/tmp", RAM, SIZE, PAGE));
}

TEST(no_threads)
{
	forbid(thread, 2, EAGAIN);
	FAILS(EAGAIN, far_open("zip", RAM, SIZE, PAGE));
	/* Not half of a pager either */
	FAILS(ESRCH, pvas_far_close());
	FAILS(EAGAIN, far_open("zip", RAM, SIZE, PAGE));
}

TEST(child_of_fork)
{
	int status;
	pid_t pid;
	void *p;

	ASSERT_EQ(0, far_open("zip", RAM, SIZE, PAGE));
	pid = fork();
	if (!pid) {
		FAILS(ECHILD, pvas_far_open(NULL));
		FAILS(ECHILD, pvas_far_alloc(&p, 1));
		FAILS(ECHILD, pvas_far_close());
		_exit(_metadata->exit_code);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, pvas_far_close());
}

/* ---- stores that are too small ---- */

TEST(file_too_small)
{
	char path[] = "/var/tmp/pvas-far-XXXXXX", spec[64];
	int fd = mkstemp(path);

	ASSERT_LE(0, fd);
	snprintf(spec, sizeof(spec), "file:%s", path);
	ASSERT_EQ(0, ftruncate(fd, SIZE - 1));
	FAILS(ENOSPC, far_open(spec, RAM, SIZE, PAGE));
	ASSERT_EQ(0, ftruncate(fd, SIZE));
	EXPECT_EQ(0, far_open(spec, RAM, SIZE, PAGE));
	EXPECT_EQ(0, pvas_far_close());
	unlink(path);
	close(fd);
}

/* ---- files that others can read or write ---- */

FIXTURE(file)
{
	char path[32], link[40], spec[64];
	int fd;
};

FIXTURE_SETUP(file)
{
	strcpy(self->path, "/var/tmp/pvas-far-XXXXXX");
	self->fd = mkstemp(self->path);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ftruncate(self->fd, SIZE));
	snprintf(self->spec, sizeof(self->spec), "file:%s", self->path);
	snprintf(self->link, sizeof(self->link), "%s.link", self->path);
}

FIXTURE_TEARDOWN(file)
{
	unlink(self->path);
	unlink(self->link);
	close(self->fd);
}

TEST_F(file, rights_of_others)
{
	static const mode_t modes[] = { 0640, 0620, 0604, 0602, 0644, 0666 };
	size_t i;

	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		ASSERT_EQ(0, fchmod(self->fd, modes[i]));
		FAILS(EPERM, far_open(self->spec, RAM, SIZE, PAGE));
	}
	ASSERT_EQ(0, fchmod(self->fd, 0600));
	EXPECT_EQ(0, far_open(self->spec, RAM, SIZE, PAGE));
	EXPECT_EQ(0, pvas_far_close());
}

TEST_F(file, of_another_user)
{
	if (geteuid())
		SKIP(return, "needs root, to give a file away");
	ASSERT_EQ(0, fchown(self->fd, 65534, 65534));
	FAILS(EPERM, far_open(self->spec, RAM, SIZE, PAGE));
	EXPECT_NE(NULL, strstr(pvas_far_error(), "belongs to another user"));
}

TEST_F(file, link_to_it)
{
	ASSERT_EQ(0, symlink(self->path, self->link));
	snprintf(self->spec, sizeof(self->spec), "file:%s", self->link);
	FAILS(ELOOP, far_open(self->spec, RAM, SIZE, PAGE));
}

/* ---- allocation ---- */

FIXTURE(far)
{
	char *p;
};

FIXTURE_SETUP(far)
{
	ASSERT_EQ(0, open_far(&small, RAM, SIZE));
	ASSERT_EQ(0, pvas_far_alloc((void **)&self->p, SIZE / 2));
}

FIXTURE_TEARDOWN(far)
{
	pvas_far_close();
}

TEST_F(far, alloc_and_free)
{
	char *q, *r;

	FAILS(EINVAL, pvas_far_alloc((void **)&q, 0));
	FAILS(ENOMEM, pvas_far_alloc((void **)&q, SIZE / 2 + 1));
	FAILS(ENOMEM, pvas_far_alloc((void **)&q, SIZE_MAX));
	ASSERT_EQ(0, pvas_far_alloc((void **)&q, 1));
	ASSERT_EQ(0, pvas_far_alloc((void **)&r, PAGE + 1));
	EXPECT_EQ(q + PAGE, r);
	EXPECT_EQ(0, (uintptr_t)q % PAGE);
	EXPECT_EQ(SIZE / 2 + 3 * PAGE, counters().allocated);
	FAILS(EINVAL, pvas_far_free(self->p + PAGE));
	FAILS(EINVAL, pvas_far_free(&q));
	EXPECT_EQ(0, pvas_far_free(NULL));
	EXPECT_EQ(0, pvas_far_free(q));
	FAILS(EINVAL, pvas_far_free(q));
	EXPECT_EQ(0, pvas_far_free(self->p));
	EXPECT_EQ(0, pvas_far_free(r));
	EXPECT_EQ(0, counters().allocated);
	/* Now all of it in a row, which held other contents */
	ASSERT_EQ(0, pvas_far_alloc((void **)&q, SIZE));
}

TEST_F(far, freed_memory_is_of_zeros_again)
{
	size_t i, wrong = 0;

	memset(self->p, 7, SIZE / 2);
	EXPECT_LT(0, counters().stored);
	ASSERT_EQ(0, pvas_far_free(self->p));
	wait_until_nothing_is_stored();
	ASSERT_EQ(0, pvas_far_alloc((void **)&self->p, SIZE / 2));
	for (i = 0; i < SIZE / 2; i += 8)
		wrong += *(uint64_t *)(self->p + i) != 0;
	EXPECT_EQ(0, wrong);
}

/* ---- advice ---- */

TEST_F(far, bad_ranges)
{
	char *q;

	FAILS(EINVAL, pvas_far_advise(self->p, PAGE, 99));
	FAILS(EINVAL, pvas_far_advise(self->p, SIZE / 2 + 1, PVAS_FAR_COLD));
	FAILS(EINVAL, pvas_far_advise(self->p, SIZE_MAX, PVAS_FAR_COLD));
	FAILS(EINVAL, pvas_far_advise(self->p - 1, 1, PVAS_FAR_COLD));
	FAILS(EINVAL, pvas_far_advise(&q, 1, PVAS_FAR_COLD));
	FAILS(EINVAL, pvas_far_pin(self->p + SIZE / 2, 1));
	FAILS(EINVAL, pvas_far_unpin(self->p, 1));
	EXPECT_EQ(0, pvas_far_advise(self->p, 0, PVAS_FAR_COLD));
}

TEST_F(far, will_need)
{
	uint64_t faults;
	size_t i;

	memset(self->p, 1, SIZE / 2);
	ASSERT_EQ(0, pvas_far_advise(self->p, 16 * PAGE, PVAS_FAR_WILL_NEED));
	faults = counters().faults;
	for (i = 0; i < 16 * PAGE; i += PAGE)
		EXPECT_EQ(1, ((volatile char *)self->p)[i]);
	EXPECT_EQ(faults, counters().faults);
}

/* Cold pages go first: those touched long before them stay. */
TEST_F(far, cold)
{
	volatile char *p = self->p;
	uint64_t faults;
	size_t i;

	for (i = 0; i < 40; i++)
		p[i * PAGE] = 1;
	ASSERT_EQ(0, pvas_far_advise(self->p + 24 * PAGE, 16 * PAGE, PVAS_FAR_COLD));
	for (i = 40; i < 60; i++)
		p[i * PAGE] = 1;
	faults = counters().faults;
	for (i = 0; i < 24; i++)
		EXPECT_EQ(1, p[i * PAGE]);
	EXPECT_EQ(faults, counters().faults);
}

TEST_F(far, sequential)
{
	volatile char *p = self->p;
	size_t i;

	memset(self->p, 1, SIZE / 2);
	ASSERT_EQ(0, pvas_far_advise(self->p, SIZE / 2, PVAS_FAR_SEQUENTIAL));
	for (i = 0; i < SIZE / 2; i += PAGE)
		EXPECT_EQ(1, p[i]);
	EXPECT_LT(32, counters().ahead_used);
	EXPECT_EQ(0, pvas_far_advise(self->p, SIZE / 2, PVAS_FAR_NORMAL));
}

TEST_F(far, discard)
{
	memset(self->p, 1, SIZE / 2);
	/* Only the two pages that lie in it as a whole */
	ASSERT_EQ(0, pvas_far_advise(self->p + 1, 3 * PAGE, PVAS_FAR_DISCARD));
	EXPECT_EQ(1, self->p[0]);
	EXPECT_EQ(1, self->p[PAGE - 1]);
	EXPECT_EQ(0, self->p[PAGE]);
	EXPECT_EQ(0, self->p[3 * PAGE - 1]);
	EXPECT_EQ(1, self->p[3 * PAGE]);
	ASSERT_EQ(0, pvas_far_pin(self->p, 1));
	FAILS(EINVAL, pvas_far_advise(self->p, PAGE, PVAS_FAR_DISCARD));
	EXPECT_EQ(0, pvas_far_advise(self->p, SIZE / 2, PVAS_FAR_COLD));
	EXPECT_EQ(0, pvas_far_unpin(self->p, 1));
}

/* A stride of several pages, as of a matrix's column, is found, too. */
TEST_F(far, strides_are_read_ahead)
{
	volatile char *p = self->p;
	size_t i;

	memset(self->p, 1, SIZE / 2);
	for (i = 0; i < SIZE / 2; i += 3 * PAGE)
		EXPECT_EQ(1, p[i]);
	EXPECT_LT(20, counters().ahead_used);
	EXPECT_GE(counters().ahead_used + 16, counters().ahead);
}

/* ---- pins, and system calls on far memory ---- */

TEST_F(far, pinned_memory_stays)
{
	volatile char *p = self->p;
	uint64_t faults;
	size_t i;

	FAILS(ENOMEM, pvas_far_pin(self->p, 40 * PAGE));
	ASSERT_EQ(0, pvas_far_pin(self->p, 4 * PAGE));
	ASSERT_EQ(0, pvas_far_pin(self->p, PAGE));
	memset(self->p, 5, SIZE / 2);
	ASSERT_EQ(0, pvas_far_unpin(self->p, PAGE));
	memset(self->p, 6, SIZE / 2);
	faults = counters().faults + counters().write_faults;
	for (i = 0; i < 4 * PAGE; i++)
		p[i] = 7;
	EXPECT_EQ(faults, counters().faults + counters().write_faults);
	ASSERT_EQ(0, pvas_far_unpin(self->p, 4 * PAGE));
	FAILS(EINVAL, pvas_far_unpin(self->p, 1));
	memset(self->p + 4 * PAGE, 5, SIZE / 2 - 4 * PAGE);
	EXPECT_EQ(7, p[3 * PAGE]);
	EXPECT_LT(faults, counters().faults);
}

TEST_F(far, pinned_too_often)
{
	unsigned int i;

	for (i = 0; i < UINT16_MAX; i++)
		ASSERT_EQ(0, pvas_far_pin(self->p, 1));
	FAILS(EOVERFLOW, pvas_far_pin(self->p, 1));
	EXPECT_EQ(0, pvas_far_unpin(self->p, 1));
	EXPECT_EQ(0, pvas_far_pin(self->p, 1));
}

TEST_F(far, system_calls)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	memset(self->p, 5, SIZE / 2);
	/* The first page went long ago: only the program's own faults are served here. */
	EXPECT_EQ(0, counters().system_calls);
	EXPECT_EQ(-1, read(fd, self->p, 100));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(5, self->p[0]);
	ASSERT_EQ(0, pvas_far_pin(self->p, 100));
	EXPECT_EQ(100, read(fd, self->p, 100));
	EXPECT_EQ(0, self->p[99]);
	EXPECT_EQ(5, self->p[100]);
	EXPECT_EQ(0, pvas_far_unpin(self->p, 100));
	close(fd);
}

/* With more rights than an ordinary user's, any far memory can be given to system calls. */
TEST(system_calls_with_privilege)
{
	const struct how how = { "zip", 65536, .kernel_faults = true };
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char *p;

	ASSERT_EQ(0, open_far(&how, RAM, SIZE));
	if (!counters().system_calls)
		SKIP(return, "an ordinary user");
	ASSERT_EQ(0, pvas_far_alloc((void **)&p, SIZE));
	memset(p, 5, SIZE);
	EXPECT_EQ(SIZE, read(fd, p, SIZE));
	EXPECT_EQ(0, p[SIZE - 1]);
	EXPECT_EQ(0, pvas_far_close());
	close(fd);
}

TEST_HARNESS_MAIN
