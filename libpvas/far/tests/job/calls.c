// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * System calls on far memory that is not resident. Before each, all else is touched, so that
 * the kernel finds nothing there unless somebody brings it in.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "job.h"
#include "pvas.h"

static int temporary(void)
{
	char name[] = "/tmp/far-job-XXXXXX";
	int fd = mkstemp(name);

	check(fd >= 0);
	unlink(name);
	return fd;
}

static void small_calls(char *p)
{
	struct stat *st = (struct stat *)(p + 3 * PAGE);
	struct timespec *now = (struct timespec *)(p + MIB);
	struct pollfd *fds = (struct pollfd *)(p + 2 * MIB);
	int *ends = (int *)(p + 3 * MIB + 8);

	strcpy(p, "/proc/self/status");
	evict();
	check(!stat(p, st) && S_ISREG(st->st_mode));
	evict();
	check(open(p, O_RDONLY) >= 0);
	evict();
	check(!clock_nanosleep(CLOCK_MONOTONIC, 0, now, NULL));
	evict();
	check(getcwd(p, PAGE) == p && *p == '/');
	evict();
	check(!pipe(ends));
	fds->fd = ends[1];
	fds->events = POLLOUT;
	evict();
	check(poll(fds, 1, 0) == 1 && fds->revents == POLLOUT);
	check(write(-1, p, 10) < 0 && errno == EBADF);
	sigemptyset((sigset_t *)(p + 7 * MIB));
	evict();
	check(syscall(SYS_pselect6, 0, NULL, NULL, NULL, now,
		      (uintptr_t[]){ (uintptr_t)p + 7 * MIB, 8 }) == 0);
	check(write(ends[1], p, 1) == 1);
	check(read(ends[0], p - PAGE, 1) < 0 && errno == EFAULT);
}

static void files(char *p)
{
	struct iovec *v = (struct iovec *)(p + 8 * MIB);
	char *to = p + 4 * MIB;
	int fd = temporary();
	size_t i;

	for (i = 0; i < 3 * MIB; i++)
		p[i] = (char)(i * 7 >> 3);
	evict();
	check(write(fd, p, 3 * MIB) == 3 * MIB);
	evict();
	check(pread(fd, to, 3 * MIB, 0) == 3 * MIB && !memcmp(p, to, 3 * MIB));
	memset(to, 0, 3 * MIB);
	/* The vector is far, too, and one part of it is not. */
	v[0] = (struct iovec){ to, MIB };
	v[1] = (struct iovec){ to + MIB, 100 };
	v[2] = (struct iovec){ &i, 4 };
	evict();
	check(preadv(fd, v, 3, 0) == MIB + 104 && !memcmp(p, to, MIB + 100));
	check(!memcmp(&i, p + MIB + 100, 4));
	evict();
	check(pwritev(fd, v, 2, 3 * MIB) == MIB + 100);
	close(fd);
}

/* ---- lengths that are no argument ---- */

enum { SEMAPHORES = 3000, STEPS = 1000, KEY = 9000 };

/**
 * struct long_call - what calls read from far memory, or write there
 * @values:	of the semaphores of @set
 * @filter:	of @socket; getsockopt() counts its steps
 * @key:	contents of the key @key_id, which is negative where users have none
 * @name:	of the thread
 */
struct long_call {
	unsigned short *values;
	int set, socket;
	struct sock_filter *filter;
	char *key, *name;
	long key_id;
};

