// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the memory of callers outside, and all callers' files, by processes that look at
 * them in the launcher's place.
 *
 * Such memory can be a file of a server that never answers (FUSE). A thread that touches it
 * waits in a state that not even SIGKILL ends: one of the launcher's would keep it, and the memory
 * of the job, for as long as the server likes. So each helper has a reader, a process of its
 * own with next to no memory, and waits for it so that it can be killed, or give up.
 *
 * Under Yama only an ancestor may open the memory of a process, so a helper opens it and passes
 * the descriptor. The first reader never touches any: it begins when one is needed, or a task can
 * no longer be left out, as a copy of the launcher without the tasks, and makes the others, which
 * is cheap because it has unmapped that copy. Most jobs need none.
 */
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../loader/reader.h"
#include "clock.h"
#include "rawsys.h"
#include "rseq.h"
#include "worker.h"

#define STACK		(8 * PAGE)
#define LOOK_US		100000		/* how often who waits looks whether the space has ended */
#define END_TRIES	100		/* milliseconds */
#define RESTART_NS	1000000000LL	/* how soon another first one begins after one */

/* The blob and above it the stack of readers: of each in its own copy */
static char *region;

/* A helper's */
static __thread int connection = -1;
static __thread int memory = -1;	/* of the caller, to be passed with the next message */
static __thread int has_memory;		/* the reader has it */
static __thread uint64_t used;		/* by the reader, processor time in ns */
static __thread uint64_t charged;	/* of that */

static size_t text_length(void)
{
	return PAGE_UP((size_t)USER_LOADER_LEN);
}

static void make_region(void)
{
	size_t text = text_length();
	char *p = mmap(NULL, text + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		return;
	memcpy(p, pvas_blob, USER_LOADER_LEN);
	pvas_code_written(p, USER_LOADER_LEN);
	if (mprotect(p, text, PROT_READ | PROT_EXEC))
		munmap(p, text + STACK);
	else
		region = p;
}

int user_reader_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_region);
	return region ? 0 : -ENOMEM;
}

/* ---- the first one ---- */

static void __attribute__((noreturn)) become_reader(unsigned int end, int fd)
{
	char *stack = region + text_length() + STACK, *entry = region + PVAS_BLOB_READER;
	long proc = user_proc_fd();

	/* Others wait for the end of pipes, and a file before them in the table can hang. */
	user_files_close_others(end, fd);
	pvas_rseq_unregister();
	pvas_jump((uint64_t)entry, (uint64_t)stack, (long)region, (long)stack, fd, proc);
}

/*
 * SIGCHLD would tell the application of a child that it has not made. Under user_readers.lock, and
 * when the tasks' memory has been marked.
 */
static int start_first(struct user_space *u)
{
	int ends[2], pidfd = -1;
	long pid;

	if (!region)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	pid = pvas_raw4(__NR_clone, CLONE_PIDFD, 0, &pidfd, 0);
	if (!pid)
		become_reader(u->descriptors > (unsigned int)ends[1] ? u->descriptors :
			      (unsigned int)ends[1] + 1, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return (int)pid;
	}
	user_file_mark(ends[0]);
	user_file_mark(pidfd);
	u->readers.pidfd = pidfd;
	u->readers.connection = ends[0];
	u->readers.pid = (pid_t)pid;
	u->readers.since = now_ns();
	return 0;
}

/*
 * An exempt task is copied, and what the copy unmaps can be a file that waits for its server. So
 * the first one begins before there is any. With a turn: no other maps such a file meanwhile.
 */
void user_reader_before_exempt(struct user_space *u)
{
	/* Else somebody else starts it. */
	if (pthread_mutex_trylock(&u->readers.lock))
		return;
	if (!u->readers.pid) {
		user_fork_of_launcher(u);
		start_first(u);
		user_fork_of_launcher_made(u);
	}
	pthread_mutex_unlock(&u->readers.lock);
}

/* It ends with the connection, and after all others: if one of these hangs, later. */
static void end_first(struct user_readers *r)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	struct pollfd end = { .fd = r->pidfd, .events = POLLIN };
	int tries = END_TRIES;

	if (user_file_is_ours(r->connection))
		close(r->connection);
	if (user_file_is_ours(r->pidfd)) {
		poll(&end, 1, END_TRIES);
		close(r->pidfd);
	}
	while (!pvas_raw4(__NR_wait4, r->pid, NULL, __WCLONE | WNOHANG, NULL) && --tries)
		nanosleep(&ms, NULL);
	r->pid = 0;
}

