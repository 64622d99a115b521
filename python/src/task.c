// SPDX-License-Identifier: LGPL-2.1-or-later
/* The block that each task of Python shows to its peers, and how they find it. */
#include "task.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"

struct task_block task_block;

/* Kept for the child of a fork, where libpvas no longer knows a space */
static struct {
	struct task_id self;
	unsigned int first, last;
	uintptr_t own, begin, end;
	uint64_t size;
} here;

int task_init(void)
{
	struct pvas_task_info info = { 0 };
	int index = pvas_task_get_index();
	void *base;

	if (index < 0)
		return 0;
	if (pvas_task_get((unsigned int)index, &info) ||
	    pvas_space_get_bounds(NULL, &here.first, &here.last, &here.size))
		return -ESRCH;
	here.self = (struct task_id){ info.index, info.gen };
	here.own = (uintptr_t)info.base;
	pvas_partition_get(here.first, &base, NULL);
	here.begin = (uintptr_t)base;
	pvas_partition_get(here.last, &base, NULL);
	here.end = (uintptr_t)base + here.size;
	__atomic_store_n(&task_block.magic, TASK_MAGIC, __ATOMIC_RELEASE);
	return pvas_name_export(TASK_NAME, &task_block) ?: 1;
}

int task_attached(void)
{
	return pvas_task_get_index() >= 0;
}

struct task_id task_self(void)
{
	return here.self;
}

int task_is_foreign(const void *addr)
{
	uintptr_t at = (uintptr_t)addr;

	return at >= here.begin && at < here.end && at - here.own >= here.size;
}

unsigned int task_index_at(const void *addr)
{
	return here.first + (unsigned int)(((uintptr_t)addr - here.begin) / here.size);
}

/* ---- ranks ---- */

static int usable(unsigned int index)
{
	struct pvas_task_info info;

	return !pvas_task_get(index, &info) && info.state != PVAS_TASK_RESERVED;
}

int task_rank_of(unsigned int index)
{
	unsigned int i;
	int rank = 0;

	if (!here.size || index < here.first || index > here.last)
		return -1;
	for (i = here.first; i < index; i++)
		rank += usable(i);
	return rank;
}

int task_index_of(unsigned int rank)
{
	unsigned int i;

	for (i = here.first; here.size && i <= here.last; i++)
		if (usable(i) && !rank--)
			return (int)i;
	return -1;
}

/* ---- peers ---- */

struct task_block *task_block_of(unsigned int index, struct task_id *id)
{
	struct pvas_task_info info;
	struct task_block *block;
	uint64_t magic;
	void *ptr;

	if (pvas_task_get(index, &info) || info.state != PVAS_TASK_RUNNING)
		return NULL;
	if (pvas_name_import(index, TASK_NAME, &ptr) < 0)
		return NULL;
	block = ptr;
	*id = (struct task_id){ index, info.gen };
	if (guard_copy(&magic, &block->magic, sizeof(magic)) || magic != TASK_MAGIC)
		return NULL;
	return block;
}

int task_ended(struct task_id id)
{
	struct pvas_task_info info;

	if (pvas_task_get(id.index, &info))
		return 1;
	/* a partition that has had no task yet may get one */
	if (!info.gen)
		return 0;
	if (id.gen && info.gen != id.gen)
		return 1;
	return info.state != PVAS_TASK_RUNNING && info.state != PVAS_TASK_STARTING;
}

static bool is_leaving(const struct task_block *block)
{
	uint32_t leaving;

	return guard_copy(&leaving, &block->leaving, sizeof(leaving)) || leaving;
}

int task_leaving(struct task_id id)
{
	struct task_block *block = task_block_of(id.index, &id);

	return block && is_leaving(block);
}

/* ---- what is held ---- */

static int take_slot(struct task_slots *slots, uint64_t address, uint64_t **slot)
{
	uint64_t none;
	int i;

	for (i = 0; i < TASK_SLOTS; i++) {
		none = 0;
		if (__atomic_compare_exchange_n(&slots->held[i], &none, address, 0,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
			*slot = &slots->held[i];
			return 1;
		}
	}
	return 0;
}

/* Called under the GIL: only one thread adds slots. */
int task_hold(uint64_t address, uint64_t **slot)
{
	struct task_slots *slots = &task_block.slots, *more;

	while (!take_slot(slots, address, slot)) {
		if (!slots->next) {
			more = calloc(1, sizeof(*more));
			if (!more)
				return -ENOMEM;
			__atomic_store_n(&slots->next, more, __ATOMIC_RELEASE);
		}
		slots = slots->next;
	}
	return 0;
}

void task_release(uint64_t *slot, struct task_block *owner, struct task_id id)
{
	struct pvas_task_info info;
	uint32_t waiters = 0;
	int failed;

	__atomic_store_n(slot, 0, __ATOMIC_SEQ_CST);
	if (owner != &task_block && (pvas_task_get(id.index, &info) || info.gen != id.gen ||
				     info.state != PVAS_TASK_RUNNING))
		return;
	GUARDED(failed, {
		__atomic_fetch_add(&owner->released, 1, __ATOMIC_SEQ_CST);
		waiters = __atomic_load_n(&owner->waiters, __ATOMIC_SEQ_CST);
	});
	if (!failed && waiters)
		task_wake(&owner->released, INT_MAX);
}

struct list {
	uint64_t *all;
	size_t nr, room;
};

static int add(struct list *list, uint64_t address)
{
	uint64_t *more;

	if (list->nr == list->room) {
		list->room = list->room ? 2 * list->room : 64;
		more = reallocarray(list->all, list->room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		list->all = more;
	}
	list->all[list->nr++] = address;
	return 0;
}

/* A task that ends meanwhile holds nothing. */
static int add_held(struct list *list, const struct task_block *block)
{
	const struct task_slots *slots;
	struct task_slots copy;
	int i, err = 0;

	for (slots = &block->slots; slots && !err; slots = copy.next) {
		if (guard_copy(&copy, slots, sizeof(copy)))
			return 0;
		for (i = 0; i < TASK_SLOTS && !err; i++)
			if (copy.held[i])
				err = add(list, copy.held[i]);
	}
	return err;
}

static int add_all(struct list *list, struct pvas_task_info *tasks, int nr, bool working)
{
	struct task_block *block;
	struct task_id id;
	int i, err = 0;

	for (i = 0; i < nr && !err; i++) {
		if (tasks[i].index == here.self.index)
			continue;
		block = task_block_of(tasks[i].index, &id);
		if (block && !(working && is_leaving(block)))
			err = add_held(list, block);
	}
	return err;
}

int task_held(uint64_t **all, bool working)
{
	size_t room = here.size ? here.last - here.first + 1 : 0;
	struct pvas_task_info *tasks = calloc(room + 1, sizeof(*tasks));
	struct list list = { 0 };
	int nr, err;

	if (!tasks)
		return -ENOMEM;
	/* After a name was withdrawn: who has not seen that has the address in a slot. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	err = working ? 0 : add_held(&list, &task_block);
	nr = err || !task_attached() ? 0 : pvas_task_list(NULL, tasks, room);
	if (!err)
		err = nr < 0 ? nr : add_all(&list, tasks, nr, working);
	free(tasks);
	if (err) {
		free(list.all);
		return err;
	}
	*all = list.all;
	return (int)list.nr;
}

/* ---- waiting: tasks share one mm, so private futexes do ---- */

void task_wait(uint32_t *word, uint32_t value, int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &ts, NULL, 0);
}

void task_wake(uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}
