// SPDX-License-Identifier: GPL-2.0-only
/* Spaces with a key, and PVAS_IOC_ATTACH, error by error; without libpvas. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

static int make_with_key(struct pt_raw *raw, const char *key, uint32_t len)
{
	pt_raw_init(raw, PVAS_SHIFT_DEFAULT);
	raw->create.flags |= PVAS_CREATE_KEY;
	raw->create.key = (uint64_t)key;
	raw->create.key_len = len;
	return pt_raw_create(raw);
}

static int attach(int fd, const char *key, uint32_t len, struct pvas_attach *attach)
{
	*attach = (struct pvas_attach){
		.size = sizeof(*attach), .key = (uint64_t)key, .key_len = len,
	};
	return pt_ioctl(fd, PVAS_IOC_ATTACH, attach);
}

/* a key without the flag, the flag without a key, too long, no memory */
PVAS_TEST(key_arguments)
{
	static char key[PVAS_KEY_MAX + 1];
	struct pvas_attach a;
	struct pt_raw raw;
	int fd = pt_open();

	memset(key, 'k', sizeof(key));
	EXPECT_EQ(-EINVAL, make_with_key(&raw, key, 0));
	EXPECT_EQ(-EINVAL, make_with_key(&raw, key, sizeof(key)));
	EXPECT_EQ(-EFAULT, make_with_key(&raw, NULL, 5));
	EXPECT_EQ(-EFAULT, make_with_key(&raw, (char *)-4096, 5));
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.create.key_len = 5;
	EXPECT_EQ(-EINVAL, pt_raw_create(&raw));
	raw.create.key_len = 0;
	raw.create.key = (uint64_t)key;
	EXPECT_EQ(-EINVAL, pt_raw_create(&raw));
	EXPECT_EQ(-EINVAL, attach(fd, key, 0, &a));
	EXPECT_EQ(-EINVAL, attach(fd, key, sizeof(key), &a));
	EXPECT_EQ(-EFAULT, attach(fd, NULL, 5, &a));
	EXPECT_EQ(-ENOENT, attach(fd, key, PVAS_KEY_MAX, &a));
	close(fd);
}

static int attach_job(void *arg)
{
	struct pvas_attach a;

	(void)arg;
	return attach(pt_open(), "job", 3, &a);
}

static int make_job(void *arg)
{
	struct pt_raw raw;

	(void)arg;
	return pt_dumpable() ?: make_with_key(&raw, "job", 3);
}

/* found by its key, by its user alone, until the last file and task are gone */
PVAS_TEST(key_attach)
{
	struct pvas_attach a;
	struct pt_raw raw, other;
	int fd = pt_open();
	pid_t pid;

	ASSERT_EQ(0, make_with_key(&raw, "job", 3));
	EXPECT_EQ(-EEXIST, make_with_key(&other, "job", 3));
	EXPECT_EQ(0, make_with_key(&other, "job2", 4));
	pt_raw_close(&other);
	EXPECT_EQ(-ENOENT, attach(fd, "jo", 2, &a));
	EXPECT_EQ(-EBUSY, attach(raw.fd, "job", 3, &a));
	EXPECT_EQ(0, attach(fd, "job", 3, &a));
	EXPECT_EQ(raw.create.id, a.id);
	EXPECT_EQ(raw.create.shift, a.shift);
	EXPECT_EQ(raw.create.first, a.first);
	EXPECT_EQ(raw.create.last, a.last);
	EXPECT_EQ(-EBUSY, attach(fd, "job", 3, &a));
	if (!geteuid()) {
		EXPECT_EQ(-ENOENT, pt_as_nobody(attach_job, NULL));
		EXPECT_EQ(0, pt_as_nobody(make_job, NULL));
	}
	/* The second file is enough to keep it, and to spawn. */
	close(raw.fd);
	raw.fd = fd;
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
	close(fd);
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	raw.fd = pt_open();
	EXPECT_EQ(-ENOENT, attach(raw.fd, "job", 3, &a));
	EXPECT_EQ(0, make_with_key(&other, "job", 3));
	pt_raw_close(&other);
	pt_raw_close(&raw);
}

PT_MAIN()