/* ---- messages ---- */

static int send_to(int to, const struct pvas_reader_request *r, size_t len, int fd)
{
	struct iovec part = { (void *)r, offsetof(struct pvas_reader_request, data) + len };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} c = { 0 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		c.head.cmsg_level = SOL_SOCKET;
		c.head.cmsg_type = SCM_RIGHTS;
		c.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&c.head), &fd, sizeof(fd));
		m.msg_control = &c;
		m.msg_controllen = sizeof(c);
	}
	return sendmsg(to, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* This can be killed, unlike the reader, and ends with the space. -EINTR: for now there is none. */
static int receive_from(int from, struct pvas_reader_answer *a)
{
	ssize_t n;

	do {
		n = recv(from, a, sizeof(*a), 0);
	} while (n < 0 && errno == EINTR);
	if (n >= (ssize_t)offsetof(struct pvas_reader_answer, data))
		return 0;
	return n < 0 && errno == EAGAIN ? -EINTR : -EAGAIN;
}

/* Has the reader at the other end died? */
static int has_hung_up(int fd)
{
	struct pollfd end = { .fd = fd };

	return poll(&end, 1, 0) > 0;
}

/* ---- a helper's ---- */

/* A reader that has failed, or may still be at it, is not asked again. */
static void leave_reader(void)
{
	if (connection >= 0)
		close(connection);
	connection = -1;
	has_memory = 0;
}

/* The reader can't be killed. Returns whether this helper needn't wait for it. */
static int leave_hung(struct user_space *u)
{
	int left = user_hung_add(&u->readers, connection, user_request_owner());

	if (left)
		connection = -1;
	return left;
}

/* Until it answers, its caller is dead, or the space ends */
static int wait_for_answer(struct user_space *u, struct pvas_reader_answer *a)
{
	int err;

	do {
		err = receive_from(connection, a);
	} while (err == -EINTR && !__atomic_load_n(&u->abandoned, __ATOMIC_RELAXED) &&
		 (user_request_valid() || !leave_hung(u)));
	return err;
}

/* Somebody has killed it, as the OOM killer. Where that goes on, this doesn't. */
static void replace_dead(struct user_readers *r)
{
	if (r->pid && user_file_is_ours(r->connection) && has_hung_up(r->connection) &&
	    now_ns() - r->since >= RESTART_NS)
		end_first(r);
}

static int ask_for_another(struct user_space *u, int fd)
{
	struct pvas_reader_request r = { .op = PVAS_READER_NEW };
	struct pvas_reader_answer a;
	int err = -EAGAIN;

	pthread_mutex_lock(&u->readers.lock);
	replace_dead(&u->readers);
	if (!u->readers.pid) {
		/* It unmaps the rest, and this thread's request may be a mapping call. */
		user_fork_mark_all(u);
		err = start_first(u);
	}
	if (u->readers.pid && user_file_is_ours(u->readers.connection))
		err = send_to(u->readers.connection, &r, 0, fd);
	if (!err)
		err = receive_from(u->readers.connection, &a);
	pthread_mutex_unlock(&u->readers.lock);
	return err ? err : a.result < 0 ? (int)a.result : 0;
}

static int connect_reader(struct user_space *u)
{
	const struct timeval look = { .tv_usec = LOOK_US };
	int ends[2], err;

	if (connection >= 0 && has_hung_up(connection))
		leave_reader();
	if (connection >= 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	err = ask_for_another(u, ends[1]);
	close(ends[1]);
	if (!err && setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look)))
		err = -errno;
	if (err) {
		close(ends[0]);
		return err;
	}
	connection = ends[0];
	used = charged = 0;
	return 0;
}

static void forget_memory(void)
{
	if (memory >= 0)
		close(memory);
	memory = -1;
	has_memory = 0;
}

/* The number can be another process' by now: not if the request is still valid afterwards. */
static int open_memory(pid_t tid)
{
	int fd = user_proc_open(tid, "mem", O_RDWR);

	if (fd == -EACCES || fd == -EPERM)
		fd = user_proc_open(tid, "mem", O_RDONLY);
	if (fd < 0)
		return fd == -EACCES || fd == -ENOENT ? -EPERM : fd;
	if (!user_request_valid()) {
		close(fd);
		return -ESRCH;
	}
	memory = fd;
	return 0;
}

static int prepare(struct user_space *u, pid_t tid)
{
	int err = connect_reader(u);

	return err || memory >= 0 || has_memory ? err : open_memory(tid);
}

