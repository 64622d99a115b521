// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: the descriptors that a space takes from its launcher. A file server
 * that hangs is in hung.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"
#include "kselftest_harness.h"

#define ENOUGH	64

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

static int set_limit(int n)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)n;
	return setrlimit(RLIMIT_NOFILE, &limit);
}

/* Above the numbers in use there are @n free ones. */
static int leave_free(int n)
{
	int fd = dup(0);

	close(fd);
	return set_limit(fd + n);
}

/* Does the reader of a pipe see that its only writer is closed? */
static int sees_end(struct pvas_space *s, int *p)
{
	struct pollfd reader = { .fd = p[0], .events = POLLIN };

	close(p[1]);
	return poll(&reader, 1, 5000) == 1 && (reader.revents & POLLHUP);
}

/* However few there are: either no space, or no copies. */
TEST(no_copies_remain)
{
	int n, p[2], err, made = 0;
	struct pvas_space *s;

	for (n = 1; n < ENOUGH && made < 3; n++) {
		ASSERT_EQ(set_limit(ENOUGH * 2), 0);
		ASSERT_EQ(pipe2(p, O_CLOEXEC), 0);
		ASSERT_EQ(leave_free(n), 0);
		err = pvas_space_create(&s, &user);
		ASSERT_EQ(set_limit(ENOUGH * 2), 0);
		if (!err) {
			EXPECT_TRUE(sees_end(s, p)) TH_LOG("%d free", n);
			pvas_space_destroy(s);
			made++;
		} else {
			EXPECT_TRUE(err == -EMFILE || err == -ENFILE)
				TH_LOG("%d free: %d %s", n, err, pvas_error_get());
			close(p[1]);
		}
		close(p[0]);
	}
	EXPECT_EQ(made, 3);
}

/* A start says that it lacks one, not that it lacks a right. */
TEST(start_without)
{
	char *argv[] = { "true", NULL };
	struct pvas_space *s;
	int n, ret = -EMFILE;
	pid_t pid;

	ASSERT_EQ(set_limit(ENOUGH * 2), 0);
	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	for (n = 0; n < ENOUGH && ret < 0; n++) {
		ASSERT_EQ(leave_free(n), 0);
		ret = pvas_task_spawn(s, PVAS_ANY, "/bin/true", argv, environ, NULL, &pid);
		ASSERT_EQ(set_limit(ENOUGH * 2), 0);
		EXPECT_TRUE(ret > 0 || ret == -EMFILE)
			TH_LOG("%d free: %d %s", n, ret, pvas_error_get());
	}
	ASSERT_GT(ret, 0);
	EXPECT_EQ(end_of(pid), 0);
	pvas_space_destroy(s);
}

static const char gaps_script[] =
	"for i in 3 30 100 300 900; do [ -e /proc/self/fd/$i ] || exit 1; done\n"
	"for i in 4 31 101 301 901 700 710 720; do [ ! -e /proc/self/fd/$i ] || exit 2; done";

/* However far apart they are, those that are close-on-exec are closed, and no others. */
TEST(gaps)
{
	static const int kept[] = { 3, 30, 100, 300, 900 };
	char *argv[] = { "sh", "-c", (char *)gaps_script, NULL };
	struct pvas_space *s;
	unsigned int i;
	pid_t pid;

	ASSERT_EQ(set_limit(1024), 0);
	ASSERT_EQ(syscall(SYS_close_range, 3, ~0U, 0), 0);
	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		ASSERT_EQ(dup2(0, kept[i]), kept[i]);
		ASSERT_EQ(dup3(0, kept[i] + 1, O_CLOEXEC), kept[i] + 1);
	}
	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	/* Later starts look first where an earlier one has found some. */
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(dup3(0, 700 + 10 * (int)i, O_CLOEXEC), 700 + 10 * (int)i);
		ASSERT_GT(pvas_task_spawn(s, PVAS_ANY, "/bin/sh", argv, environ, NULL, &pid), 0)
			TH_LOG("%s", pvas_error_get());
		EXPECT_EQ(end_of(pid), 0) TH_LOG("start %u", i);
	}
	pvas_space_destroy(s);
}

static const char secret_script[] = "[ ! -e /proc/self/fd/300 ]";

/* Where an earlier start has found some there are fewer now: none is counted twice. */
TEST(fewer_than_before)
{
	char *argv[] = { "sh", "-c", (char *)secret_script, NULL };
	struct pvas_space *s;
	int i, start;
	pid_t pid;

	ASSERT_EQ(set_limit(1024), 0);
	ASSERT_EQ(syscall(SYS_close_range, 3, ~0U, 0), 0);
	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	for (i = 100; i < 103; i++)
		ASSERT_EQ(dup2(0, i), i);
	for (start = 0; start < 3; start++) {
		if (start == 1) {
			close(100);
			close(101);
			ASSERT_EQ(dup2(0, 200), 200);
		} else if (start == 2) {
			ASSERT_EQ(dup3(0, 300, O_CLOEXEC), 300);
		}
		ASSERT_GT(pvas_task_spawn(s, PVAS_ANY, "/bin/sh", argv, environ, NULL, &pid), 0)
			TH_LOG("%s", pvas_error_get());
		EXPECT_EQ(end_of(pid), 0) TH_LOG("start %d", start);
	}
	pvas_space_destroy(s);
}

