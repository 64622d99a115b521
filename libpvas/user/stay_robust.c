// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: an execve() that stays in the space: robust mutexes that the thread holds, in
 * memory of others. As the kernel at an execve(), which trusts the list of them no more than that.
 */
#include <linux/futex.h>
#include <stddef.h>
#include <sys/uio.h>

#include "rawsys.h"
#include "stay.h"

#define LOCKS_MAX	2048	/* ROBUST_LIST_LIMIT */
#define INHERITS	1UL	/* of a pointer to a mutex: with priority inheritance */

/* Copy from memory of the task's, which may not be there. A sandbox may forbid to ask. */
static int peek(uint64_t from, void *to, size_t len)
{
	struct iovec here = { to, len }, there = { (void *)from, len };
	long n = pvas_raw6(__NR_process_vm_readv, pvas_raw0(__NR_gettid), (long)&here, 1,
			   (long)&there, 1, 0);

	if (n == -EPERM || n == -ENOSYS) {
		__builtin_memcpy(to, (void *)from, len);
		return 1;
	}
	return n == (long)len;
}

/* Its address; 0: there is none */
static uint64_t read_head(struct robust_list_head *head)
{
	uint64_t at = 0;
	size_t len = 0;

	if (pvas_raw3(__NR_get_robust_list, 0, &at, &len) || !at || !peek(at, head, sizeof(*head)))
		return 0;
	return at;
}

/* The next one. 0: it was the last one */
static uint64_t next_of(uint64_t lock, uint64_t head)
{
	uint64_t next = 0;

	if (!peek(lock & ~INHERITS, &next, sizeof(next)) || (next & ~INHERITS) == head)
		return 0;
	return next;
}

int user_stay_inherits_priority(void)
{
	struct robust_list_head head;
	uint64_t at = read_head(&head), lock;
	int i, found;

	found = at && ((uint64_t)head.list_op_pending & INHERITS);
	lock = at ? next_of(at, at) : 0;
	for (i = 0; i < LOCKS_MAX && lock && !found; i++) {
		found = (lock & INHERITS) != 0;
		lock = next_of(lock, at);
	}
	return found;
}

/* Its owner has died. */
static void give_up(uint64_t lock, long offset)
{
	const uint32_t tid = (uint32_t)pvas_raw0(__NR_gettid);
	uint32_t *word = (uint32_t *)((lock & ~INHERITS) + offset), dead, old;

	if (!peek((uint64_t)word, &old, sizeof(old)))
		return;
	do {
		if ((old & FUTEX_TID_MASK) != tid)
			return;
		dead = (old & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
	} while (!__atomic_compare_exchange_n(word, &old, dead, 0, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
	if (old & FUTEX_WAITERS)
		pvas_raw3(__NR_futex, word, FUTEX_WAKE, 1);
}

/* If it was released already, a waiter may have to be woken yet. */
static void give_up_pending(uint64_t lock, long offset)
{
	uint32_t *word = (uint32_t *)((lock & ~INHERITS) + offset), old = 1;

	give_up(lock, offset);
	if (peek((uint64_t)word, &old, sizeof(old)) && !old && !(lock & INHERITS))
		pvas_raw3(__NR_futex, word, FUTEX_WAKE, 1);
}

/* The one that the thread was about to take or release may be in the list or not. */
void user_stay_give_up_locks(void)
{
	struct robust_list_head head;
	uint64_t at = read_head(&head), lock, pending;
	int i;

	if (!at)
		return;
	pending = (uint64_t)head.list_op_pending;
	lock = next_of(at, at);
	for (i = 0; i < LOCKS_MAX && lock; i++) {
		uint64_t next = next_of(lock, at);

		give_up(lock, head.futex_offset);
		lock = next;
	}
	if (pending)
		give_up_pending(pending, head.futex_offset);
	pvas_raw2(__NR_set_robust_list, NULL, sizeof(head));
}
