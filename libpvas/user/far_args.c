// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: which memory a system call's arguments mean, for calls on far memory where the
 * kernel can't wait for the pager.
 *
 * The table has calls with buffers of any length, and those whose arguments point to pointers.
 * Of all others a pointer means a small structure or a path: a page is enough.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "far.h"
#include "rawsys.h"

#define SMALL	4096
#define VECTORS	1024	/* UIO_MAXIOV */
#define KEY_MAX	(1UL << 20)
#define STRING_MAX	(128UL << 10)	/* MAX_ARG_STRLEN */

#define STEP	64

/* The same as the last one, or its continuation, as strings are that lie in a row */
static int joins(const struct user_far_list *l, uint64_t addr, uint64_t len, int write)
{
	struct user_far_piece *last = l->count ? &l->piece[l->count - 1] : NULL;

	if (!last || last->write != write || addr < last->addr || addr > last->addr + last->len)
		return 0;
	if (addr + len > last->addr + last->len)
		last->len = addr + len - last->addr;
	return 1;
}

void user_far_add(struct user_far_list *l, uint64_t addr, uint64_t len, int write)
{
	struct user_far_piece *more;

	if (!len || l->err || !user_far_has(l->u, addr) || joins(l, addr, len, write))
		return;
	if (l->count == l->room) {
		more = realloc(l->piece, (l->room + STEP) * sizeof(*more));
		if (!more) {
			l->err = -ENOMEM;
			return;
		}
		l->piece = more;
		l->room += STEP;
	}
	l->piece[l->count++] = (struct user_far_piece){ addr, len, write };
}

/* Read the task's memory, which may be far itself. Returns whether all of it could be read. */
int user_far_fetch(const struct user_far_list *l, uint64_t from, void *to, size_t len)
{
	const struct pvas_far_ops *ops = l->u->far->ops;
	uint64_t held = user_far_has(l->u, from) ? ops->hold(from, len, 0) : 0;
	ssize_t n = user_caller_read(user_caller_self(), from, to, len);

	ops->release(from, held);
	return n == (ssize_t)len;
}

static void add_vectors(struct user_far_list *l, uint64_t at, uint64_t count, int write)
{
	struct iovec v;

	user_far_add(l, at, count * sizeof(v), 0);
	for (; count && count <= VECTORS && user_far_fetch(l, at, &v, sizeof(v));
	     count--, at += sizeof(v))
		user_far_add(l, (uint64_t)v.iov_base, v.iov_len, write);
}

static void add_message(struct user_far_list *l, uint64_t at, int write)
{
	struct msghdr m;

	user_far_add(l, at, sizeof(m), write);
	if (!user_far_fetch(l, at, &m, sizeof(m)))
		return;
	user_far_add(l, (uint64_t)m.msg_name, m.msg_namelen, write);
	user_far_add(l, (uint64_t)m.msg_control, m.msg_controllen, write);
	add_vectors(l, (uint64_t)m.msg_iov, m.msg_iovlen, write);
}

static void add_messages(struct user_far_list *l, uint64_t at, uint64_t count, int write)
{
	uint64_t i;

	user_far_add(l, at, count * sizeof(struct mmsghdr), 1);
	for (i = 0; i < count && i < VECTORS; i++)
		add_message(l, at + i * sizeof(struct mmsghdr), write);
}

/* With its end, which is found in steps that do not cross a page */
static void add_string(struct user_far_list *l, uint64_t at)
{
	char text[256];
	uint64_t from = at, n;
	const char *end = NULL;

	if (!user_far_has(l->u, at))
		return;
	for (; !end && from - at < STRING_MAX; from += n) {
		n = sizeof(text) - (from & (sizeof(text) - 1));
		if (!user_far_fetch(l, from, text, n))
			break;
		end = memchr(text, 0, n);
	}
	user_far_add(l, at, from - at, 0);
}

/* argv or envp: the array, then its strings, each of which can be anywhere */
static void add_strings(struct user_far_list *l, uint64_t list)
{
	uint64_t at, string;

	for (at = list; at && user_far_fetch(l, at, &string, sizeof(string));
	     at += sizeof(string)) {
		user_far_add(l, at, sizeof(string), 0);
		if (!string)
			break;
	}
	for (at = list; at && !l->err && user_far_fetch(l, at, &string, sizeof(string)) && string;
	     at += sizeof(string))
		add_string(l, string);
}

static void add_futexes(struct user_far_list *l, uint64_t at, uint64_t count)
{
	struct { uint64_t value, addr, flags; } w;

	user_far_add(l, at, count * sizeof(w), 0);
	for (; count && count <= 128 && user_far_fetch(l, at, &w, sizeof(w));
	     count--, at += sizeof(w))
		user_far_add(l, w.addr, sizeof(uint64_t), 1);
}

