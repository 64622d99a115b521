// SPDX-License-Identifier: GPL-2.0-only
/* The rules for every ioctl of /dev/pvas, error by error; without libpvas. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

static struct pvas_info new_info(void)
{
	return (struct pvas_info){ .size = sizeof(struct pvas_info) };
}

/* INFO says the ABI's version and limits */
PVAS_TEST(info)
{
	struct pvas_info info = new_info();
	int fd = pt_open();

	ASSERT_EQ(0, pt_ioctl(fd, PVAS_IOC_INFO, &info));
	EXPECT_EQ(PVAS_ABI_MAJOR, info.abi_major);
	EXPECT_LE(PVAS_ABI_MINOR, info.abi_minor);
	EXPECT_EQ(PVAS_SHIFT_MIN, info.shift_min);
	EXPECT_EQ(PVAS_SHIFT_MAX, info.shift_max);
	EXPECT_EQ(PVAS_MAX_TASKS, info.max_tasks);
	EXPECT_EQ(0, info.spaces);
	EXPECT_TRUE(info.features & PVAS_FEATURE_TASK_EXE);
	close(fd);
}

/* another number, type, direction, or none of it: ENOTTY */
PVAS_TEST(unknown_command)
{
	struct pvas_info info = new_info();
	int fd = pt_open();

	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, _IOWR(PVAS_IOC_MAGIC, 100, struct pvas_info), &info));
	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, _IOWR(PVAS_IOC_MAGIC, 255, struct pvas_info), &info));
	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, _IOWR(PVAS_IOC_MAGIC + 1, 0, struct pvas_info), &info));
	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, _IOR(PVAS_IOC_MAGIC, 0, struct pvas_info), &info));
	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, _IOW(PVAS_IOC_MAGIC, 0, struct pvas_info), &info));
	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, _IO(PVAS_IOC_MAGIC, 0), &info));
	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, 0x5401 /* TCGETS */, &info));
	close(fd);
}

/* read, write, mmap and lseek of the device mean nothing */
PVAS_TEST(not_a_file)
{
	int fd = pt_open();
	char c = 0;

	EXPECT_EQ(-1, read(fd, &c, 1));
	EXPECT_EQ(-1, write(fd, &c, 1));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0));
	close(fd);
}

static const struct {
	const char *name;
	unsigned long cmd;
	unsigned int size;
} commands[] = {
	{ "INFO", PVAS_IOC_INFO, sizeof(struct pvas_info) },
	{ "CREATE", PVAS_IOC_CREATE, sizeof(struct pvas_create) },
	{ "SPAWN", PVAS_IOC_SPAWN, sizeof(struct pvas_spawn) },
	{ "DESTROY", PVAS_IOC_DESTROY, sizeof(struct pvas_destroy) },
	{ "QUERY", PVAS_IOC_QUERY, sizeof(struct pvas_query) },
	{ "ATTACH", PVAS_IOC_ATTACH, sizeof(struct pvas_attach) },
	{ "REFS", PVAS_IOC_REFS, sizeof(struct pvas_refs) },
};

/* a struct smaller than the first published: EINVAL, for every command */
PVAS_TEST(size_too_small)
{
	uint32_t buf[64] = { 0 };
	int fd = pt_open();
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(commands); i++) {
		TH_LOG("%s", commands[i].name);
		buf[0] = 0;
		EXPECT_EQ(-EINVAL, pt_ioctl(fd, commands[i].cmd, buf));
		buf[0] = 4;
		EXPECT_EQ(-EINVAL, pt_ioctl(fd, commands[i].cmd, buf));
		buf[0] = commands[i].size - 1;
		EXPECT_EQ(-EINVAL, pt_ioctl(fd, commands[i].cmd, buf));
	}
	close(fd);
}

/* Each command, with a struct of zeros but for its size and what @spoil does to it */
static void refuse_each(struct __test_metadata *_metadata, int error,
			void (*spoil)(unsigned char *buf, unsigned int size))
{
	unsigned char buf[256];
	int fd = pt_open();
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(commands); i++) {
		TH_LOG("%s", commands[i].name);
		memset(buf, 0, sizeof(buf));
		*(uint32_t *)buf = commands[i].size;
		spoil(buf, commands[i].size);
		EXPECT_EQ(-error, pt_ioctl(fd, commands[i].cmd, buf));
	}
	close(fd);
}

static void unknown_tail(unsigned char *buf, unsigned int size)
{
	*(uint32_t *)buf = size + 8;
	buf[size + 7] = 1;
}

