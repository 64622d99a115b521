// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernel threads that store for a process by its mm, as long as another process has the device
 * open: KVM's, for an event channel of Xen's. After the end of the task that has set up the
 * machine, its partition is another's.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define DEVICE	"/dev/kvm"
#define PAGE	4096
#define GSI	30
#define PORT	5
/* Where the kernel sets the bit of the port, in struct shared_info of 64 bits */
#define PENDING	2048

struct machine {
	struct pt_raw raw;
	pid_t pid;
	unsigned long at;	/* its memory, a page in partition 1 */
	long vm, event;		/* the task's descriptors */
	int our_vm, our_event;
};

static long ask(struct machine *m, unsigned long request, const void *arg, size_t len)
{
	memcpy(m->raw.data, arg, len);
	return pt_raw_call(&m->raw, 1, SYS_ioctl, m->vm, request, PT_DATA_AT);
}

#define ASK(m, request, ...) ask(m, request, &(__VA_ARGS__), sizeof(__VA_ARGS__))

static int take(pid_t pid, int theirs)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0), fd;

	fd = syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
	close(pidfd);
	return fd;
}

/* A task at index 1, with a page of zeros */
static int start_task(struct machine *m)
{
	static const char zeros[PAGE];

	m->pid = pt_raw_spawn(&m->raw, 1);
	if (m->pid < 0)
		return m->pid;
	m->at = (1UL << m->raw.create.shift) + (16UL << 20);
	if (pt_raw_call(&m->raw, 1, SYS_mmap, m->at, PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (long)m->at)
		return -ENOMEM;
	return pwrite(m->raw.mem, zeros, PAGE, m->at) == PAGE ? 0 : -EIO;
}

/* Is there anything but zeros, in the memory of whoever is there? */
static bool is_changed(const struct machine *m)
{
	char page[PAGE];
	int i;

	if (pread(m->raw.mem, page, PAGE, m->at) != PAGE)
		return true;
	for (i = 0; i < PAGE; i++)
		if (page[i])
			return true;
	return false;
}

static bool have_kvm_with_xen(void)
{
	bool has;
	int fd;

	if (system("modprobe kvm_amd 2>/dev/null || modprobe kvm_intel 2>/dev/null"))
		return false;
	fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	has = fd >= 0 && ioctl(fd, KVM_CHECK_EXTENSION, KVM_CAP_XEN_HVM) &
			 KVM_XEN_HVM_CONFIG_EVTCHN_2LEVEL;
	close(fd);
	return has;
}

/* A machine with one page, where the kernel tells the guest of the event channel */
static long set_up(struct machine *m)
{
	struct {
		struct kvm_irq_routing head;
		struct kvm_irq_routing_entry entry;
	} route = {
		.head = { .nr = 1 },
		.entry = { .gsi = GSI, .type = KVM_IRQ_ROUTING_XEN_EVTCHN, .u.xen_evtchn = {
			.port = PORT, .priority = KVM_IRQ_ROUTING_XEN_EVTCHN_PRIO_2LEVEL } },
	};
	long kvm, err;

	strcpy(m->raw.data, DEVICE);
	kvm = pt_raw_call(&m->raw, 1, SYS_openat, AT_FDCWD, PT_DATA_AT, O_RDWR);
	m->vm = pt_raw_call(&m->raw, 1, SYS_ioctl, kvm, KVM_CREATE_VM, 0);
	if (m->vm < 0)
		return m->vm;
	err = pt_raw_call(&m->raw, 1, SYS_ioctl, m->vm, KVM_CREATE_IRQCHIP, 0);
	err = err ?: ASK(m, KVM_SET_USER_MEMORY_REGION, (struct kvm_userspace_memory_region){
			.memory_size = PAGE, .userspace_addr = m->at });
	err = err ?: ASK(m, KVM_XEN_HVM_CONFIG, (struct kvm_xen_hvm_config){ .msr = 0x40000000 });
	err = err ?: ASK(m, KVM_XEN_HVM_SET_ATTR, (struct kvm_xen_hvm_attr){
			.type = KVM_XEN_ATTR_TYPE_LONG_MODE, .u.long_mode = 1 });
	err = err ?: ASK(m, KVM_XEN_HVM_SET_ATTR, (struct kvm_xen_hvm_attr){
			.type = KVM_XEN_ATTR_TYPE_SHARED_INFO });
	if (!err && pt_raw_call(&m->raw, 1, SYS_ioctl, m->vm, KVM_CREATE_VCPU, 0) < 0)
		err = -EIO;
	err = err ?: ASK(m, KVM_SET_GSI_ROUTING, route);
	m->event = pt_raw_call(&m->raw, 1, SYS_eventfd2, 0, 0);
	return err ?: ASK(m, KVM_IRQFD, (struct kvm_irqfd){ .fd = m->event, .gsi = GSI });
}

/* a machine of a task's stores nothing into the memory of the next one in its partition */
MODULE_TEST(no_event_for_the_next, "the ABI of /dev/pvas")
{
	struct machine m;
	uint64_t one = 1;
	int i;

	PT_NEED_ROOT();
	if (!have_kvm_with_xen())
		SKIP(return, "no KVM with event channels of Xen's");
	ASSERT_EQ(0, pt_raw_make(&m.raw));
	ASSERT_EQ(0, start_task(&m));
	ASSERT_EQ(0, set_up(&m));
	m.our_vm = take(m.pid, m.vm);
	m.our_event = take(m.pid, m.event);
	ASSERT_LE(0, m.our_vm);
	ASSERT_LE(0, m.our_event);
	pt_kill(m.pid);
	EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&m.raw, 1).state);
	ASSERT_EQ(0, start_task(&m));
	ASSERT_EQ(sizeof(one), (size_t)write(m.our_event, &one, sizeof(one)));
	/* Its end waits for the kernel thread. */
	for (i = 0; i < 20 && !is_changed(&m); i++)
		usleep(50000);
	EXPECT_FALSE(is_changed(&m));
	close(m.our_event);
	close(m.our_vm);
	EXPECT_FALSE(is_changed(&m));
	pt_kill(m.pid);
	pt_raw_close(&m.raw);
	EXPECT_EQ(0, pt_raw_spaces_left(pt_open()));
}

PT_MAIN()
