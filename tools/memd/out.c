// SPDX-License-Identifier: GPL-2.0-only
/*
 * The server's messages may go to a place that takes them at some later time only: a terminal
 * that was stopped, a pipe that nobody reads. A thread for each waits there, and the server
 * never does; those that find no room in between are lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "memd.h"

#define END_S	1	/* for what is left at the end */

struct stream {
	int fd;			/* 1 or 2 */
	int from, to;
	pthread_t thread;
	int started;
	char buffer[4096];	/* a pipe takes so much as a whole or not at all */
};

static struct stream streams[] = { { .fd = STDOUT_FILENO }, { .fd = STDERR_FILENO } };

/* Even if nobody can read it any more, it must be taken. */
static void pass_on(int to, const char *bytes, size_t len)
{
	struct pollfd ready = { .fd = to, .events = POLLOUT };
	ssize_t n;

	while (len) {
		n = write(to, bytes, len);
		if (n >= 0) {
			bytes += n;
			len -= n;
		} else if (errno == EAGAIN) {
			poll(&ready, 1, -1);
		} else if (errno != EINTR) {
			return;
		}
	}
}

static void *copy(void *arg)
{
	struct stream *s = arg;
	char bytes[4096];
	ssize_t n;

	while ((n = read(s->from, bytes, sizeof(bytes))) > 0)
		pass_on(s->to, bytes, n);
	return NULL;
}

static int begin(struct stream *s)
{
	FILE *file = s->fd == STDOUT_FILENO ? stdout : stderr;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	s->from = ends[0];
	s->to = fcntl(s->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (s->to < 0) {
		close(ends[0]);
		close(ends[1]);
		return s->fd == STDOUT_FILENO || errno != EBADF ? -errno : 0;
	}
	fflush(file);
	setvbuf(file, s->buffer, _IOLBF, sizeof(s->buffer));
	dup2(ends[1], s->fd);
	close(ends[1]);
	s->started = !pthread_create(&s->thread, NULL, copy, s);
	return s->started ? 0 : -EAGAIN;
}

int out_begin(void)
{
	sigset_t all, old;
	size_t i;
	int err = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (i = 0; i < sizeof(streams) / sizeof(streams[0]) && !err; i++)
		err = begin(&streams[i]);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

void out_end(void)
{
	struct timespec until;
	size_t i;

	fflush(stdout);
	fflush(stderr);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_S;
	for (i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		close(streams[i].fd);
		if (streams[i].started)
			pthread_timedjoin_np(streams[i].thread, NULL, &until);
	}
}
