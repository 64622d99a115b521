// SPDX-License-Identifier: GPL-2.0-only
/*
 * The first message of each connection at the entrance, before UCX sees it.
 *
 * It has a length in 64 bits, a status in 64, and so many bytes of the address that UCX gives,
 * in which the job's token is. UCX 1.13 trusts the length: one that is too small, as a hundred
 * zeros have it, ends the process, and one that is too large makes it receive nothing, again and
 * again, for ever. So its calls of accept() and recv() come here, as those of libraries go to a
 * program's own functions. The message is collected, and UCX gets it if it has the token of a
 * job. Others are told what UCX tells those whom a server rejects, and end; UCX never sees what
 * they sent.
 *
 * All but admission_update() and admission_report() runs in the thread in which UCX looks at
 * descriptors.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "memd.h"

/* The length and the status, which is a byte; UCX's own limit is half of MOST */
#define HEAD	16
#define STATUS	8
#define MOST	4096

/** struct visitor - who has not been let in yet */
struct visitor {
	uint64_t cookie;	/* of the socket: the descriptor's number may be another one's */
	size_t got;
	char message[MOST];
};

static struct visitor *visitors[MAX_FDS];
static unsigned int entrance_port;	/* 0: not known yet */

/* @tokens: of the jobs. @refused: how many since the last report, the last one at @address */
static struct {
	pthread_mutex_t lock;
	uint64_t *tokens;
	unsigned int count, refused;
	struct sockaddr_storage address;
} admission = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the server's thread ---- */

void admission_update(const struct memd *memd)
{
	unsigned int count = 0, room = 0;
	const struct job *job;
	uint64_t *tokens;

	for (job = memd->jobs; job; job = job->next)
		room++;
	tokens = calloc(room + 1, sizeof(*tokens));
	if (!tokens)
		return;		/* as before */
	for (job = memd->jobs; job; job = job->next)
		if (job->listed)
			tokens[count++] = job->token;
	__atomic_store_n(&entrance_port, memd->port, __ATOMIC_RELAXED);
	pthread_mutex_lock(&admission.lock);
	free(admission.tokens);
	admission.tokens = tokens;
	admission.count = count;
	pthread_mutex_unlock(&admission.lock);
}

void admission_report(struct memd *memd)
{
	char text[INET6_ADDRSTRLEN];
	unsigned int refused;

	pthread_mutex_lock(&admission.lock);
	refused = admission.refused;
	admission.refused = 0;
	address_text(&admission.address, text, sizeof(text));
	pthread_mutex_unlock(&admission.lock);
	if (!refused)
		return;
	memd->notices += refused - 1;
	notice(memd, "%s: refused, no job has its key", text);
}

/* ---- UCX's thread ---- */

static bool has_token(const struct visitor *v)
{
	unsigned int i;
	bool has = false;

	pthread_mutex_lock(&admission.lock);
	for (i = 0; i < admission.count && !has; i++)
		has = memmem(v->message + HEAD, v->got - HEAD, &admission.tokens[i],
			     sizeof(admission.tokens[i]));
	pthread_mutex_unlock(&admission.lock);
	return has;
}

static void forget(int fd)
{
	free(visitors[fd]);
	visitors[fd] = NULL;
}

/* 0: it is none, or has none */
static uint64_t cookie_of(int fd)
{
	uint64_t cookie;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) ? 0 : cookie;
}

/*
 * UCX may have closed the socket without another recv(), and have got the number for one to a
 * job's port: the first bytes there are for UCX.
 */
static struct visitor *visitor_at(int fd)
{
	struct visitor *v = fd >= 0 && fd < MAX_FDS ? visitors[fd] : NULL;

	if (!v || v->cookie == cookie_of(fd))
		return v;
	forget(fd);
	return NULL;
}

/* UCX closes it then. */
static ssize_t refuse(int fd)
{
	char reject[HEAD] = { [STATUS] = (char)UCS_ERR_REJECTED };
	socklen_t len = sizeof(admission.address);

	pthread_mutex_lock(&admission.lock);
	admission.refused++;
	getpeername(fd, (struct sockaddr *)&admission.address, &len);
	pthread_mutex_unlock(&admission.lock);
	if (send(fd, reject, sizeof(reject), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		shutdown(fd, SHUT_RDWR);
	forget(fd);
	errno = ECONNRESET;
	return -1;
}

/* Bytes of the message that are still to come; at first, of its head */
static size_t wanted(const struct visitor *v)
{
	uint64_t length;

	if (v->got < HEAD)
		return HEAD - v->got;
	memcpy(&length, v->message, sizeof(length));
	if (length > MOST - HEAD)
		length = 0;	/* then it has no token */
	return v->got < HEAD + length ? HEAD + length - v->got : 0;
}

static ssize_t receive(int fd, struct visitor *v, void *to, size_t room)
{
	size_t want;
	ssize_t n;

	while ((want = wanted(v))) {
		n = syscall(SYS_recvfrom, fd, v->message + v->got, want, MSG_DONTWAIT, NULL, NULL);
		if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
			forget(fd);
		if (n <= 0)
			return n;
		v->got += n;
	}
	if (v->got > room || !has_token(v))
		return refuse(fd);
	n = v->got;
	memcpy(to, v->message, n);
	forget(fd);
	return n;
}

ssize_t recv(int fd, void *to, size_t room, int flags)
{
	struct visitor *v = visitor_at(fd);

	if (v)
		return receive(fd, v, to, room);
	return syscall(SYS_recvfrom, fd, to, room, flags, NULL, NULL);
}

int accept(int listener, struct sockaddr *address, socklen_t *len)
{
	unsigned int port = __atomic_load_n(&entrance_port, __ATOMIC_RELAXED);
	int fd = syscall(SYS_accept, listener, address, len);

	if (fd < 0)
		return fd;
	if (fd < MAX_FDS) {
		forget(fd);
		if (port && local_port(fd) != port)
			return fd;
		visitors[fd] = calloc(1, sizeof(**visitors));
		if (visitors[fd]) {
			visitors[fd]->cookie = cookie_of(fd);
			return fd;
		}
	}
	close(fd);
	errno = ECONNABORTED;
	return -1;
}