static void prepare(struct long_call *c)
{
	static struct sock_filter filter[STEPS];
	struct sock_fprog program = { .len = STEPS, .filter = filter };
	int i;

	for (i = 0; i < STEPS; i++)
		filter[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0xffff);
	for (i = 0; i < SEMAPHORES; i++)
		c->values[i] = (unsigned short)i;
	memset(c->key, 'k', KEY);
	check(!syscall(SYS_prctl, PR_SET_NAME, "far", 0, 0, 0, 0));
	c->set = semget(IPC_PRIVATE, SEMAPHORES, 0600);
	c->socket = socket(AF_UNIX, SOCK_DGRAM, 0);
	check(c->set >= 0 && c->socket >= 0);
	check(!setsockopt(c->socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
}

static void give(struct long_call *c)
{
	check(!syscall(SYS_semctl, c->set, 0, SETALL, c->values, 0, 0));
	c->key_id = syscall(SYS_add_key, "user", "pvas-far-test", c->key, KEY,
			    KEY_SPEC_PROCESS_KEYRING, 0);
	check(c->key_id > 0 || errno != EFAULT);
	memset(c->values, 0, SEMAPHORES * sizeof(*c->values));
	memset(c->key, 0, KEY);
}

static void get_back(struct long_call *c)
{
	socklen_t len = STEPS;
	int i;

	check(!syscall(SYS_semctl, c->set, 0, GETALL, c->values, 0, 0));
	check(!semctl(c->set, 0, IPC_RMID));
	check(!syscall(SYS_getsockopt, c->socket, SOL_SOCKET, SO_GET_FILTER, c->filter, &len, 0) &&
	      len == STEPS);
	check(!syscall(SYS_prctl, PR_GET_NAME, c->name, 0, 0, 0, 0) && !strcmp(c->name, "far"));
	for (i = 0; i < SEMAPHORES; i++)
		check(c->values[i] == i);
	for (i = 0; i < STEPS; i++)
		check(c->filter[i].k == 0xffff);
	if (c->key_id < 0)
		return;
	check(syscall(SYS_keyctl, KEYCTL_READ, c->key_id, c->key, KEY, 0, 0) == KEY);
	check(*c->key == 'k' && !memcmp(c->key, c->key + 1, KEY - 1));
}

/*
 * Buffers that begin before the end of a page of the pager's, and reach far into the next one. By
 * syscall(), with zeros for arguments that a call doesn't have: if a pointer is left in such a
 * register, its page is brought in, too.
 */
static void long_calls(char *p)
{
	char *at = p + MIB - 4808;
	struct long_call c = {
		.values = (unsigned short *)at, .filter = (struct sock_filter *)(at + MIB),
		.key = at + 2 * MIB, .name = at + 3 * MIB,
	};

	prepare(&c);
	evict();
	give(&c);
	evict();
	get_back(&c);
	close(c.socket);
}

/* A mutex and condition in far memory */
struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int turn;
};

static void *partner(void *arg)
{
	struct meeting *m = arg;
	int i;

	for (i = 0; i < 50; i++) {
		pthread_mutex_lock(&m->lock);
		while (m->turn != 1)
			pthread_cond_wait(&m->cond, &m->lock);
		m->turn = 0;
		pthread_cond_signal(&m->cond);
		pthread_mutex_unlock(&m->lock);
	}
	return NULL;
}

static void futexes(char *p)
{
	struct meeting *m = (struct meeting *)(p + 5 * MIB);
	pthread_t thread;
	int i;

	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->cond, NULL);
	check(!pthread_create(&thread, NULL, partner, m));
	for (i = 0; i < 50; i++) {
		if (i % 10 == 0)
			evict();
		pthread_mutex_lock(&m->lock);
		m->turn = 1;
		pthread_cond_signal(&m->cond);
		while (m->turn != 0)
			pthread_cond_wait(&m->cond, &m->lock);
		pthread_mutex_unlock(&m->lock);
	}
	pthread_join(thread, NULL);
}

void test_calls(void)
{
	char *p = far_memory(RAM);

	small_calls(p);
	long_calls(p);
	files(p);
	futexes(p);
	check(!munmap(p, RAM));
}

/* A file larger than the budget, by one call, and back */
void test_file(void)
{
	uint64_t *p = (uint64_t *)far_memory(2 * RAM), i;
	int fd = temporary();

	for (i = 0; i < 2 * RAM / 8; i++)
		p[i] = i * 12345;
	check(write(fd, p, 2 * RAM) == 2 * RAM);
	memset(p, 0, 2 * RAM);
	check(!lseek(fd, 0, SEEK_SET));
	check(read(fd, p, 2 * RAM + 5) == 2 * RAM);
	for (i = 0; i < 2 * RAM / 8; i++)
		check(p[i] == i * 12345);
	check(lseek(fd, 0, SEEK_CUR) == 2 * RAM);
	close(fd);
}

