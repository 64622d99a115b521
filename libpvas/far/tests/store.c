// SPDX-License-Identifier: LGPL-2.1-or-later
/* Trouble with stores: those that fail, are full or in use, and of a program that was killed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "far_test.h"

#define PAGE ((size_t)65536)
#define RAM (64 * PAGE)
#define SIZE (256 * PAGE)

/* ---- stores that fail; each in a child, which ends ---- */

/* Let the descriptor of a file be one of another: what the pager does with it fails. */
static int replace_file(const char *path, const char *other)
{
	char link[64], name[256];
	int fd, with = open(other, O_RDWR | O_CLOEXEC);
	ssize_t n;

	for (fd = 3; fd < 100; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, name, sizeof(name) - 1);
		name[n > 0 ? n : 0] = 0;
		if (fd != with && !strcmp(name, path))
			dup2(with, fd);
	}
	return close(with);
}

/* With TRUNCATED, the file loses its contents; with GROWN, it then becomes half as large again. */
enum fails { PUT, GET, TRUNCATED, GROWN };

static int break_file(const char *path, enum fails what)
{
	if (what == PUT)
		return replace_file(path, "/dev/full");
	if (what == GET)
		return replace_file(path, "/dev/null");
	return truncate(path, 0) || truncate(path, what == GROWN ? SIZE / 2 : 0);
}

/* Bytes that they fill: most of them are in the store. */
#define FILLED (3 * RAM)

/* Fill far memory, let the store fail, and read: what a child does */
static void lose_file(const char *spec, const char *path, unsigned int copies, enum fails what)
{
	const struct how how = { spec, PAGE, copies };
	volatile char *p;
	size_t i;

	if (open_far(&how, RAM, SIZE) || pvas_far_alloc((void **)&p, SIZE))
		_exit(10);
	memset((char *)p, 3, FILLED);
	if (break_file(path, what))
		_exit(11);
	if (what == PUT || what == TRUNCATED)
		memset((char *)p, 4, FILLED);
	for (i = 0; i < FILLED; i += PAGE)
		if (p[i] != (what == PUT || what == TRUNCATED ? 4 : 3))
			_exit(12);
	_exit(0);
}

