// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work that is left to kernel threads when tasks have ended: no more than their memory was
 * worth, on nobody's account; it needs no memory; and it waits for no one who is not there.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <net/if.h>

#include "kselftest_harness.h"
#include "packet_ring.h"
#include "pvas_test.h"

#define TIB (1UL << 40)
#define PARTITION (8 * TIB)
#define UNTOUCHED (5 * TIB)
#define PORT_ENV "LATE_PORT"

/* ---- memory that nobody has touched ---- */

/* Jiffies that kernel threads for work items have run so far */
static long workers_jiffies(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	char path[300], line[512];
	long user, system, sum = 0;

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		if (pt_read_file(path, line, sizeof(line)) < 0 || !strstr(line, "(kworker/"))
			continue;
		if (sscanf(strrchr(line, ')') + 2,
			   "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system) == 2)
			sum += user + system;
	}
	if (dir)
		closedir(dir);
	return sum;
}

TASK(map_nothing)
{
	void *p = mmap(NULL, UNTOUCHED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);

	CHECK(p != MAP_FAILED);
}

TASK(map_file)
{
	int fd = memfd_create("f", 0);

	CHECK_EQ(0, ftruncate(fd, UNTOUCHED));
	CHECK(mmap(NULL, UNTOUCHED, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
}

/* One page in each TiB: there are few tables, far from each other. */
TASK(map_sparse)
{
	char *p = mmap(NULL, UNTOUCHED, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned long at;

	CHECK(p != MAP_FAILED);
	for (at = 0; at < UNTOUCHED && p != MAP_FAILED; at += TIB)
		p[at] = 1;
}

/* Many areas, without a page in any */
TASK(map_areas)
{
	char *p = mmap(NULL, UNTOUCHED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);
	int i;

	for (i = 0; p != MAP_FAILED && i < 4000; i++)
		CHECK_EQ(0, mprotect(p + i * (1UL << 30), 4096, PROT_READ));
}

MODULE_TEST(untouched, "who frees the memory")
{
	static const char *const tasks[] = { "map_nothing", "map_file", "map_sparse", "map_areas" };
	struct pvas_space *space = PT_SPACE_OF(PARTITION);
	/* 4 s, and more where all is slow */
	long before, limit = sysconf(_SC_CLK_TCK) * pt_timeout() / 15;
	unsigned int i;
	pid_t pid;

	for (i = 0; i < PT_ARRAY_SIZE(tasks); i++) {
		before = workers_jiffies();
		pid = pt_start_task(space, PVAS_ANY, tasks[i]);
		ASSERT_LT(0, pid);
		EXPECT_EQ(0, pt_wait(pid));
		EXPECT_GT(before + limit, workers_jiffies()) TH_LOG("%s", tasks[i]);
	}
	pvas_space_destroy(space);
	EXPECT_TRUE(pt_spaces_gone());
}

/* ---- sockets ---- */

/* A server that does not read; its port */
static int deaf_server(pid_t *pid)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);

	ioctl(fd, SIOCSIFFLAGS, &up);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 100) ||
	    getsockname(fd, (struct sockaddr *)&at, &len))
		return -1;
	*pid = fork();
	if (!*pid)
		for (;;)
			pause();
	close(fd);
	return ntohs(at.sin_port);
}

/* It ends with data that the server has not read, for which close() would wait. */
TASK(linger)
{
	static char data[65536];
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(atoi(getenv(PORT_ENV))),
	};
	const struct linger forever = { 1, 0x7fffffff };
	int fd = socket(AF_INET, SOCK_STREAM, 0), failures = 0;

	CHECK_EQ(0, connect(fd, (struct sockaddr *)&to, sizeof(to)));
	CHECK_EQ(0, setsockopt(fd, SOL_SOCKET, SO_LINGER, &forever, sizeof(forever)));
	while (failures < 3)
		if (send(fd, data, sizeof(data), MSG_DONTWAIT) < 0) {
			failures++;
			usleep(100000);
		}
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
}

#define LINGERERS 10	/* more than there are late workers of a space */

MODULE_TEST(lingering_sockets, "who closes files")
{
	struct pvas_space *space;
	pid_t pid[LINGERERS], server;
	char port[12];
	int i;

	PT_NEED_ROOT();
	ASSERT_EQ(0, unshare(CLONE_NEWNET));
	snprintf(port, sizeof(port), "%d", deaf_server(&server));
	ASSERT_EQ(0, setenv(PORT_ENV, port, 1));
	space = PT_SPACE();
	for (i = 0; i < LINGERERS; i++) {
		pid[i] = pt_start_task(space, PVAS_ANY, "linger");
		ASSERT_LT(0, pid[i]);
	}
	for (i = 0; i < LINGERERS; i++)
		EXPECT_EQ(0, pt_wait(pid[i]));
	pvas_space_destroy(space);
	EXPECT_TRUE(pt_spaces_gone());
	pt_kill(server);
}