static void send_all(int fd, const char *p, size_t size)
{
	ssize_t n;

	for (; size; p += n, size -= (size_t)n) {
		n = send(fd, p, size, 0);
		check(n > 0);
	}
}

static void *receive(void *arg)
{
	int fd = *(int *)arg;
	char *to = far_memory(4 * MIB);
	struct iovec *v = (struct iovec *)far_memory(2 * MIB);
	struct msghdr *m = (struct msghdr *)(v + 4);
	size_t got = 0, i;
	ssize_t n;

	while (got < 3 * MIB) {
		v[0] = (struct iovec){ to + got, 3 * MIB - got };
		*m = (struct msghdr){ .msg_iov = v, .msg_iovlen = 1 };
		n = recvmsg(fd, m, 0);
		check(n > 0);
		got += (size_t)n;
	}
	for (i = 0; i < got; i++)
		check(to[i] == (char)(i * 5 >> 2));
	return NULL;
}

static void *wait_for_ever(void *arg)
{
	check(recv(*(int *)arg, far_memory(4 * RAM), 4 * RAM, 0) > 0);
	return NULL;
}

/* Both ends in far memory, while both wait for each other */
void test_messages(void)
{
	char *p = far_memory(4 * MIB);
	int ends[2];
	pthread_t thread;
	size_t i;

	for (i = 0; i < 3 * MIB; i++)
		p[i] = (char)(i * 5 >> 2);
	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	evict();
	check(!pthread_create(&thread, NULL, receive, &ends[1]));
	send_all(ends[0], p, 3 * MIB);
	pthread_join(thread, NULL);
}

volatile uint64_t *memory_of(unsigned int rank)
{
	unsigned int own = (unsigned int)atoi(getenv("PVAS_RANK"));
	void *p;

	check(pvas_name_import_wait((unsigned int)pvas_task_get_index() - own + rank, "far",
				     30000, &p) >= 0);
	return p;
}

/* One waits for ever for more than can be held: the others' calls go on. */
void test_waiting(void)
{
	int ends[2], others[2], i;
	pthread_t thread;
	char *p = far_memory(MIB);
	struct timespec t = { .tv_nsec = 200000000 };

	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, others));
	check(!pthread_create(&thread, NULL, wait_for_ever, &ends[0]));
	nanosleep(&t, NULL);
	for (i = 0; i < 5; i++) {
		evict();
		check(send(others[0], p, 10000, 0) == 10000);
		evict();
		check(recv(others[1], p + MIB / 2, 10000, MSG_WAITALL) == 10000);
	}
}

/* Each rank reads the far memory of the one before it, by a pointer, while that one writes. */
void test_peer(void)
{
	unsigned int rank = (unsigned int)atoi(getenv("PVAS_RANK"));
	unsigned int size = (unsigned int)atoi(getenv("PVAS_SIZE"));
	volatile uint64_t *p = (uint64_t *)far_memory(RAM), *q;
	unsigned int round;
	size_t i;

	p[0] = 0;
	check(!pvas_name_export("far", (void *)p));
	q = memory_of((rank + size - 1) % size);
	for (round = 1; round <= 3; round++) {
		for (i = 1; i < RAM / 8; i++)
			p[i] = round * 1000000007UL + i;
		__atomic_store_n(&p[0], round, __ATOMIC_RELEASE);
		while (__atomic_load_n(&q[0], __ATOMIC_ACQUIRE) < round)
			usleep(1000);
		for (i = 1; i < RAM / 8; i += 3)
			check(q[i] % 1000000007UL == i && q[i] / 1000000007UL >= round);
	}
	/* Until the one that reads here is done, too, and has seen that all are */
	q = memory_of((rank + 1) % size);
	__atomic_store_n(&p[0], round, __ATOMIC_RELEASE);
	while (__atomic_load_n(&q[0], __ATOMIC_ACQUIRE) < round)
		usleep(1000);
	sleep(1);
}
