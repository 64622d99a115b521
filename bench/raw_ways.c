// SPDX-License-Identifier: GPL-2.0-only
/* The mechanisms that need no module: see raw.h. */
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench.h"

void raw_tell(struct raw_side *me)
{
	raw_set(me->pair->flag[me->side], ++me->sent);
}

void raw_await(struct raw_side *me)
{
	raw_wait(me->pair->flag[!me->side], ++me->received);
}

static void copy_straight(struct raw_side *me)
{
	raw_await(me);
	memcpy(me->in + me->at, me->pair->base[!me->side] + me->at, me->len);
}

const struct raw_way raw_same_mm = {
	.name = "same-mm", .threads = true, .send = raw_tell, .receive = copy_straight,
};

static int cma_open(struct raw_pair *pair)
{
	char a = 1, b = 0;
	struct iovec to = { &b, 1 }, from = { &a, 1 };

	(void)pair;
	/* Where Yama lets only parents read: the child reads its parent, too. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 ? 0 : -errno;
}

static void cma_receive(struct raw_side *me)
{
	struct iovec to = { me->in + me->at, me->len };
	struct iovec from = { me->pair->base[!me->side] + me->at, me->len };

	raw_await(me);
	if (me->len && process_vm_readv(me->pair->pid[!me->side], &to, 1, &from, 1, 0) !=
			       (ssize_t)me->len)
		bench_die("process_vm_readv", -errno);
}

static void cma_begin(struct raw_side *me, size_t all)
{
	(void)me;
	(void)all;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
}

const struct raw_way raw_cma = {
	.name = "cma", .open = cma_open, .begin = cma_begin, .send = raw_tell,
	.receive = cma_receive,
};

static int pipe_open(struct raw_pair *pair)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (pipe2(pair->pipe[i], O_CLOEXEC))
			return -errno;
		/* As large as permitted; a smaller pipe is no error. */
		fcntl(pair->pipe[i][1], F_SETPIPE_SZ, 1 << 20);
	}
	return 0;
}

static void pipe_close(struct raw_pair *pair)
{
	int i;

	for (i = 0; i < 4; i++)
		close(pair->pipe[i / 2][i % 2]);
}

static void pipe_send(struct raw_side *me)
{
	size_t len = me->len ? me->len : 1, done = 0;
	ssize_t n;

	while (done < len) {
		n = write(me->pair->pipe[me->side][1], me->buf + me->at + done, len - done);
		if (n < 0)
			bench_die("write", -errno);
		done += n;
	}
}

static void pipe_receive(struct raw_side *me)
{
	size_t len = me->len ? me->len : 1, done = 0;
	ssize_t n;

	while (done < len) {
		n = read(me->pair->pipe[!me->side][0], me->in + me->at + done, len - done);
		if (n <= 0)
			bench_die("read", n ? -errno : -EPIPE);
		done += n;
	}
}

const struct raw_way raw_pipe = {
	.name = "pipe", .open = pipe_open, .close = pipe_close, .send = pipe_send,
	.receive = pipe_receive,
};

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* A message of 0 bytes is one chunk, too. */
static void shm_send(struct raw_side *me)
{
	struct raw_pair *p = me->pair;
	size_t done = 0, n;

	do {
		n = smaller(me->len - done, RAW_CHUNK);
		if (me->put >= RAW_CHUNKS)
			raw_wait(p->taken[me->side], me->put - RAW_CHUNKS + 1);
		memcpy(p->chunk[me->side][me->put % RAW_CHUNKS], me->buf + me->at + done, n);
		raw_set(p->full[me->side], ++me->put);
		done += n;
	} while (done < me->len);
}

static void shm_receive(struct raw_side *me)
{
	struct raw_pair *p = me->pair;
	int from = !me->side;
	size_t done = 0, n;

	do {
		n = smaller(me->len - done, RAW_CHUNK);
		raw_wait(p->full[from], me->got + 1);
		memcpy(me->in + me->at + done, p->chunk[from][me->got % RAW_CHUNKS], n);
		raw_set(p->taken[from], ++me->got);
		done += n;
	} while (done < me->len);
}

const struct raw_way raw_shm = {
	.name = "shm", .send = shm_send, .receive = shm_receive,
};