/* ---- the table of partitions ---- */

/* The frame of the table's first page, which has the entries of the first tasks; or 0 */
static uint64_t table_frame(pid_t pid)
{
	uint64_t entry = 0;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	fd = open(path, O_RDONLY);
	if (pread(fd, &entry, sizeof(entry), PT_TABLE_AT / 4096 * sizeof(entry)) != sizeof(entry))
		entry = 0;
	close(fd);
	return entry & ((1UL << 55) - 1);
}

/*
 * At the limit of a cgroup, the end of a task must not need a page: it writes to its entry
 * without copying the page, which a fork child has, too.
 */
MODULE_TEST(entry_is_there, "the launcher writes its table")
{
	uint64_t frame;
	struct pt_raw raw;
	pid_t pid[2], child;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_raw_make(&raw));
	pid[0] = pt_raw_spawn(&raw, 1);
	pid[1] = pt_raw_spawn(&raw, 2);
	ASSERT_LT(0, pid[0]);
	ASSERT_LT(0, pid[1]);
	frame = table_frame(pid[1]);
	ASSERT_NE(0, frame);
	child = pt_raw_call(&raw, 2, SYS_fork);
	ASSERT_LT(0, child);
	pt_kill(pid[0]);
	EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&raw, 1).state);
	EXPECT_EQ(frame, table_frame(pid[1]));
	EXPECT_NE(frame, table_frame(child));
	kill(child, SIGKILL);
	pt_kill(pid[1]);
	pt_raw_close(&raw);
	EXPECT_TRUE(pt_spaces_gone());
}

/* ---- a task that is held in its exit ---- */

/* A page of the puppet at index 1, registered with this userfaultfd of its */
static long register_page(struct pt_raw *raw)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	long fd = pt_raw_call(raw, 1, SYS_userfaultfd, UFFD_USER_MODE_ONLY);
	long page = pt_raw_call(raw, 1, SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* There is no such flag before 5.11. */
	if (fd == -EINVAL)
		fd = pt_raw_call(raw, 1, SYS_userfaultfd, 0);
	if (fd < 0 || page < 0)
		return -1;
	memcpy(raw->data, &api, sizeof(api));
	if (pt_raw_call(raw, 1, SYS_ioctl, fd, UFFDIO_API, PT_DATA_AT))
		return -1;
	reg.range.start = page;
	reg.range.len = 4096;
	memcpy(raw->data, &reg, sizeof(reg));
	return pt_raw_call(raw, 1, SYS_ioctl, fd, UFFDIO_REGISTER, PT_DATA_AT) ? -1 : fd;
}

/* The descriptor of another process: who holds it does not let go of what is registered. */
static int take_fd(pid_t pid, int fd)
{
	return syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, pid, 0), fd, 0);
}

MODULE_TEST(userfaultfd_beside_held_exit, "who unmaps")
{
	struct pt_raw raw;
	pid_t pid, held;
	long fd, began;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 1);
	held = pt_raw_spawn(&raw, 2);
	ASSERT_LT(0, pid);
	ASSERT_LT(0, held);
	fd = register_page(&raw);
	ASSERT_LE(0, fd);
	ASSERT_LE(0, take_fd(pid, fd));
	ASSERT_EQ(0, pt_hold_exit(held));
	began = now_ms();
	pt_kill(pid);
	EXPECT_GT(4000, now_ms() - began);
	EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&raw, 1).state);
	pt_let_exit(held);
	pt_raw_close(&raw);
	EXPECT_TRUE(pt_spaces_gone());
}

TASK(map_ring)
{
	CHECK(packet_ring_map());
}

MODULE_TEST(device_beside_held_exit, "who unmaps")
{
	struct pvas_space *space = PT_SPACE();
	pid_t held, pid, again = -1;
	int fds[2], i, ring = packet_ring();

	PT_NEED_ROOT();
	if (ring < 0)
		SKIP(return, "this kernel has no packet rings: %s", strerror(errno));
	close(ring);
	ASSERT_EQ(0, pipe(fds));
	held = pt_start_task_fd(space, 1, "ready_and_pause", fds[1]);
	ASSERT_LT(0, held);
	ASSERT_EQ('r', pt_hear(fds[0]));
	ASSERT_EQ(0, pt_hold_exit(held));
	pid = pt_start_task(space, 2, "map_ring");
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, pt_wait(pid));
	for (i = 0; i < 200 && again < 0; i++, usleep(50000))
		again = pt_start_task(space, 2, "succeed");
	EXPECT_LT(0, again);
	if (again > 0)
		pt_wait(again);
	pt_let_exit(held);
	pvas_space_destroy(space);
	EXPECT_TRUE(pt_spaces_gone());
}

PT_MAIN()