/* A handler's frame is written by the kernel. */
static void add_signal_stack(struct user_far_list *l, uint64_t at)
{
	stack_t s;

	if (at && user_far_fetch(l, at, &s, sizeof(s)) && !(s.ss_flags & SS_DISABLE))
		user_far_add(l, (uint64_t)s.ss_sp, s.ss_size, 1);
}

/* The last argument of pselect(): a pointer and its length */
static void add_signal_set(struct user_far_list *l, uint64_t at)
{
	uint64_t set[2];

	if (at && user_far_fetch(l, at, set, sizeof(set)))
		user_far_add(l, set[0], set[1], 0);
}

/* struct clone_args: where the kernel stores numbers, and a list that it reads */
static void add_clone(struct user_far_list *l, uint64_t at, uint64_t len)
{
	uint64_t c[10] = { 0 };

	if (!user_far_fetch(l, at, c, len < sizeof(c) ? len : sizeof(c)))
		return;
	user_far_add(l, c[1], sizeof(int), 1);	/* pidfd, child_tid, parent_tid */
	user_far_add(l, c[2], sizeof(int), 1);
	user_far_add(l, c[3], sizeof(int), 1);
	user_far_add(l, c[8], c[9] < 64 ? c[9] * sizeof(int) : 0, 0);	/* set_tid */
}

/* The semaphores of a set, of which the kernel alone knows how many they are */
static void add_semaphores(struct user_far_list *l, const uint64_t *a)
{
	struct semid_ds ds;

	if ((a[2] == GETALL || a[2] == SETALL) &&
	    !pvas_raw4(__NR_semctl, (int)a[0], 0, IPC_STAT, &ds))
		user_far_add(l, a[3], ds.sem_nsems * sizeof(unsigned short), a[2] == GETALL);
}

static void add_key(struct user_far_list *l, const uint64_t *a)
{
	int write = a[0] == KEYCTL_READ || a[0] == KEYCTL_DESCRIBE || a[0] == KEYCTL_GET_SECURITY;

	/* No key is longer. */
	if (write || a[0] == KEYCTL_INSTANTIATE)
		user_far_add(l, a[2], a[3] < KEY_MAX ? a[3] : KEY_MAX, write);
}

static void add_option(struct user_far_list *l, const uint64_t *a)
{
	int filter = (int)a[1] == SOL_SOCKET && (int)a[2] == SO_GET_FILTER, len;

	user_far_add(l, a[4], sizeof(len), 1);
	if (user_far_fetch(l, a[4], &len, sizeof(len)) && len > 0)
		user_far_add(l, a[3], (uint64_t)len * (filter ? sizeof(struct sock_filter) : 1), 1);
}

/*
 * Calls whose arguments point to pointers, or whose lengths are no arguments. Returns 0 if the
 * other arguments count, too.
 */
static int add_indirect(struct user_far_list *l, const struct user_request *r)
{
	const uint64_t *a = r->args;

	switch (r->nr) {
	case __NR_readv:
	case __NR_preadv:
	case __NR_preadv2:
		add_vectors(l, a[1], a[2], 1);
		return 1;
	case __NR_writev:
	case __NR_pwritev:
	case __NR_pwritev2:
	case __NR_vmsplice:
		add_vectors(l, a[1], a[2], r->nr == __NR_vmsplice);
		return 1;
	case __NR_process_vm_readv:
	case __NR_process_vm_writev:
		add_vectors(l, a[1], a[2], r->nr == __NR_process_vm_readv);
		/* Of a peer, its far memory */
		add_vectors(l, a[3], a[4], r->nr == __NR_process_vm_writev);
		return 1;
	case __NR_sendmsg:
	case __NR_recvmsg:
		add_message(l, a[1], r->nr == __NR_recvmsg);
		return 1;
	case __NR_sendmmsg:
	case __NR_recvmmsg:
		add_messages(l, a[1], a[2], r->nr == __NR_recvmmsg);
		return 1;
	case __NR_execve:
	case __NR_execveat:
		add_strings(l, a[r->nr == __NR_execveat ? 2 : 1]);
		add_strings(l, a[r->nr == __NR_execveat ? 3 : 2]);
		return 0;
	case __NR_pselect6:
		add_signal_set(l, a[5]);
		return 0;
	case __NR_clone3:
		add_clone(l, a[0], a[1]);
		return 0;
	case __NR_sigaltstack:
		add_signal_stack(l, a[0]);
		return 0;
	case __NR_semctl:
		add_semaphores(l, a);
		return 0;
	case __NR_keyctl:
		add_key(l, a);
		return 0;
	case __NR_getsockopt:
		add_option(l, a);
		return 0;
	case NR_FUTEX_WAITV:
		add_futexes(l, a[0], a[1]);
		return 1;
	default:
		return 0;
	}
}

