// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ioctls of a userfaultfd of the creator's, in another process, that begin before the space is
 * made, and go on after it: a FUSE server has their arguments or data, and answers late.
 */
#define _GNU_SOURCE
#include <linux/userfaultfd.h>
#include <stddef.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "kselftest_harness.h"
#include "pvas_test.h"
#include "silent_fuse.h"

#define LARGE_AT 0x40000000UL
#define LARGE_LEN (64UL << 20)
#define DIRNAME "/tmp/pvas-late"

static struct {
	bool late_data;		/* the copy waits for what it copies, not for its arguments */
	volatile int copies, waits, go, done, registered, go2, done2;
	volatile long copied;
	void *volatile src;
	volatile pid_t pid;
} *watch;

/* The first page has the arguments of REGISTER, the second those of COPY, or its data. */
static void fill_page(struct answer *answer, uint64_t offset)
{
	struct uffdio_register *reg = (void *)answer->data;
	struct uffdio_copy *copy = (void *)answer->data;

	if (!offset) {
		watch->waits = 1;
		while (!watch->go)
			usleep(1000);
		reg->range.start = LARGE_AT;
		reg->range.len = LARGE_LEN;
		reg->mode = UFFDIO_REGISTER_MODE_MISSING;
		return;
	}
	watch->copies = 1;
	while (!watch->go2)
		usleep(1000);
	if (watch->late_data)
		return;
	copy->dst = LARGE_AT;
	copy->src = (uintptr_t)watch->src;
	copy->len = LARGE_LEN;
}

static void serve(int fd)
{
	static union { struct fuse_in_header in; char all[256 << 10]; } ask;
	struct answer answer;
	int len;

	while (read(fd, &ask, sizeof(ask)) > 0 || errno == EINTR || errno == ENOENT) {
		if (ask.in.opcode == FUSE_FORGET || ask.in.opcode == FUSE_INTERRUPT)
			continue;
		memset(&answer, 0, sizeof(answer));
		len = fuse_answer(&ask.in, answer.data);
		if (ask.in.opcode == FUSE_LOOKUP)
			((struct fuse_entry_out *)answer.data)->attr.size = 8192;
		else if (ask.in.opcode == FUSE_GETATTR)
			((struct fuse_attr_out *)answer.data)->attr.size = 8192;
		else if (ask.in.opcode == FUSE_READ)
			fill_page(&answer, ((struct fuse_read_in *)(&ask.in + 1))->offset);
		if (!fuse_send(fd, &ask.in, &answer, len))
			break;
	}
	_exit(0);
}

struct late {
	int uffd;
	struct uffdio_copy *copy;
};

static void *copy_late(void *arg)
{
	struct late *late = arg;
	long ret = ioctl(late->uffd, UFFDIO_COPY, late->copy);

	watch->copied = ret ? -errno : late->copy->copy;
	watch->done2 = 1;
	return NULL;
}

/* A copy into an area that is registered then, and is not when the space is made */
static void *copy_late_data(void *arg)
{
	struct late *late = arg;
	struct uffdio_copy copy = {
		.dst = LARGE_AT, .src = (uintptr_t)watch->src, .len = LARGE_LEN
	};
	long ret = ioctl(late->uffd, UFFDIO_COPY, &copy);

	watch->copied = ret ? -errno : copy.copy;
	watch->done2 = 1;
	return NULL;
}

static void begin_copy(struct late *late, int file)
{
	struct uffdio_register reg = {
		.range = { LARGE_AT, LARGE_LEN }, .mode = UFFDIO_REGISTER_MODE_MISSING
	};
	pthread_t thread;

	if (!watch->late_data) {
		pthread_create(&thread, NULL, copy_late, late);
		usleep(300000);
		return;
	}
	if (ioctl(late->uffd, UFFDIO_REGISTER, &reg))
		perror("UFFDIO_REGISTER");
	mmap(watch->src, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 4096);
	madvise(watch->src, 4096, MADV_RANDOM);
	pthread_create(&thread, NULL, copy_late_data, late);
	while (!watch->copies)
		usleep(1000);
	if (ioctl(late->uffd, UFFDIO_UNREGISTER, &reg.range))
		perror("UFFDIO_UNREGISTER");
}

static void hold_by_fuse(int uffd)
{
	static struct late late;
	char options[128];
	int fd, file, i;
	void *p;

	watch->pid = getpid();
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		perror("unshare");
	mkdir(DIRNAME, 0777);
	fd = open("/dev/fuse", O_RDWR);
	if (fd < 0)
		perror("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (mount("fuse", DIRNAME, "fuse", MS_NOSUID | MS_NODEV, options))
		perror("mount");
	for (i = 0; i < 3; i++) {
		if (!fork()) {
			/* It has the creator's descriptors, which hold the space. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(uffd);
			serve(fd);
		}
	}
	close(fd);
	file = open(DIRNAME "/f", O_RDWR);
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	madvise(p, 8192, MADV_RANDOM);
	late = (struct late){ uffd, (void *)((char *)p + 4096) };
	watch->src = mmap(NULL, LARGE_LEN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		perror("fuse file");
	begin_copy(&late, file);
	watch->registered = !ioctl(uffd, UFFDIO_REGISTER, p) ? 1 : -errno;
	watch->done = 1;
	for (;;)
		pause();
}

static int leave(void *arg)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_EVENT_UNMAP };
	int fd = pt_userfaultfd(O_CLOEXEC), i;

	(void)arg;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    mmap((void *)LARGE_AT, LARGE_LEN, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return -ENOTSUP;
	if (!fork())
		hold_by_fuse(fd);
	close(fd);
	for (i = 0; i < 3000 && !watch->waits; i++)
		usleep(10000);
	usleep(500000);
	return watch->waits ? 0 : -ETIME;
}

static long anon_kib(void)
{
	return pt_file_kib("/proc/meminfo", "AnonPages:");
}

static void fill_late(struct __test_metadata *_metadata, bool late_data)
{
	struct pt_raw raw;
	long before;
	int i;

	if (system("modprobe fuse 2>/dev/null")) {
		/* It may be part of the kernel. */
	}
	watch = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)watch);
	watch->late_data = late_data;
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = leave;
	raw.keep = LARGE_AT;
	ASSERT_EQ(0, pt_raw_create(&raw));
	before = anon_kib();
	watch->go = 1;
	for (i = 0; i < 1000 && !watch->done; i++)
		usleep(10000);
	/* 5.10 finds nothing mapped. */
	EXPECT_EQ(pt_kernel_before(5, 11) ? -ENOMEM : 1, watch->registered);
	watch->go2 = 1;
	for (i = 0; i < 1000 && !watch->done2; i++)
		usleep(10000);
	EXPECT_EQ(late_data && pt_kernel_before(5, 11) ? -ENOENT : -EPERM, watch->copied);
	kill(watch->pid, SIGKILL);
	EXPECT_GT(16384, anon_kib() - before);
	pt_raw_close(&raw);
}

/*
 * A REGISTER and a COPY that had begun before the space was made, and whose arguments came later,
 * fill no memory that nobody would have.
 */
PVAS_TEST(userfaultfd_copy_on_its_way)
{
	PT_NEED_ROOT();
	fill_late(_metadata, false);
}

/* Nor does a COPY that had found its area registered, and whose data came later. */
PVAS_TEST(userfaultfd_copy_with_late_data)
{
	PT_NEED_ROOT();
	fill_late(_metadata, true);
}

PT_MAIN()
