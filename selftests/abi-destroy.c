// SPDX-License-Identifier: GPL-2.0-only
/* PVAS_IOC_DESTROY, error by error, and what closing the file does; without libpvas. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
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

PT_MAIN()
