// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: what a task has left takes long to unmap, as the last reference to a socket
 * whose peer doesn't read. Others start, run and end, and so does the space.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers.h"
#include "hung_launcher.h"
#include "pvas.h"
#include "kselftest_harness.h"

#define TASKS	5

static int no_threads;

/* Of this program and of the library in it */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (!real)
		real = (typeof(real))dlsym(RTLD_NEXT, "pthread_create");
	return __atomic_load_n(&no_threads, __ATOMIC_ACQUIRE) ? EAGAIN
							       : real(thread, attr, start, arg);
}

FIXTURE(linger)
{
	struct pvas_space *s;
	int listener;
	char port[8];
};

/* It has no more room than the kernel requires. */
static int listen_at(char port[8])
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), room = 4096;
	socklen_t len = sizeof(a);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, TASKS) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		return -1;
	snprintf(port, 8, "%d", ntohs(a.sin_port));
	return fd;
}

FIXTURE_SETUP(linger)
{
	const struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = PVAS_BACKEND_USER,
	};

	self->listener = listen_at(self->port);
	ASSERT_GE(self->listener, 0);
	ASSERT_EQ(pvas_space_create(&self->s, &attr), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(linger)
{
}

static void leave_socket(struct __test_metadata *_metadata, FIXTURE_DATA(linger) *self)
{
	pid_t pid;

	ASSERT_GT(start_of(self->s, "linger_task", "socket", self->port, NULL, &pid), 0);
	EXPECT_EQ(end_of(pid), 0);
}

static void destroy(struct __test_metadata *_metadata, FIXTURE_DATA(linger) *self)
{
	int64_t begin = now_ms();

	alarm(60);
	EXPECT_EQ(pvas_space_destroy(self->s), 0);
	EXPECT_LT(now_ms() - begin, 50000);
	alarm(0);
}

static int wait_for_tasks(struct pvas_space *s, int n)
{
	int64_t begin = now_ms();

	while (pvas_task_list(s, NULL, 0) != n && now_ms() - begin < 30000)
		usleep(10000);
	return pvas_task_list(s, NULL, 0);
}

TEST_F(linger, who_leaves_a_socket_keeps_its_partition_alone)
{
	pid_t pid;
	int i;

	alarm(100);
	for (i = 0; i < TASKS; i++)
		leave_socket(_metadata, self);
	ASSERT_GT(start_of(self->s, "peer_task", "own-state", NULL, NULL, &pid), 0);
	EXPECT_EQ(end_of(pid), 0);
	EXPECT_EQ(wait_for_tasks(self->s, TASKS), TASKS);
	/* The connections are reset. */
	close(self->listener);
	EXPECT_EQ(wait_for_tasks(self->s, 0), 0);
	destroy(_metadata, self);
}

TEST_F(linger, who_leaves_a_socket_keeps_no_space)
{
	pid_t pid;

	leave_socket(_metadata, self);
	ASSERT_GT(start_of(self->s, "peer_task", "own-state", NULL, NULL, &pid), 0);
	EXPECT_EQ(end_of(pid), 0);
	destroy(_metadata, self);
	close(self->listener);
}

/* The supervisor unmaps itself, and is left. */
TEST_F(linger, without_threads_the_space_ends)
{
	char *argv[] = { "sleep", "1000", NULL };
	pid_t sleeper;

	ASSERT_GT(pvas_task_spawn(self->s, PVAS_ANY, "/bin/sleep", argv, environ, NULL, &sleeper),
		  0);
	__atomic_store_n(&no_threads, 1, __ATOMIC_RELEASE);
	leave_socket(_metadata, self);
	destroy(_metadata, self);
	EXPECT_EQ(end_of(sleeper), SIGKILL);
	close(self->listener);
}

TEST_F(linger, who_opens_userfaultfd_gets_none)
{
	int status;
	pid_t pid;

	ASSERT_GT(start_of(self->s, "linger_task", "userfault", NULL, NULL, &pid), 0);
	status = end_of(pid);
	destroy(_metadata, self);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP(return, "no right to open /dev/userfaultfd");
	EXPECT_EQ(status, 0);
}

TEST_HARNESS_MAIN
