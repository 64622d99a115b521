// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: robust mutexes in far memory. When a thread ends, the kernel tells those who wait
 * for its mutexes; but it brings no page in for a thread that ends, whoever serves the
 * faults. So the pages of the mutexes that it holds are held before, and until it is gone.
 */
#include <dirent.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "far.h"

#define LOCKS_MAX	2048	/* ROBUST_LIST_LIMIT of the kernel */
#define INHERITS	1UL	/* of a pointer to a mutex: with priority inheritance */

/* The list's next pointer, and the mutex's word */
static void add_lock(struct user_far_list *list, uint64_t lock, long offset)
{
	user_far_add(list, lock & ~INHERITS, sizeof(struct robust_list), 1);
	user_far_add(list, (lock & ~INHERITS) + (uint64_t)offset, sizeof(uint32_t), 1);
}

static void add_locks(struct user_far_list *list, pid_t tid)
{
	struct robust_list_head head;
	uint64_t at = 0, lock, next;
	size_t len = 0;
	int i;

	if (syscall(__NR_get_robust_list, tid, &at, &len) || !at || len != sizeof(head) ||
	    !user_far_fetch(list, at, &head, sizeof(head)))
		return;
	user_far_add(list, at, sizeof(head), 1);
	if (head.list_op_pending)
		add_lock(list, (uint64_t)head.list_op_pending, head.futex_offset);
	lock = (uint64_t)head.list.next;
	for (i = 0; i < LOCKS_MAX && (lock & ~INHERITS) != at; i++, lock = next) {
		if (!user_far_fetch(list, lock & ~INHERITS, &next, sizeof(next)))
			return;
		add_lock(list, lock, head.futex_offset);
	}
}

/* All threads of the process end. */
static void add_all_locks(struct user_far_list *list, pid_t tid)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", tid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (atoi(entry->d_name) > 0)
			add_locks(list, atoi(entry->d_name));
	if (dir)
		closedir(dir);
}

void user_far_locks(const struct user_request *r, struct user_far_list *list)
{
	*list = (struct user_far_list){ .u = r->u };
	if (r->nr == __NR_exit)
		add_locks(list, r->tid);
	else
		add_all_locks(list, r->tid);
}
