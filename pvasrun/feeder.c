// SPDX-License-Identifier: GPL-2.0-only
/* Writing in pvasrun's place: see feeder.h. */
#include "feeder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pass.h"

#define EVENTS	64
#define CHUNKS	(~0U)	/* not a pipe: pvasrun's end */
#define NOTICE	(~0U - 1)

/* In two looks at that distance the same call: it hangs. */
#define LOOK_MS	100

struct feed {
	int fd;			/* -1: nothing is to be written any more */
	size_t done;		/* of the chunk */
	bool closed;		/* that has returned; or nobody waits for it */
	bool ended;		/* its rank; pvasrun says so */
};

/* Memory that pvasrun, the child and its spare have in common */
struct feeder_shared {
	uint64_t turn;		/* whose it is to write, see enter() */
	uint32_t calls;		/* that have begun */
	unsigned int nr_feeds;	/* that have come */
	int nr_open, pending;	/* feeds, and those that have not got the whole chunk */
	bool owed;		/* pvasrun has not been told that the chunk is written */
	bool finishing;		/* no chunk follows; pvasrun says so */
	size_t chunk_len;
	char chunk[FEEDER_MAX];
	struct feed feeds[];
};

/* ---- the child, which may use calls of the kernel only ---- */

static struct feeder_shared *shared;
static uint64_t own_turn;
static int epoll_fd, chunks_end, notice;

/* pvasrun knows it by its pid, and the spare is its child: it stays. */
static void __attribute__((noreturn)) stand_by(void)
{
	struct pollfd gone = { .fd = chunks_end };

	while (poll(&gone, 1, -1) < 1 || !(gone.revents & POLLHUP))
		;
	_exit(0);
}

/* Between these two is a call that can hang, with the pipe of @feed. */
static void enter(const struct feed *feed)
{
	__atomic_add_fetch(&shared->calls, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&shared->turn, own_turn | (uint64_t)(feed - shared->feeds + 1),
			 __ATOMIC_SEQ_CST);
}