/**
 * struct buffer - an argument that points to a buffer whose length is another one
 * @nr:		system call
 * @arg:	the pointer
 * @len:	the length
 * @unit:	what that counts, in bytes
 * @write:	the kernel writes there
 */
static const struct buffer {
	int nr;
	unsigned char arg, len, unit, write;
} buffers[] = {
	{ __NR_read, 1, 2, 1, 1 },
	{ __NR_pread64, 1, 2, 1, 1 },
	{ __NR_write, 1, 2, 1, 0 },
	{ __NR_pwrite64, 1, 2, 1, 0 },
	{ __NR_recvfrom, 1, 2, 1, 1 },
	{ __NR_sendto, 1, 2, 1, 0 },
	PVAS_OLD_CALL({ __NR_getdents, 1, 2, 1, 1 },)
	{ __NR_getdents64, 1, 2, 1, 1 },
	{ __NR_getrandom, 0, 1, 1, 1 },
	{ __NR_getcwd, 0, 1, 1, 1 },
	PVAS_OLD_CALL({ __NR_readlink, 1, 2, 1, 1 },)
	{ __NR_readlinkat, 2, 3, 1, 1 },
	{ __NR_getxattr, 2, 3, 1, 1 },
	{ __NR_lgetxattr, 2, 3, 1, 1 },
	{ __NR_fgetxattr, 2, 3, 1, 1 },
	{ __NR_setxattr, 2, 3, 1, 0 },
	{ __NR_lsetxattr, 2, 3, 1, 0 },
	{ __NR_fsetxattr, 2, 3, 1, 0 },
	{ __NR_listxattr, 1, 2, 1, 1 },
	{ __NR_llistxattr, 1, 2, 1, 1 },
	{ __NR_flistxattr, 1, 2, 1, 1 },
	PVAS_OLD_CALL({ __NR_poll, 0, 1, sizeof(struct pollfd), 1 },)
	{ __NR_ppoll, 0, 1, sizeof(struct pollfd), 1 },
	PVAS_OLD_CALL({ __NR_epoll_wait, 1, 2, sizeof(struct epoll_event), 1 },)
	{ __NR_epoll_pwait, 1, 2, sizeof(struct epoll_event), 1 },
	{ __NR_epoll_pwait2, 1, 2, sizeof(struct epoll_event), 1 },
	{ __NR_getgroups, 1, 0, sizeof(gid_t), 1 },
	{ __NR_setgroups, 1, 0, sizeof(gid_t), 0 },
	{ __NR_semop, 1, 2, sizeof(struct sembuf), 0 },
	{ __NR_semtimedop, 1, 2, sizeof(struct sembuf), 0 },
	{ __NR_msgsnd, 1, 2, 1, 0 },
	{ __NR_msgrcv, 1, 2, 1, 1 },
	{ __NR_mq_timedsend, 1, 2, 1, 0 },
	{ __NR_mq_timedreceive, 1, 2, 1, 1 },
	{ __NR_setsockopt, 3, 4, 1, 0 },
	{ __NR_sched_getaffinity, 2, 1, 1, 1 },
	{ __NR_sched_setaffinity, 2, 1, 1, 0 },
	{ __NR_syslog, 1, 2, 1, 1 },
	{ __NR_add_key, 2, 3, 1, 0 },
	{ __NR_init_module, 0, 1, 1, 0 },
	{ __NR_mincore, 2, 1, 1, 1 },
	{ __NR_move_pages, 2, 1, 8, 0 },
	{ __NR_move_pages, 3, 1, 4, 0 },
	{ __NR_move_pages, 4, 1, 4, 1 },
	{ NR_STATMOUNT, 1, 2, 1, 1 },
	{ NR_LISTMOUNT, 1, 2, 8, 1 },
};

/* The length of argument @arg; @write: does the kernel write there? */
static uint64_t length_of(const struct user_request *r, unsigned int arg, int *write)
{
	uint64_t len;
	size_t i;

	*write = 1;
	for (i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++) {
		if (buffers[i].nr != r->nr || buffers[i].arg != arg)
			continue;
		*write = buffers[i].write;
		len = r->args[buffers[i].len];
		if (r->nr == __NR_mincore)
			len = len / PAGE + 1;
		/* System V messages begin with a word that is not counted. */
		if (r->nr == __NR_msgsnd || r->nr == __NR_msgrcv)
			len += sizeof(long);
		return len < 1ULL << 47 ? len * buffers[i].unit : 0;
	}
	return SMALL;
}

void user_far_pieces(const struct user_request *r, struct user_far_list *list)
{
	unsigned int i;
	uint64_t len;
	int write;

	*list = (struct user_far_list){ .u = r->u };
	if (add_indirect(list, r))
		return;
	for (i = 0; i < 6; i++) {
		len = length_of(r, i, &write);
		user_far_add(list, r->args[i], len, write);
	}
}
