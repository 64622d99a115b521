// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: far memory in system calls, for launchers whose userfaultfd serves no faults of
 * the kernel (those of ordinary users, by default).
 *
 * A worker brings the pages in and holds them, and then the kernel makes the call. Nothing tells
 * when the kernel is done. It is for certain when the thread makes another call that
 * the filter sends, when it waits in another one, or has exited. Until one of these is seen,
 * the pages stay: at most half of the budget. If that is used up, callers wait for a while.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "far.h"
#include "rawsys.h"

#define TRIES		400	/* to find room for some of it; 5 ms between */
#define TRIES_ALL	20	/* and for all */
#define PAUSE_US	5000
#define SHARE		(256UL << 10)	/* for a call that can wait for long */

/**
 * struct user_far_held - what is held for one call
 * @part:	of the caller's code
 * @lasting:	0, or the call's number: the kernel uses the memory as long as the thread exists
 * @text:	the beginning of /proc/PID/syscall while it is in the call
 */
struct user_far_held {
	struct user_far_held *next;
	const struct user_part *part;
	pid_t tid;
	int lasting;
	char text[64];
	unsigned int count;
	struct user_far_piece pieces[];
};

static void let_go(const struct user_far *f, const struct user_far_piece *p, unsigned int n)
{
	while (n--)
		f->ops->release(p[n].addr, p[n].len);
}

static int is_lasting(int nr)
{
	return nr == __NR_exit || nr == __NR_exit_group || nr == __NR_sigaltstack ||
	       nr == __NR_set_robust_list || nr == __NR_rseq || nr == __NR_set_tid_address;
}

static int is_of_thread(const struct user_far_held *h, const void *tid)
{
	return !h->lasting && h->tid == *(const pid_t *)tid;
}

/* Of the same thread and for the same purpose: the new one takes its place. */
static int is_replaced(const struct user_far_held *h, const void *request)
{
	const struct user_request *r = request;

	return h->lasting == r->nr && h->tid == r->tid;
}

static int is_of_part(const struct user_far_held *h, const void *part)
{
	return h->part == part;
}

/* Is it over? One that runs may still be in the call. */
static int is_over(const struct user_far_held *h, const void *space)
{
	char text[256];
	ssize_t n;

	if (user_caller_left(h->tid, h->tid))
		return 1;
	n = user_ask(space, h->part, h->tid, "syscall", text, sizeof(text));
	if (n <= 0)
		return n == -ENOENT || n == -ESRCH || n == -ETIME;
	if (h->lasting)
		return 0;
	return *text != 'r' && strncmp(text, h->text, strlen(h->text));
}

static void remove_if(struct user_far *f,
		      int (*test)(const struct user_far_held *h, const void *arg), const void *arg)
{
	struct user_far_held **at, *h;

	if (!__atomic_load_n(&f->nr_held, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&f->lock);
	for (at = &f->held; (h = *at);) {
		if (!test(h, arg)) {
			at = &h->next;
			continue;
		}
		*at = h->next;
		let_go(f, h->pieces, h->count);
		free(h);
		__atomic_sub_fetch(&f->nr_held, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&f->lock);
}

void user_far_returned(struct user_far *f, pid_t tid)
{
	remove_if(f, is_of_thread, &tid);
}

void user_far_forget(struct user_far *f, const struct user_part *p)
{
	remove_if(f, is_of_part, p);
}

void user_far_free_holds(struct user_far *f)
{
	struct user_far_held *h;

	while ((h = f->held)) {
		f->held = h->next;
		free(h);
	}
}

/* One piece: as much of it as can be, but some. Shortens it. 0 or -errno. */
static int hold_piece(struct user_far *f, struct user_far_piece *p)
{
	uint64_t held = 0;
	int tries;

	for (tries = 0; tries < (held ? TRIES_ALL : TRIES) && held < p->len; tries++) {
		f->ops->release(p->addr, held);
		if (tries) {
			remove_if(f, is_over, user_request_space());
			usleep(PAUSE_US);
		}
		held = f->ops->hold(p->addr, p->len, p->write);
		if (!held && !user_request_valid())
			return -ESRCH;
	}
	p->len = held;
	if (held)
		return 0;
	if (!__atomic_exchange_n(&f->told_held, 1, __ATOMIC_RELAXED))
		dprintf(2, "pvasrun: system calls hold half of --ram: one fails with ENOMEM (give more, or smaller pages by --far-page)\n");
	return -ENOMEM;
}

static int64_t hold_all(const struct user_request *r, struct user_far_piece *pieces,
			unsigned int count)
{
	struct user_far *f = r->u->far;
	struct user_far_held *h = malloc(sizeof(*h) + count * sizeof(*pieces));
	unsigned int i;
	int err = h ? 0 : -ENOMEM;

	for (i = 0; i < count && !err; i++)
		err = hold_piece(f, &pieces[i]);
	if (err) {
		let_go(f, pieces, i ? i - 1 : 0);
		free(h);
		return err;
	}
	h->part = r->part;
	h->tid = r->tid;
	h->lasting = is_lasting(r->nr) ? r->nr : 0;
	h->count = count;
	memcpy(h->pieces, pieces, count * sizeof(*pieces));
	snprintf(h->text, sizeof(h->text), "%d 0x%llx 0x%llx ", r->nr,
		 (unsigned long long)r->args[0], (unsigned long long)r->args[1]);
	pthread_mutex_lock(&f->lock);
	h->next = f->held;
	f->held = h;
	__atomic_add_fetch(&f->nr_held, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&f->lock);
	return 0;
}

/* Does it transfer to or from something else than a file, which can let it wait for ever? */
static int can_wait(const struct user_request *r)
{
	struct user_look look;

	switch (r->nr) {
	case __NR_recvfrom:
	case __NR_recvmsg:
	case __NR_recvmmsg:
	case __NR_sendto:
	case __NR_sendmsg:
	case __NR_sendmmsg:
	case __NR_vmsplice:
		return 1;
	case __NR_read:
	case __NR_readv:
	case __NR_write:
	case __NR_writev:
		break;
	default:
		return 0;
	}
	return !user_caller_look(r->u, r->tid, (int)r->args[0], &look) && look.st.stx_mask &&
	       !S_ISREG(look.st.stx_mode);
}

/* Then a part is enough: programs expect short transfers there. */
static void cut_long_ones(const struct user_request *r, struct user_far_list *list)
{
	unsigned int i, nr_long = 0;

	for (i = 0; i < list->count; i++)
		nr_long += list->piece[i].len > SHARE;
	if (!nr_long || !can_wait(r))
		return;
	for (i = 0; i < list->count; i++)
		if (list->piece[i].len > SHARE)
			list->piece[i].len = SHARE;
}

int64_t user_far_hold(struct user_request *r)
{
	struct user_far_list list;
	int64_t err;

	user_far_pieces(r, &list);
	err = list.err;
	if (is_lasting(r->nr))
		remove_if(r->u->far, is_replaced, r);
	cut_long_ones(r, &list);
	if (!err && list.count)
		err = hold_all(r, list.piece, list.count);
	free(list.piece);
	return err;
}

/* The call can't fail: if they can't be held, those who wait for them are not told. */
void user_far_hold_locks(struct user_request *r)
{
	struct user_far_list list;

	user_far_locks(r, &list);
	if (!list.err && list.count)
		hold_all(r, list.piece, list.count);
	free(list.piece);
}