/* a larger struct with something in it that the module does not know: E2BIG */
PVAS_TEST(size_too_large)
{
	refuse_each(_metadata, E2BIG, unknown_tail);
}

/* a larger struct whose tail is zero is as good as ours */
PVAS_TEST(size_larger_with_zeros)
{
	union { struct pvas_info info; char bytes[4096]; } u;
	int fd = pt_open();

	memset(&u, 0, sizeof(u));
	u.info.size = sizeof(u.info) + 8;
	EXPECT_EQ(0, pt_ioctl(fd, PVAS_IOC_INFO, &u));
	EXPECT_EQ(PVAS_ABI_MAJOR, u.info.abi_major);
	memset(&u, 0, sizeof(u));
	u.info.size = sizeof(u);
	EXPECT_EQ(0, pt_ioctl(fd, PVAS_IOC_INFO, &u));
	u.info.size = -1;
	EXPECT_GT(0, pt_ioctl(fd, PVAS_IOC_INFO, &u));
	close(fd);
}

static void flag_31(unsigned char *buf, unsigned int size)
{
	(void)size;
	((uint32_t *)buf)[1] = 1U << 31;
}

static void flag_7(unsigned char *buf, unsigned int size)
{
	(void)size;
	((uint32_t *)buf)[1] = 1U << 7;
}

/* a flag nobody knows: EINVAL, for every command */
PVAS_TEST(unknown_flags)
{
	refuse_each(_metadata, EINVAL, flag_31);
	refuse_each(_metadata, EINVAL, flag_7);
}

/* The last member of each struct is reserved. */
static void last_byte(unsigned char *buf, unsigned int size)
{
	buf[size - 1] = 1;
}

/* a reserved member that is not zero: EINVAL, for every command */
PVAS_TEST(reserved_not_zero)
{
	refuse_each(_metadata, EINVAL, last_byte);
}

/* a pointer to nothing, to the kernel, over the edge of a mapping: EFAULT */
PVAS_TEST(bad_pointers)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = pt_open();
	size_t i;

	ASSERT_NE(MAP_FAILED, page);
	munmap(page + 4096, 4096);
	for (i = 0; i < PT_ARRAY_SIZE(commands); i++) {
		uint32_t *edge = (uint32_t *)(page + 4096 - 8);

		TH_LOG("%s", commands[i].name);
		EXPECT_EQ(-EFAULT, pt_ioctl(fd, commands[i].cmd, NULL));
		EXPECT_EQ(-EFAULT, pt_ioctl(fd, commands[i].cmd, (void *)0xffffffff81000000UL));
		EXPECT_EQ(-EFAULT, pt_ioctl(fd, commands[i].cmd, page + 4096));
		edge[0] = commands[i].size;
		edge[1] = 0;
		EXPECT_EQ(-EFAULT, pt_ioctl(fd, commands[i].cmd, edge));
	}
	close(fd);
}

/* a struct that can't be written: EFAULT, and nothing has changed */
PVAS_TEST(readonly_struct)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pvas_spawn *spawn = page;
	struct pvas_info *info = page;
	struct pt_raw raw;

	ASSERT_EQ(0, pt_raw_make(&raw));
	*info = new_info();
	mprotect(page, 4096, PROT_READ);
	EXPECT_EQ(-EFAULT, pt_ioctl(raw.fd, PVAS_IOC_INFO, info));
	mprotect(page, 4096, PROT_READ | PROT_WRITE);

	*spawn = (struct pvas_spawn){ .size = sizeof(*spawn), .index = raw.create.first };
	mprotect(page, 4096, PROT_READ);
	EXPECT_EQ(-EFAULT, pt_ioctl(raw.fd, PVAS_IOC_SPAWN, spawn));
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	munmap(page, 4096);
	pt_raw_close(&raw);
}

/* an ia32 call of a 64-bit process: there is no 32-bit ABI */
PVAS_TEST(ia32_ioctl)
{
	struct pvas_info *info = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int fd = pt_open();
	long err;

	ASSERT_NE(MAP_FAILED, (void *)info);
	if (pt_ia32(20 /* getpid */, 0, 0, 0, 0, 0, 0) != getpid())
		SKIP(return, "no ia32 system calls in this kernel");
	*info = new_info();
	err = pt_ia32(54 /* ioctl */, fd, PVAS_IOC_INFO, (long)info, 0, 0, 0);
	EXPECT_EQ(-ENOTTY, err);
	EXPECT_EQ(0, info->abi_major);
	close(fd);
}

PT_MAIN()
