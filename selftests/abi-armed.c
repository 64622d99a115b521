// SPDX-License-Identifier: GPL-2.0-only
/*
 * SPAWN beside an execve() of another thread, which has begun before the process was armed: the
 * new program is no task, and may have rights that the creator of the space has not.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/fanotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define INTERPRETER	"/lib64/ld-linux-x86-64.so.2"
#define TASK_INDEX	3

/* Opened for an exec, it is held: the program itself has been opened before. */
static int watch_interpreter(void)
{
	int fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN_EXEC_PERM, AT_FDCWD, INTERPRETER)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* The descriptor in the next event, within ten seconds, or -1. Those of other processes go on. */
static int await_exec(int watch, pid_t pid)
{
	struct pollfd p = { .fd = watch, .events = POLLIN };
	struct fanotify_event_metadata event;
	struct fanotify_response r = { .response = FAN_ALLOW };

	while (poll(&p, 1, 10000) == 1 && read(watch, &event, sizeof(event)) == sizeof(event)) {
		if (event.pid == pid)
			return event.fd;
		r.fd = event.fd;
		if (write(watch, &r, sizeof(r)) != sizeof(r))
			return -1;
		close(event.fd);
	}
	return -1;
}

struct spawner {
	int dev;
	int go;		/* read: the exec has begun */
	int done;	/* written: SPAWN has returned */
};

static void *spawn(void *arg)
{
	struct spawner *s = arg;
	char result;

	if (read(s->go, &result, 1) != 1)
		return NULL;
	result = (char)-pt_raw_arm(s->dev, 0, TASK_INDEX, 0);
	if (write(s->done, &result, 1) != 1)
		return NULL;
	for (;;)
		pause();
}

static void exec_beside(int dev, int go, int done)
{
	struct spawner s = { dev, go, done };
	pthread_t thread;

	if (!pthread_create(&thread, NULL, spawn, &s))
		execl("/bin/sleep", "sleep", "1000", NULL);
	for (;;)
		pause();
}

/**
 * struct scene - a process with a thread in an exec that is held, and one in SPAWN
 * @watch:	where the exec is allowed or denied
 * @held:	the descriptor to say that of
 * @done:	SPAWN has returned
 */
struct scene {
	struct pt_raw raw;
	pid_t pid;
	int watch;
	int held;
	int done;
};

/* 0; 1 if this can't be seen here, -1 if it fails */
static int begin(struct scene *s)
{
	int go[2], done[2];

	s->watch = watch_interpreter();
	if (s->watch < 0)
		return 1;
	if (pt_raw_make(&s->raw) || pipe2(go, O_CLOEXEC) || pipe2(done, O_CLOEXEC))
		return -1;
	s->done = done[0];
	s->pid = fork();
	if (!s->pid)
		exec_beside(s->raw.fd, go[0], done[1]);
	s->held = await_exec(s->watch, s->pid);
	return s->held >= 0 && write(go[1], "", 1) == 1 ? 0 : -1;
}

static bool answer(struct scene *s, unsigned int response)
{
	struct fanotify_response r = { s->held, response };

	return write(s->watch, &r, sizeof(r)) == sizeof(r) && !close(s->held) && !close(s->watch);
}

/* Has SPAWN returned within MS milliseconds? */
static bool has_returned(struct scene *s, int ms)
{
	struct pollfd p = { .fd = s->done, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static bool is_sleep(pid_t pid)
{
	char name[32], exe[64] = "";

	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	return readlink(name, exe, sizeof(exe) - 1) > 0 && strstr(exe, "sleep");
}

/* SPAWN in the middle of another thread's exec does not arm what that becomes */
MODULE_TEST(armed_in_an_exec, "the ABI of /dev/pvas")
{
	struct pvas_destroy destroy = { .size = sizeof(destroy), .flags = PVAS_DESTROY_KILL };
	int status, i, err;
	struct scene s;

	err = begin(&s);
	if (err > 0)
		SKIP(return, "no events of fanotify that wait for an answer");
	ASSERT_EQ(0, err);
	EXPECT_FALSE(has_returned(&s, 500));
	EXPECT_EQ(0, pt_raw_count(s.raw.fd));
	ASSERT_TRUE(answer(&s, FAN_ALLOW));
	for (i = 0; i < 5000 && !is_sleep(s.pid); i++)
		usleep(1000);
	ASSERT_TRUE(is_sleep(s.pid));
	EXPECT_EQ(0, pt_raw_count(s.raw.fd));
	/* A member would be killed now. */
	EXPECT_EQ(0, pt_ioctl(s.raw.fd, PVAS_IOC_DESTROY, &destroy));
	usleep(100000);
	EXPECT_EQ(0, waitpid(s.pid, &status, WNOHANG));
	pt_kill(s.pid);
	pt_raw_close(&s.raw);
}

/* it goes on if the exec fails */
MODULE_TEST(armed_after_an_exec_failed, "the ABI of /dev/pvas")
{
	char result = 1;
	struct scene s;
	int err;

	err = begin(&s);
	if (err > 0)
		SKIP(return, "no events of fanotify that wait for an answer");
	ASSERT_EQ(0, err);
	EXPECT_FALSE(has_returned(&s, 200));
	ASSERT_TRUE(answer(&s, FAN_DENY));
	ASSERT_TRUE(has_returned(&s, 10000));
	ASSERT_EQ(1, read(s.done, &result, 1));
	EXPECT_EQ(0, result);
	EXPECT_EQ(1, pt_raw_count(s.raw.fd));
	pt_kill(s.pid);
	EXPECT_EQ(0, pt_raw_count(s.raw.fd));
	pt_raw_close(&s.raw);
}

PT_MAIN()