static int talk(struct user_space *u, const struct pvas_reader_request *r, size_t len, int fd,
		struct pvas_reader_answer *a)
{
	int err = send_to(connection, r, len, fd);

	if (!err)
		err = wait_for_answer(u, a);
	if (err) {
		leave_reader();
		return -EAGAIN;
	}
	used = a->used;
	return 0;
}

static ssize_t exchange(struct user_space *u, struct pvas_reader_request *r, size_t len,
			struct pvas_reader_answer *a)
{
	if (!has_memory)
		r->op |= PVAS_READER_OTHER;
	if (talk(u, r, len, memory, a))
		return -EAGAIN;
	has_memory = 1;
	if (memory >= 0)
		close(memory);
	memory = -1;
	return (ssize_t)a->result;
}

/* To the end of a page: the next one may not be mapped. */
static size_t in_page(uint64_t at, size_t len)
{
	size_t left = PAGE - (at & (PAGE - 1));

	return len < left ? len : left;
}

/* A part that doesn't cross a page, to @to or from @from */
static ssize_t copy_part(struct user_space *u, uint64_t at, char *to, const char *from, size_t len)
{
	struct pvas_reader_request r = {
		.op = to ? PVAS_READER_READ : PVAS_READER_WRITE, .len = (uint32_t)len, .at = at,
	};
	struct pvas_reader_answer a;
	ssize_t n;

	if (from)
		memcpy(r.data, from, len);
	n = exchange(u, &r, from ? len : 0, &a);
	if (to && n > 0)
		memcpy(to, a.data, (size_t)n);
	return n;
}

static ssize_t copy(pid_t tid, uint64_t at, char *to, const char *from, size_t len)
{
	struct user_space *u = user_request_space();
	size_t done = 0;
	ssize_t n = prepare(u, tid);

	if (n < 0)
		return n;
	while (done < len) {
		n = copy_part(u, at + done, to ? to + done : NULL, from ? from + done : NULL,
			      in_page(at + done, len - done));
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	/* EIO: nothing is mapped there. */
	return !done && n < 0 && n != -EIO ? -EAGAIN : (ssize_t)done;
}

ssize_t user_reader_read(pid_t tid, uint64_t from, void *to, size_t len)
{
	return copy(tid, from, to, NULL, len);
}

ssize_t user_reader_write(pid_t tid, uint64_t to, const void *from, size_t len)
{
	return copy(tid, to, NULL, from, len);
}

int64_t user_reader_type(pid_t tid, const char *name, const char *below)
{
	struct pvas_reader_request r = { .op = PVAS_READER_TYPE };
	struct pvas_reader_answer a;
	size_t len = (size_t)snprintf(r.data, sizeof(r.data), "%d/%s", tid, name) + 1;
	int err = connect_reader(user_request_space());

	if (err)
		return err;
	if (below) {
		r.at = len;
		len += (size_t)snprintf(r.data + len, sizeof(r.data) - len, "%s", below) + 1;
	}
	err = talk(user_request_space(), &r, len, -1, &a);
	return err ? err : a.result;
}

int user_reader_open(pid_t tid, int fd, const int flags[2])
{
	struct pvas_reader_request r = {
		.op = PVAS_READER_OPEN, .len = (uint32_t)flags[0], .at = (uint32_t)flags[1],
	};
	size_t len = (size_t)snprintf(r.data, sizeof(r.data), "%d/fd/%d", tid, fd) + 1;
	int err = connect_reader(user_request_space());

	if (!err)
		err = send_to(connection, &r, len, -1);
	return err ? err : connection;
}

int user_reader_take(int from)
{
	struct pvas_reader_answer a = { 0 };
	struct iovec part = { &a, sizeof(a) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} c = { 0 };
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c),
	};
	ssize_t n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
	int fd = -EAGAIN;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -EINTR : -EAGAIN;
	if (n < (ssize_t)offsetof(struct pvas_reader_answer, data))
		return -EAGAIN;		/* it has been killed */
	if (a.result < 0)
		return (int)a.result;
	if (m.msg_controllen >= CMSG_LEN(sizeof(fd)) && c.head.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&c.head), sizeof(fd));
	return fd;
}

void user_reader_stop(struct user_space *u)
{
	user_hung_end(&u->readers);
	if (u->readers.pid)
		end_first(&u->readers);
}

void user_reader_done(void)
{
	forget_memory();
}

void user_reader_leave(void)
{
	forget_memory();
	leave_reader();
}

uint64_t user_reader_cost(void)
{
	uint64_t cost = used - charged;

	charged = used;
	return cost;
}
