// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work that is left to kernel threads when tasks have ended: no more than their memory was
 * worth, on nobody's account; and it waits for no one who is not there.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <net/if.h>

#include "kselftest_harness.h"
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
	long before, hz = sysconf(_SC_CLK_TCK);
	unsigned int i;
	pid_t pid;

	for (i = 0; i < PT_ARRAY_SIZE(tasks); i++) {
		before = workers_jiffies();
		pid = pt_start_task(space, PVAS_ANY, tasks[i]);
		ASSERT_LT(0, pid);
		EXPECT_EQ(0, pt_wait(pid));
		EXPECT_GT(before + 2 * hz, workers_jiffies()) TH_LOG("%s", tasks[i]);
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

PT_MAIN()
