// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process whose mm something else has hold of can't make it a space: EBUSY. See
 * abi-creator.c for its areas.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define PAGE 4096UL
#define EXTRA_AT (PT_STUB_AT + 0x10000UL)

/* Not emulated, so it is executed in a page of the kernel's */
__asm__(".pushsection .text\n"
	"	.globl probed\n"
	"	.type probed, @function\n"
	"probed:	xor %eax, %eax\n"
	"	ret\n"
	".popsection\n");
void probed(void);

/* Nothing. The others have -ENOTSUP where the kernel has no such thing. */
static int have_nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* A ring of a process without CAP_IPC_LOCK: for others, 7.2 does not count what they pin. */
static int ring_of_a_user(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2], less[2];
	struct io_uring_params p = { 0 };
	int fd;

	if (syscall(SYS_capget, &header, data))
		return -1;
	memcpy(less, data, sizeof(less));
	less[0].effective &= ~(1U << CAP_IPC_LOCK);
	if (syscall(SYS_capset, &header, less))
		return -1;
	fd = syscall(SYS_io_uring_setup, 4, &p);
	return syscall(SYS_capset, &header, data) ? -1 : fd;
}

static int have_registered_buffer(void *arg)
{
	struct iovec page = { (void *)EXTRA_AT, PAGE };
	int fd = ring_of_a_user();

	(void)arg;
	if (fd < 0)
		return -ENOTSUP;
	return syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS, &page, 1) ? -errno : 0;
}

/* A machine has a notifier, and no area. */
static int have_virtual_machine(void *arg)
{
	int fd;

	(void)arg;
	if (system("modprobe kvm_amd 2>/dev/null || modprobe kvm_intel 2>/dev/null"))
		return -ENOTSUP;
	fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	return fd < 0 || ioctl(fd, KVM_CREATE_VM, 0) < 0 ? -ENOTSUP : 0;
}

/* Where in this program's file that instruction is */
static uint64_t file_offset(const void *at)
{
	unsigned long lo, hi, offset, found = 0;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %lx", &lo, &hi, &offset) == 3 &&
		    (unsigned long)at >= lo && (unsigned long)at < hi)
			found = (unsigned long)at - lo + offset;
	if (f)
		fclose(f);
	return found;
}

/* The page stays the mm's when its area is unmapped. */
static int have_probe(void *arg)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .sample_period = 1 };
	char type[16];

	(void)arg;
	if (pt_read_file("/sys/bus/event_source/devices/uprobe/type", type, sizeof(type)))
		return -ENOTSUP;
	attr.type = (uint32_t)atoi(type);
	attr.uprobe_path = (uintptr_t)"/proc/self/exe";
	attr.probe_offset = file_offset((void *)probed);
	if (syscall(SYS_perf_event_open, &attr, getpid(), -1, -1, 0) < 0)
		return -ENOTSUP;
	probed();
	return 0;
}

static int create_with(int (*prepare)(void *))
{
	struct pt_raw raw;
	int err;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = prepare;
	raw.keep = (uintptr_t)mmap((void *)EXTRA_AT, PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	err = pt_raw_create(&raw);
	pt_raw_close(&raw);
	return err;
}

PVAS_TEST(plain)
{
	EXPECT_EQ(0, create_with(have_nothing));
}

#define PINNED_TEST(name_)							\
	PVAS_TEST(name_)							\
	{									\
		int err;							\
										\
		PT_NEED_ROOT();							\
		err = create_with(have_##name_);				\
		if (err == -ENOTSUP)						\
			SKIP(return, "not in this kernel");			\
		EXPECT_EQ(-EBUSY, err);						\
	}

PINNED_TEST(registered_buffer)
PINNED_TEST(virtual_machine)
PINNED_TEST(probe)

PT_MAIN()