/* Run it with its standard error in @said: the child's exit status */
static int run_losing(const char *stores, unsigned int copies, enum fails what, char *said,
		      size_t room)
{
	char path[] = "/var/tmp/pvas-far-XXXXXX", spec[128];
	int fd = mkstemp(path), tube[2], status = -1;
	ssize_t n;
	pid_t pid;

	if (fd < 0 || ftruncate(fd, 2 * SIZE) || pipe(tube))
		return -1;
	close(fd);
	snprintf(spec, sizeof(spec), stores, path);
	pid = fork();
	if (!pid) {
		dup2(tube[1], 2);
		lose_file(spec, path, copies, what);
	}
	close(tube[1]);
	waitpid(pid, &status, 0);
	n = read(tube[0], said, room - 1);
	said[n > 0 ? n : 0] = 0;
	close(tube[0]);
	unlink(path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_one_line(const char *said)
{
	return *said && strcspn(said, "\n") == strlen(said) - 1;
}

static const char *const protocols[] = { "pvas", "r3", "r58", "r77" };

/* In processes of their own: with each protocol, as the environment has it */
#define FOR_EACH_PROTOCOL(i) \
	for (i = 0; i < 4 && !setenv("PVAS_FAR_PROTOCOL", protocols[i], 1); i++)

static void lose_all(struct __test_metadata *_metadata)
{
	static const char *const reasons[] = {
		[PUT] = "write: No space left on device",
		[GET] = "truncated",
		[TRUNCATED] = "truncated",
		[GROWN] = "truncated",
	};
	char said[1000];
	int what;

	for (what = PUT; what <= GROWN; what++) {
		EXPECT_EQ(1, run_losing("file:%s", 1, what, said, sizeof(said)));
		EXPECT_NE(NULL, strstr(said, "pvas-far: file:/var/tmp/pvas-far-"));
		EXPECT_NE(NULL, strstr(said, reasons[what]));
		EXPECT_TRUE(is_one_line(said));
	}
}

TEST(store_fails)
{
	int i;

	FOR_EACH_PROTOCOL(i)
		lose_all(_metadata);
}

/* All threads of the pager meet the same error: the user reads it once. */
TEST(store_fails_in_all_threads)
{
	char said[1000];
	int i;

	for (i = 0; i < 40; i++) {
		EXPECT_EQ(1, run_losing("file:%s", 1, PUT, said, sizeof(said)));
		EXPECT_TRUE(is_one_line(said));
	}
}

static void lose_copies(struct __test_metadata *_metadata)
{
	char said[1000];

	EXPECT_EQ(0, run_losing("zip,file:%s,zip", 2, GET, said, sizeof(said)));
	EXPECT_NE(NULL, strstr(said, "its pages have second copies"));
	EXPECT_TRUE(is_one_line(said));
	EXPECT_EQ(0, run_losing("zip,file:%s,zip", 2, PUT, said, sizeof(said)));
	EXPECT_NE(NULL, strstr(said, "its pages have second copies"));
	EXPECT_TRUE(is_one_line(said));
}

TEST(store_fails_but_there_are_copies)
{
	int i;

	FOR_EACH_PROTOCOL(i)
		lose_copies(_metadata);
}

/* ---- a full file system ---- */

static int open_in_small_fs(const char *dir)
{
	struct how how = { "file:/tmp", PAGE };

	if (unshare(CLONE_NEWNS))
		return 77;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", 0, "size=8M"))
		return 77;
	return open_far(&how, RAM, SIZE) == -ENOSPC && strstr(pvas_far_error(), "no room") ? 0 : 1;
}

TEST(file_system_full)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(open_in_small_fs("/tmp"));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP(return, "may not mount a file system");
	EXPECT_EQ(0, WEXITSTATUS(status));
}

/* ---- a killed program leaves nothing ---- */

static unsigned int entries(const char *dir)
{
	unsigned int n = 0;
	DIR *d = opendir(dir);

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void run_until_killed(const char *dir, int ready)
{
	char spec[64];
	struct how how = { spec, PAGE };
	void *p;

	snprintf(spec, sizeof(spec), "file:%s", dir);
	if (open_far(&how, RAM, SIZE) || pvas_far_alloc(&p, SIZE))
		_exit(1);
	memset(p, 1, SIZE);
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		memset(p, 2, SIZE);
}

static void kill_one(struct __test_metadata *_metadata)
{
	char dir[] = "/var/tmp/pvas-far-XXXXXX", c;
	int ready[2], status;
	pid_t pid;

	ASSERT_NE(NULL, mkdtemp(dir));
	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	if (!pid)
		run_until_killed(dir, ready[1]);
	close(ready[1]);
	EXPECT_EQ(1, read(ready[0], &c, 1));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(2, entries(dir));
	EXPECT_EQ(0, rmdir(dir));
	close(ready[0]);
}

TEST(killed)
{
	int i;

	FOR_EACH_PROTOCOL(i)
		kill_one(_metadata);
}

/* Two jobs on one file would destroy each other's pages. */
TEST(file_in_use)
{
	char path[] = "/var/tmp/pvas-far-XXXXXX", spec[64];
	struct how how = { spec, PAGE };
	int fd = mkstemp(path), started[2], end[2], status;
	pid_t pid;
	char c;

	snprintf(spec, sizeof(spec), "file:%s", path);
	ASSERT_EQ(0, ftruncate(fd, SIZE) | pipe(started) | pipe(end));
	pid = fork();
	if (!pid) {
		close(end[1]);
		if (open_far(&how, RAM, SIZE) || write(started[1], "", 1) != 1)
			_exit(1);
		_exit(read(end[0], &c, 1) != 0);
	}
	EXPECT_EQ(1, read(started[0], &c, 1));
	EXPECT_EQ(-EBUSY, open_far(&how, RAM, SIZE));
	close(end[1]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, open_far(&how, RAM, SIZE));
	EXPECT_EQ(0, pvas_far_close());
	unlink(path);
	close(fd);
}

TEST_HARNESS_MAIN
