// SPDX-License-Identifier: GPL-2.0-only
/* PVAS_IOC_DESTROY, error by error, and what closing the file does; without libpvas. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

/* with a task: EBUSY; with KILL it ends it; then the file can make another */
PVAS_TEST(destroy)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy) };
	struct pt_raw raw, second;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	EXPECT_EQ(-EBUSY, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
	destroy.flags = PVAS_DESTROY_KILL;
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	EXPECT_EQ(-ENOENT, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, 0, 1, 0));
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, raw.create.id, 1, 0));
	EXPECT_EQ(-ESRCH, pt_raw_count(raw.fd));

	pt_raw_init(&second, PVAS_SHIFT_DEFAULT);
	close(second.fd);
	second.fd = raw.fd;
	EXPECT_EQ(0, pt_raw_create(&second));
	EXPECT_NE(raw.create.id, second.create.id);
	destroy.flags = 0;
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	pt_raw_close(&raw);
}

/* Has the line of a space in /proc/pvas that word? */
static bool shown(uint32_t id, const char *word)
{
	FILE *f = fopen("/proc/pvas", "re");
	char line[512], name[32];
	bool found = false;

	snprintf(name, sizeof(name), "space %u ", id);
	while (f && fgets(line, sizeof(line), f))
		found |= !strncmp(line, name, strlen(name)) && strstr(line, word);
	if (f)
		fclose(f);
	return found;
}

/* with KILL a space ends for those, too, who have found it by its key: it lets nobody in */
PVAS_TEST(destroy_with_others_attached)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy), .flags = PVAS_DESTROY_KILL };
	struct pvas_attach attach = {
		.size = sizeof(attach), .key = (uint64_t)"common", .key_len = 6,
	};
	struct pt_raw raw, again;
	int other = pt_open();
	pid_t pid;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.create.flags |= PVAS_CREATE_KEY;
	raw.create.key = attach.key;
	raw.create.key_len = attach.key_len;
	ASSERT_EQ(0, pt_raw_create(&raw));
	EXPECT_EQ(0, pt_ioctl(other, PVAS_IOC_ATTACH, &attach));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	EXPECT_EQ(-ENOENT, pt_raw_arm(other, 0, 1, 0));
	/* It is there as long as the other file is, but not open. */
	EXPECT_TRUE(shown(raw.create.id, " closing"));
	EXPECT_FALSE(shown(raw.create.id, " open"));
	/* The key is free again, for a space in which children live. */
	pt_raw_init(&again, PVAS_SHIFT_DEFAULT);
	again.create.flags |= PVAS_CREATE_KEY;
	again.create.key = attach.key;
	again.create.key_len = attach.key_len;
	ASSERT_EQ(0, pt_raw_create(&again));
	pid = pt_raw_spawn(&again, 1);
	EXPECT_EQ(pid, pt_raw_call(&again, 1, SYS_getpid));
	pt_kill(pid);
	pt_raw_close(&again);
	pt_raw_close(&raw);
	close(other);
}

/* an armed process is a reason too: EBUSY; with KILL it gets SIGKILL */
PVAS_TEST(destroy_armed)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy) };
	struct pt_raw raw;
	int fds[2], err = -1;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	if (!pid) {
		err = pt_raw_arm(raw.fd, 0, 1, 0);
		_exit(write(fds[1], &err, sizeof(err)) != sizeof(err) || pause());
	}
	ASSERT_EQ(sizeof(err), read(fds[0], &err, sizeof(err)));
	ASSERT_EQ(0, err);
	EXPECT_EQ(-EBUSY, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	destroy.flags = PVAS_DESTROY_KILL;
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	pt_raw_close(&raw);
}

/* closing the file kills the tasks, if so asked, and only then */
PVAS_TEST(close_kills_or_not)
{
	struct pt_raw raw;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	close(raw.fd);
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.create.flags = 0;
	ASSERT_EQ(0, pt_raw_create(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	close(raw.fd);
	raw.fd = pt_open();
	EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
	/* Closed to new ones. */
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, raw.create.id, 2, 0));
	EXPECT_EQ(0, pt_raw_query(&raw));
	pt_kill(pid);
	EXPECT_EQ(-ENOENT, pt_raw_query(&raw));
	pt_raw_close(&raw);
}

/* two files race to create, spawn and destroy: nothing but the errors expected */
PVAS_TEST(destroy_races_with_spawn)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy), .flags = PVAS_DESTROY_KILL };
	struct pt_raw raw;
	unsigned int round;
	pid_t pid;
	int ret;

	for (round = 0; round < 30; round++) {
		ASSERT_EQ(0, pt_raw_make(&raw));
		pid = fork();
		if (!pid) {
			unsigned int i;

			for (i = 0; i < 1000; i++) {
				ret = pt_raw_arm(raw.fd, raw.create.id, 1 + i % 40, 0);
				/* EPERM: no longer this file's, and not closed yet */
				if (ret && ret != -ENOENT && ret != -EPERM)
					_exit(1);
				if (!ret && pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL))
					_exit(2);
			}
			_exit(0);
		}
		usleep(1000 * (round % 8));
		EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
		ret = pt_wait(pid);
		EXPECT_TRUE(ret == 0 || ret == 256 + SIGKILL) TH_LOG("child %d", ret);
		pt_raw_close(&raw);
	}
}

/* ---- a creator that lives on ---- */

#define MUCH (64L << 20)

static pid_t *creator_pid;
static int hold[2];

static int tell_pid(void *arg)
{
	(void)arg;
	*creator_pid = getpid();
	return 0;
}

/* The creator closes its file, and waits. */
static void *make_and_hold(void *arg)
{
	struct pt_raw *raw = arg;
	struct pt_slot steps[] = {
		{ .nr = SYS_close, .args = { raw->fd } },
		{ .nr = SYS_read, .args = { hold[0], PT_DATA_AT + PT_DATA_LEN - 8, 1 } },
	};
	long ret[2];

	raw->after = steps;
	raw->n_after = PT_ARRAY_SIZE(steps);
	raw->after_ret = ret;
	return (void *)(long)pt_raw_create(raw);
}

/* the last task's memory is freed when it ends, though nobody can enter any more */
PVAS_TEST(creator_outlives_the_last_task)
{
	struct pt_raw raw, use;
	pthread_t maker;
	char path[64];
	pid_t pid;
	int fd;

	creator_pid = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)creator_pid);
	ASSERT_EQ(0, pipe(hold));
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.create.flags = 0;
	raw.prepare = tell_pid;
	fd = raw.fd;
	use = raw;
	ASSERT_EQ(0, pthread_create(&maker, NULL, make_and_hold, &raw));
	while (pt_raw_count(fd) < 0)
		usleep(1000);
	snprintf(path, sizeof(path), "/proc/%d/mem", *creator_pid);
	use.mem = open(path, O_RDWR | O_CLOEXEC);
	use.data = calloc(1, PT_DATA_LEN);
	pid = pt_raw_spawn(&use, 1);
	ASSERT_LT(0, pid);
	EXPECT_LT(0, pt_raw_call(&use, 1, SYS_mmap, 0, MUCH, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
	EXPECT_LE(MUCH >> 10, pt_status_kib(*creator_pid, "VmRSS:"));
	/* It's the last file of the space. */
	close(fd);
	pt_kill(pid);
	EXPECT_GT(MUCH >> 11, pt_status_kib(*creator_pid, "VmRSS:"));
	EXPECT_EQ(1, write(hold[1], "g", 1));
	pthread_join(maker, NULL);
	close(use.mem);
	free(use.data);
	raw.fd = -1;
	pt_raw_close(&raw);
}

PT_MAIN()
