// SPDX-License-Identifier: GPL-2.0-only
/* A peer for a task to attack, and what of the space it may not change. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "others.h"
#include "maps.h"

#define PEER_LEN	(PEER_PAGES * PAGE)

/* ---- the peer, and the test that starts it ---- */

/* Memory of each kind, and some of it locked */
TASK(others_peer)
{
	char *p = anon(PEER_LEN), *locked = anon(PAGE), c;
	char *shared = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	size_t i;

	if (getenv("PEER_WATCHES")) {
		reg.range = (struct uffdio_range){ (uintptr_t)anon(PAGE), PAGE };
		CHECK_EQ(0, ioctl(others_uffd(), UFFDIO_REGISTER, &reg));
	}
	memset(p, PEER_BYTE, PEER_LEN);
	CHECK(shared != MAP_FAILED);
	*shared = 1;
	CHECK_EQ(0, mlock(locked, PAGE));
	CHECK_EQ(sizeof(p), write(atoi(pt_args[0]), &p, sizeof(p)));
	CHECK_EQ(1, read(atoi(pt_args[1]), &c, 1));
	for (i = 0; i < PEER_LEN && p[i] == PEER_BYTE; i++)
		;
	CHECK_EQ(PEER_LEN, i);
}

int others_start(struct others_job *job, struct pvas_space *space)
{
	char text[32];
	void *at;
	int ret;

	*job = (struct others_job){ .space = space };
	if (pipe2(job->up, 0) || pipe2(job->down, 0))
		return -errno;
	ret = pt_start_task_fds(space, 1, "others_peer", job->up[1], job->down[0], &job->peer);
	if (ret < 0)
		return ret;
	/* Or a peer that dies before it says something would be waited for. */
	close(job->up[1]);
	if (read(job->up[0], &at, sizeof(at)) != sizeof(at))
		return -EPIPE;
	snprintf(text, sizeof(text), "%p", at);
	setenv("PEER_AT", text, 1);
	snprintf(text, sizeof(text), "%d", job->peer);
	setenv("PEER", text, 1);
	return 0;
}

int others_attack(struct others_job *job, const char *name)
{
	pid_t pid = pt_start_task(job->space, 2, name);

	return pid < 0 ? pid : pt_wait(pid);
}

int others_end(struct others_job *job)
{
	int ret = write(job->down[1], "g", 1) == 1 ? pt_wait(job->peer) : -errno;

	close(job->up[0]);
	close(job->down[0]);
	close(job->down[1]);
	return ret;
}

/* ---- what must not change ---- */

static uint64_t remembered;

uintptr_t others_peer(void)
{
	return strtoul(getenv("PEER_AT"), NULL, 16);
}

pid_t others_pid(void)
{
	return atoi(getenv("PEER"));
}

static uint64_t add_to_sum(uint64_t sum, const char *line)
{
	while (*line)
		sum = (sum ^ (unsigned char)*line++) * 0x100000001b3ULL;
	return sum;
}

/* Calls back for each line on a mapping that is not in our partition. */
static void each_line_of_others(void (*fn)(const char *line, bool area, void *arg), void *arg)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	bool foreign = false;
	unsigned long from, to;
	char line[4096];

	CHECK(f);
	while (f && fgets(line, sizeof(line), f)) {
		bool area = sscanf(line, "%lx-%lx ", &from, &to) == 2;

		if (area)
			foreign = from < pt_base() || from >= pt_base() + pt_size();
		if (foreign)
			fn(line, area, arg);
	}
	if (f)
		fclose(f);
}

/* Place, rights, locked pages, flags */
static void add_line(const char *line, bool area, void *sum)
{
	if (area || !strncmp(line, "Locked:", 7) || !strncmp(line, "VmFlags:", 8))
		*(uint64_t *)sum = add_to_sum(*(uint64_t *)sum, line);
}

static uint64_t sum_of_others(void)
{
	uint64_t sum = 1;

	each_line_of_others(add_line, &sum);
	return sum;
}

static void find_watched(const char *line, bool area, void *any)
{
	if (!area && !strncmp(line, "VmFlags:", 8) && strstr(line, " um"))
		*(bool *)any = true;
}

bool others_watched(void)
{
	bool any = false;

	each_line_of_others(find_watched, &any);
	return any;
}

void others_remember(void)
{
	/* The buffers that stdio takes are our own. */
	remembered = sum_of_others();
}

bool others_maps_changed(void)
{
	return sum_of_others() != remembered;
}

bool others_bytes_changed(void)
{
	const volatile char *p = (const volatile char *)others_peer();
	size_t i;

	for (i = 0; i < PEER_LEN; i += 64)
		if (p[i] != PEER_BYTE)
			return true;
	return false;
}

/* ---- two descriptors to do it with ---- */

int others_uffd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = pt_userfaultfd(O_CLOEXEC);

	return fd < 0 || ioctl(fd, UFFDIO_API, &api) ? -1 : fd;
}

static struct io_uring_params ring;
static char *ring_mem;
static struct io_uring_sqe *ring_sqes;

int ring_open(void)
{
	int fd = syscall(SYS_io_uring_setup, 2, &ring);
	size_t len = ring.cq_off.cqes + ring.cq_entries * sizeof(struct io_uring_cqe);

	if (fd < 0)
		return -1;
	ring_mem = mmap(NULL, len, RW, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQ_RING);
	ring_sqes = mmap(NULL, ring.sq_entries * sizeof(*ring_sqes), RW, MAP_SHARED | MAP_POPULATE,
			 fd, IORING_OFF_SQES);
	CHECK(ring_mem != MAP_FAILED && (void *)ring_sqes != MAP_FAILED);
	return fd;
}

/* Submits one, and waits for as many. */
static long ring_enter(int fd, const struct io_uring_sqe *sqe, unsigned int wait)
{
	unsigned int *tail = (unsigned int *)(ring_mem + ring.sq_off.tail);
	unsigned int *array = (unsigned int *)(ring_mem + ring.sq_off.array);

	ring_sqes[0] = *sqe;
	array[*tail & (ring.sq_entries - 1)] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	return syscall(SYS_io_uring_enter, fd, 1, wait, IORING_ENTER_GETEVENTS, NULL, 0) == 1 ?
	       0 : -errno;
}

long ring_begin(int fd, const struct io_uring_sqe *sqe)
{
	return ring_enter(fd, sqe, 0);
}

long ring_do(int fd, const struct io_uring_sqe *sqe)
{
	unsigned int *head = (unsigned int *)(ring_mem + ring.cq_off.head);
	struct io_uring_cqe *cqes = (struct io_uring_cqe *)(ring_mem + ring.cq_off.cqes);
	long res = ring_enter(fd, sqe, 1);

	if (res)
		return res;
	res = cqes[*head & (ring.cq_entries - 1)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return res;
}