static const char listed_script[] =
	"for n in 3 4 5 6 7 8 9 900 1000; do [ ! -e /proc/self/fd/$n ] || l=\"$l $n\"; done;"
	"[ \"$l\" = \"$0\" ]";

static int has(struct pvas_space *s, const char *expected, const int *keep, size_t nr)
{
	char *argv[] = { "sh", "-c", (char *)listed_script, (char *)expected, NULL };
	const struct pvas_spawn_attr attr = {
		.size = sizeof(attr), .flags = PVAS_SPAWN_KEEP, .keep = keep, .nr_keep = nr,
	};
	pid_t pid;

	if (pvas_task_spawn(s, PVAS_ANY, "/bin/sh", argv, environ, &attr, &pid) < 0)
		return -1;
	return end_of(pid);
}

/* All between, below and above them are closed, close-on-exec or not. */
TEST(kept)
{
	const int keep[] = { 4, 5, 7 }, high[] = { 8, 1000 };
	const int absent[] = { 3, 6, 9, 900 };
	struct pvas_space *s;
	int fd;

	ASSERT_EQ(set_limit(1024), 0);
	closefrom(3);
	for (fd = 3; fd < 10; fd++)
		ASSERT_EQ(dup3(0, fd, fd == 6 ? O_CLOEXEC : 0), fd);
	ASSERT_EQ(dup2(0, 1000), 1000);
	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	EXPECT_EQ(has(s, " 4 5 7", keep, 3), 0);
	EXPECT_EQ(has(s, " 8 1000", high, 2), 0);
	EXPECT_EQ(has(s, "", NULL, 0), 0);
	close(3);
	EXPECT_EQ(has(s, " 9", absent, 4), 0);
	pvas_space_destroy(s);
}

static void start_with_low_numbers(void)
{
	char *argv[] = { "sh", "-c", "[ ! -e /proc/self/fd/3 ]", NULL };
	struct pvas_space *s;
	pid_t pid;

	closefrom(3);
	if (pvas_space_create(&s, &user) || dup2(0, 100) < 0)
		_exit(2);
	if (pvas_task_spawn(s, PVAS_ANY, "/bin/sh", argv, environ, NULL, &pid) < 0)
		_exit(3);
	_exit(!!end_of(pid));
}

/* The library's have the lowest numbers, and a list of descriptors is made behind a gap. */
TEST(none_of_the_library)
{
	pid_t pid = fork();

	if (!pid)
		start_with_low_numbers();
	EXPECT_EQ(end_of(pid), 0);
}

/* A limit of files counts for no memory of the library. */
TEST(small_files_only)
{
	const struct rlimit limit = { 4096, 4096 };
	char *argv[] = { "true", NULL };
	struct pvas_space *s;
	pid_t pid;

	ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	ASSERT_GT(pvas_task_spawn(s, PVAS_ANY, "/bin/true", argv, environ, NULL, &pid), 0)
		TH_LOG("%s", pvas_error_get());
	EXPECT_EQ(end_of(pid), 0);
	pvas_space_destroy(s);
}

/* The numbers, of 0 to 2, that are open, as a mask */
static int standard_open(void)
{
	int i, mask = 0;

	for (i = 0; i < 3; i++)
		mask |= (fcntl(i, F_GETFD) >= 0) << i;
	return mask;
}

static void create_without_standard(void)
{
	char *argv[] = { "sleep", "1000", NULL };
	struct pvas_space *s;
	int i, bad = 0;
	pid_t pid;

	for (i = 0; i < 3; i++)
		close(i);
	if (pvas_space_create(&s, &user))
		_exit(100);
	bad |= standard_open();
	if (pvas_task_spawn(s, PVAS_ANY, "/bin/sleep", argv, environ, NULL, &pid) < 0)
		_exit(101);
	bad |= standard_open() << 3;
	pvas_space_destroy(s);
	_exit(bad);
}

/* A daemon opens something else there. */
TEST(not_the_standard_ones)
{
	pid_t pid = fork();

	if (!pid)
		create_without_standard();
	EXPECT_EQ(end_of(pid), 0);
}

/* A message queue: a task's mmap(), which fails, leaves the launcher's request alone. */
TEST(notification_remains)
{
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	char number[16], *argv[] = { NULL, (char *)"map-none", number, NULL };
	int queue = (int)syscall(SYS_mq_open, "pvas-test", O_RDWR | O_CREAT, 0600, NULL);
	struct pvas_space *s;
	pid_t pid;
	int i;

	if (queue < 0)
		SKIP(return, "no message queues: %s", strerror(errno));
	syscall(SYS_mq_unlink, "pvas-test");
	ASSERT_EQ(fcntl(queue, F_SETFD, 0), 0);
	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	usleep(100000);		/* copies are closed */
	ASSERT_EQ(syscall(SYS_mq_notify, queue, &none), 0);
	argv[0] = (char *)ours("peer_task");
	snprintf(number, sizeof(number), "%d", queue);
	/* The first copy is found out, the others are not made. */
	for (i = 0; i < 3; i++) {
		ASSERT_GT(pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, NULL, &pid), 0);
		EXPECT_EQ(end_of(pid), 0);
		EXPECT_EQ(syscall(SYS_mq_notify, queue, &none), -1);
		EXPECT_EQ(errno, EBUSY);
	}
	pvas_space_destroy(s);
	close(queue);
}

TEST_HARNESS_MAIN
