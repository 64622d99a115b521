// SPDX-License-Identifier: GPL-2.0-only
/* Writing in pvasrun's place: see feeder.h. */
#include "feeder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pass.h"

#define EVENTS	64
#define CHUNKS	(~0U)	/* not a pipe: pvasrun's end */
#define NOTICE	(~0U - 1)

/* ---- the child, which may use calls of the kernel only ---- */

struct feed {
	int fd;			/* -1: the task has closed it */
	size_t done;		/* of the chunk */
};

/* Made by pvasrun: its child has a copy. */
static struct feed *feeds;
static const bool *ended;	/* in memory that both have: see struct feeder */
static unsigned int nr_feeds;	/* that have come */
static int epoll_fd, chunks_end, notice;
static int nr_open, pending;	/* feeds, and those that have not got the whole chunk */
static char chunk[FEEDER_MAX];
static size_t chunk_len;

static void watch(const struct feed *feed, int op, uint32_t what)
{
	struct epoll_event event = { .events = what, .data.u32 = (uint32_t)(feed - feeds) };

	epoll_ctl(epoll_fd, op, feed->fd, &event);
}

/* All is written, or no pipe is open: of how many? */
static void tell(void)
{
	const unsigned int closed = nr_open ? 0 : nr_feeds;

	send(chunks_end, &closed, sizeof(closed), MSG_NOSIGNAL);
}

static void end(struct feed *feed)
{
	int fd = feed->fd;

	feed->fd = -1;
	nr_open--;
	if (feed->done < chunk_len)
		pending--;
	if (!nr_open)
		tell();
	close(fd);	/* It can hang. */
}

/* The ranks of these pipes have ended; what has them still may never read. */
static void end_told(void)
{
	const int before = pending;
	struct feed *feed;

	for (feed = feeds; feed < feeds + nr_feeds; feed++)
		if (feed->fd >= 0 && __atomic_load_n(&ended[feed - feeds], __ATOMIC_ACQUIRE))
			end(feed);
	if (before && !pending && nr_open)
		tell();
}

/* Write as much of the chunk as the pipe has room for. */
static void push(struct feed *feed)
{
	ssize_t n;

	while (feed->done < chunk_len) {
		n = write(feed->fd, chunk + feed->done, chunk_len - feed->done);
		if (n < 0 && errno == EAGAIN) {
			watch(feed, EPOLL_CTL_MOD, EPOLLOUT);
			return;
		}
		if (n < 0) {	/* EPIPE: the task has closed it */
			end(feed);
			return;
		}
		feed->done += (size_t)n;
	}
	pending--;
	watch(feed, EPOLL_CTL_MOD, 0);
}

static void add(int fd)
{
	struct feed *feed = &feeds[nr_feeds++];

	fcntl(fd, F_SETFL, O_NONBLOCK);	/* this end only */
	*feed = (struct feed){ .fd = fd };
	nr_open++;
	watch(feed, EPOLL_CTL_ADD, 0);
	end_told();
}

static void push_all(size_t len)
{
	unsigned int i;

	chunk_len = len;
	pending = nr_open;
	for (i = 0; i < nr_feeds; i++)
		feeds[i].done = 0;
	for (i = 0; i < nr_feeds; i++)
		if (feeds[i].fd >= 0)
			push(&feeds[i]);
	if (!pending && nr_open)
		tell();
}

/* A pipe, or the next chunk */
static void take(void)
{
	int fds[PASS_MAX];
	ssize_t n = pass_receive(chunks_end, chunk, sizeof(chunk), fds);

	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		_exit(0);	/* pvasrun has ended, or its input */
	if (fds[0] >= 0)
		add(fds[0]);
	else if (n > 0)
		push_all((size_t)n);
}

/* There is room in the pipe, or (EPOLLERR) its other end is closed. */
static void ready(struct feed *feed, uint32_t what)
{
	const int before = pending;

	if (feed->fd < 0)
		return;
	if (what & EPOLLERR)
		end(feed);
	else if (feed->done < chunk_len)
		push(feed);
	if (before && !pending && nr_open)
		tell();
}

static void handle(const struct epoll_event *event)
{
	eventfd_t count;

	if (event->data.u32 == CHUNKS)
		take();
	else if (event->data.u32 != NOTICE)
		ready(&feeds[event->data.u32], event->events);
	else if (!eventfd_read(notice, &count))
		end_told();
}

static void feed_until_end(int from, int notice_end)
{
	struct epoll_event events[EVENTS], chunks = { .events = EPOLLIN, .data.u32 = CHUNKS };
	struct epoll_event noticed = { .events = EPOLLIN, .data.u32 = NOTICE };
	int i, n;

	prctl(PR_SET_NAME, "pvas-feed");
	chunks_end = from;
	notice = notice_end;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, from, &chunks) < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, notice, &noticed) < 0)
		_exit(1);
	for (;;) {
		n = epoll_wait(epoll_fd, events, EVENTS, -1);
		for (i = 0; i < n; i++)
			handle(&events[i]);
	}
}

/* ---- in pvasrun ---- */

static void forget(struct feeder *feeder)
{
	if (feeder->notice >= 0)
		close(feeder->notice);
	feeder->notice = -1;
	if (feeder->ended != MAP_FAILED)
		munmap(feeder->ended, feeder->pipes);
	feeder->ended = MAP_FAILED;
}

int feeder_begin(struct feeder *feeder, unsigned int pipes)
{
	int err = -ENOMEM;

	*feeder = (struct feeder){ .child = FILE_CHILD_NONE, .pipes = pipes };
	feeder->notice = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (feeder->notice < 0)
		return -errno;
	feeder->ended = mmap(NULL, pipes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	feeds = malloc(pipes * sizeof(*feeds));
	ended = feeder->ended;
	if (feeds && ended != MAP_FAILED)
		err = file_child_begin(&feeder->child, feeder->notice, feed_until_end);
	free(feeds);
	if (err)
		forget(feeder);
	return err;
}

int feeder_add(struct feeder *feeder, int fd)
{
	int err = pass_send(feeder->child.end, "", 1, &fd, 1);

	feeder->added += !err;
	return err;
}

int feeder_send(const struct feeder *feeder, const char *bytes, size_t len)
{
	return pass_send(feeder->child.end, bytes, len, NULL, 0);
}

bool feeder_hear(struct feeder *feeder)
{
	ssize_t n = recv(feeder->child.end, &feeder->closed, sizeof(feeder->closed), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	feeder->dead = n != sizeof(feeder->closed);
	return true;
}

bool feeder_has_ended(const struct feeder *feeder)
{
	return feeder->closed == feeder->added;
}

void feeder_end(const struct feeder *feeder, unsigned int pipe)
{
	if (feeder->child.end < 0)
		return;
	__atomic_store_n(&feeder->ended[pipe], true, __ATOMIC_RELEASE);
	eventfd_write(feeder->notice, 1);
}

void feeder_close(struct feeder *feeder)
{
	if (feeder->child.end < 0)
		return;
	file_child_close(&feeder->child);
	forget(feeder);
}