static void leave(const struct feed *feed)
{
	uint64_t entered = own_turn | (uint64_t)(feed - shared->feeds + 1);

	if (!__atomic_compare_exchange_n(&shared->turn, &entered, own_turn, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		stand_by();
}

static void watch(const struct feed *feed, int op, uint32_t what)
{
	struct epoll_event event = { .events = what };

	event.data.u32 = (uint32_t)(feed - shared->feeds);
	epoll_ctl(epoll_fd, op, feed->fd, &event);
}

/* All is written, or no pipe is open: of how many? */
static void tell(void)
{
	const unsigned int closed = shared->nr_open ? 0 : shared->nr_feeds;

	shared->owed = false;
	send(chunks_end, &closed, sizeof(closed), MSG_NOSIGNAL);
}

static void tell_if_written(void)
{
	if (shared->owed && !shared->pending && shared->nr_open)
		tell();
}

/* Nothing is to be written to it any more. */
static void drop(struct feed *feed)
{
	feed->fd = -1;
	shared->nr_open--;
	if (feed->done < shared->chunk_len)
		shared->pending--;
	if (!shared->nr_open)
		tell();
}

static void end(struct feed *feed)
{
	const int fd = feed->fd;

	drop(feed);
	enter(feed);
	close(fd);
	leave(feed);
	__atomic_store_n(&feed->closed, true, __ATOMIC_RELEASE);
}

/* The ranks of these pipes have ended; what has them still may never read. */
static void end_told(void)
{
	const bool all = __atomic_load_n(&shared->finishing, __ATOMIC_ACQUIRE);
	struct feed *feed;

	for (feed = shared->feeds; feed < shared->feeds + shared->nr_feeds; feed++)
		if (feed->fd >= 0 && (all || __atomic_load_n(&feed->ended, __ATOMIC_ACQUIRE)))
			end(feed);
	tell_if_written();
	if (all)
		_exit(0);
}

static ssize_t write_rest(const struct feed *feed)
{
	ssize_t n;
	int err;

	enter(feed);
	n = write(feed->fd, shared->chunk + feed->done, shared->chunk_len - feed->done);
	err = errno;
	leave(feed);
	errno = err;
	return n;
}

/* Write as much of the chunk as the pipe has room for. */
static void push(struct feed *feed)
{
	ssize_t n;

	while (feed->done < shared->chunk_len) {
		n = write_rest(feed);
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
	shared->pending--;
	watch(feed, EPOLL_CTL_MOD, 0);
}

static void push_all(void)
{
	struct feed *feed;

	for (feed = shared->feeds; feed < shared->feeds + shared->nr_feeds; feed++)
		if (feed->fd >= 0 && feed->done < shared->chunk_len)
			push(feed);
	tell_if_written();
}

static void add(int fd)
{
	struct feed *feed = &shared->feeds[shared->nr_feeds];

	fcntl(fd, F_SETFL, O_NONBLOCK);	/* this end only */
	feed->fd = fd;
	feed->done = 0;
	shared->nr_open++;
	__atomic_store_n(&shared->nr_feeds, shared->nr_feeds + 1, __ATOMIC_RELEASE);
	watch(feed, EPOLL_CTL_ADD, 0);
	if (__atomic_load_n(&feed->ended, __ATOMIC_ACQUIRE))
		eventfd_write(notice, 1);	/* again: it could not be found before */
}

static void take_chunk(size_t len)
{
	unsigned int i;

	for (i = 0; i < shared->nr_feeds; i++)
		shared->feeds[i].done = 0;
	shared->chunk_len = len;
	shared->pending = shared->nr_open;
	shared->owed = true;
	push_all();
}

/* A pipe, or the next chunk */
static void take(void)
{
	int fds[PASS_MAX];
	ssize_t n = pass_receive(chunks_end, shared->chunk, sizeof(shared->chunk), fds);

	if (!n)
		end_told();	/* the input has ended; or */
	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		_exit(0);	/* pvasrun has */
	if (fds[0] >= 0)
		add(fds[0]);
	else if (n > 0)
		take_chunk((size_t)n);
}

/* There is room in the pipe, or (EPOLLERR) its other end is closed. */
static void ready(struct feed *feed, uint32_t what)
{
	if (feed->fd < 0)
		return;
	if (what & EPOLLERR)
		end(feed);
	else if (feed->done < shared->chunk_len)
		push(feed);
	tell_if_written();
}

static void __attribute__((noreturn)) feed_until_end(void)
{
	struct epoll_event events[EVENTS];
	int i, n;

	for (;;) {
		n = epoll_wait(epoll_fd, events, EVENTS, -1);
		for (i = 0; i < n; i++) {
			if (events[i].data.u32 == CHUNKS)
				take();
			else if (events[i].data.u32 == NOTICE)
				end_told();
			else
				ready(&shared->feeds[events[i].data.u32], events[i].events);
		}
	}
}

/* ---- its spare: a child with the same descriptors, but not the same memory ---- */

static struct feed *feed_of(uint64_t turn)
{
	return (uint32_t)turn ? &shared->feeds[(uint32_t)turn - 1] : NULL;
}

/* Nobody waits for that pipe. */
static bool is_needless(const struct feed *feed)
{
	return __atomic_load_n(&shared->finishing, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&feed->ended, __ATOMIC_ACQUIRE);
}

static bool may_hang(void)
{
	const unsigned int nr = __atomic_load_n(&shared->nr_feeds, __ATOMIC_ACQUIRE);
	const struct feed *feed;

	for (feed = shared->feeds; feed < shared->feeds + nr; feed++)
		if (is_needless(feed) && !__atomic_load_n(&feed->closed, __ATOMIC_ACQUIRE))
			return true;
	return false;
}

/* Until the other one hangs in a call for a pipe that nobody waits for; that is the turn */
static uint64_t wait_for_turn(void)
{
	struct epoll_event event, noticed = { .events = EPOLLIN | EPOLLET, .data.u32 = NOTICE };
	struct epoll_event gone = { .events = 0, .data.u32 = CHUNKS };
	const int watched = epoll_create1(EPOLL_CLOEXEC);
	uint64_t turn = 0, before;
	uint32_t calls = 0, calls_before;

	if (watched < 0 || epoll_ctl(watched, EPOLL_CTL_ADD, notice, &noticed) < 0 ||
	    epoll_ctl(watched, EPOLL_CTL_ADD, chunks_end, &gone) < 0)
		_exit(1);
	for (;;) {
		if (epoll_wait(watched, &event, 1, may_hang() ? LOOK_MS : -1) > 0) {
			if (event.data.u32 == CHUNKS)
				_exit(0);
			continue;
		}
		before = turn;
		calls_before = calls;
		turn = __atomic_load_n(&shared->turn, __ATOMIC_SEQ_CST);
		calls = __atomic_load_n(&shared->calls, __ATOMIC_SEQ_CST);
		if (turn == before && calls == calls_before && feed_of(turn) &&
		    is_needless(feed_of(turn)))
			break;
	}
	close(watched);
	return turn;
}

static void begin_spare(void);

/* All that the other one has not done is done now, but for the pipe in which it hangs. */
static void take_over(uint64_t turn)
{
	struct feed *held = feed_of(turn);

	own_turn = ((turn >> 32) + 1) << 32;
	if (!__atomic_compare_exchange_n(&shared->turn, &turn, own_turn, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return;
	prctl(PR_SET_PDEATHSIG, 0);
	if (held->fd >= 0) {
		epoll_ctl(epoll_fd, EPOLL_CTL_DEL, held->fd, NULL);
		drop(held);
	}
	held->closed = true;
	begin_spare();
	push_all();
	end_told();
	feed_until_end();
}

/* Without one, if none can be made */
static void begin_spare(void)
{
	const pid_t parent = getpid();

	if (syscall(SYS_clone, CLONE_FILES, NULL, NULL, NULL, NULL))
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	for (;;)
		take_over(wait_for_turn());
}

static void begin(int from, int notice_end)
{
	struct epoll_event chunks = { .events = EPOLLIN, .data.u32 = CHUNKS };
	/* Nobody reads it, so that the spare gets it, too. */
	struct epoll_event noticed = { .events = EPOLLIN | EPOLLET, .data.u32 = NOTICE };

	prctl(PR_SET_NAME, "pvas-feed");
	chunks_end = from;
	notice = notice_end;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, from, &chunks) < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, notice, &noticed) < 0)
		_exit(1);
	begin_spare();
	feed_until_end();
}

/* ---- in pvasrun ---- */

static void forget(struct feeder *feeder)
{
	if (feeder->notice >= 0)
		close(feeder->notice);
	feeder->notice = -1;
	if (feeder->shared != MAP_FAILED)
		munmap(feeder->shared, feeder->size);
	feeder->shared = MAP_FAILED;
}

int feeder_begin(struct feeder *feeder, unsigned int pipes)
{
	int err = -ENOMEM;

	*feeder = (struct feeder){ .child = FILE_CHILD_NONE };
	feeder->notice = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (feeder->notice < 0)
		return -errno;
	feeder->size = sizeof(*shared) + pipes * sizeof(shared->feeds[0]);
	feeder->shared = mmap(NULL, feeder->size, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared = feeder->shared;
	if (shared != MAP_FAILED)
		err = file_child_begin(&feeder->child, feeder->notice, begin);
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
	__atomic_store_n(&feeder->shared->feeds[pipe].ended, true, __ATOMIC_RELEASE);
	eventfd_write(feeder->notice, 1);
}

void feeder_finish(const struct feeder *feeder)
{
	__atomic_store_n(&feeder->shared->finishing, true, __ATOMIC_RELEASE);
	shutdown(feeder->child.end, SHUT_WR);
	eventfd_write(feeder->notice, 1);
}

void feeder_close(struct feeder *feeder)
{
	if (feeder->child.end < 0)
		return;
	file_child_close(&feeder->child);
	forget(feeder);
}
