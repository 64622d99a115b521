// SPDX-License-Identifier: LGPL-2.1-or-later
/* The public functions that start and end the pager, and allocate and free. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api.h"
#include "far.h"
#include "store.h"

struct far_pager far = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.fetch = PTHREAD_COND_INITIALIZER,
	.discard = PTHREAD_COND_INITIALIZER,
};

int far_check(void)
{
	far_fail(0, "%s", "");
	if (!far.pid)
		return far_fail(-ESRCH, "there is no pager (pvas_far_open)");
	if (far.pid != getpid())
		return far_fail(-ECHILD, "a child of fork() has no far memory");
	return 0;
}

int far_range_get(const void *addr, size_t size, uint64_t *first, uint64_t *end)
{
	uint64_t n, last;

	*first = *end = far_page_at((uintptr_t)addr);
	last = size ? far_page_at((uintptr_t)addr + size - 1) : *first;
	if (*first == far.pages || last == far.pages || last < *first)
		return far_fail(-EINVAL, "not far memory");
	*end = size ? last + 1 : *first;
	for (n = *first; n < *end; n++)
		if (far.page[n].state == FAR_FREE)
			return far_fail(-EINVAL, "not all of it is allocated far memory");
	return 0;
}

/* All but the threads */
static int set_up(const struct far_config *c)
{
	int err = far_uffd_open(&far.uffd, c->user_only);

	if (err)
		return err;
	far.protocol = c->protocol;
	far.uffd.late_wake = far_exchanges();
	err = far_memory_map(c);
	if (err)
		goto err_uffd;
	err = far_stripe_open(&far.stripe, c->stores, c->copies, far.page_size,
			      (c->size + c->page - 1) / c->page);
	if (err)
		goto err_memory;
	err = far_discards_open((c->size + c->page - 1) / c->page);
	if (!err)
		return 0;
	far_stripe_close(&far.stripe);
err_memory:
	far_memory_unmap();
err_uffd:
	far_uffd_close(&far.uffd);
	return err;
}

/* As before pvas_far_open() */
static void reset(void)
{
	far = (struct far_pager){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
		.work = PTHREAD_COND_INITIALIZER,
	.fetch = PTHREAD_COND_INITIALIZER,
		.discard = PTHREAD_COND_INITIALIZER,
	};
}

static void tear_down(void)
{
	far_suspend_close();
	far_memory_unmap();
	far_uffd_close(&far.uffd);
	far_stripe_close(&far.stripe);
	far_discards_close();
	reset();
}

int far_pager_open(const struct far_config *config)
{
	int err = set_up(config);

	if (err) {
		reset();
		return err;
	}
	far.threads = config->threads;
	err = far_exchanges() ? far_suspend_open() : 0;
	if (!err)
		err = far_threads_start();
	if (err)
		tear_down();
	else
		far.pid = getpid();
	return err;
}

bool far_pager_close(int seconds)
{
	bool stopped = far_threads_stop(seconds);

	if (stopped)
		tear_down();
	return stopped;
}

FAR_PUBLIC int pvas_far_open(const struct pvas_far_attr *attr)
{
	struct far_config config;
	int err;

	far_fail(0, "%s", "");
	if (far.pid)
		return far.pid == getpid() ? far_fail(-EBUSY, "there is a pager already") : far_check();
	err = far_config_get(&config, attr);
	return err ? err : far_pager_open(&config);
}

FAR_PUBLIC int pvas_far_close(void)
{
	int err = far_check();

	if (!err)
		far_pager_close(-1);
	return err;
}

/* The first of @count free pages in a row, from @from on; far.pages if there are none */
static uint64_t find_free(uint64_t count)
{
	uint64_t n, run = 0;

	for (n = 0; n < far.pages; n++) {
		run = far.page[n].state == FAR_FREE ? run + 1 : 0;
		if (run == count)
			return n + 1 - count;
	}
	return far.pages;
}

static void mark(uint64_t first, uint64_t count, enum far_state state)
{
	uint64_t n;

	for (n = first; n < first + count; n++)
		far.page[n] = (struct far_page){ .state = (uint8_t)state };
}

FAR_PUBLIC int pvas_far_alloc(void **addr, size_t size)
{
	uint64_t count, first;
	int err = far_check();

	if (err)
		return err;
	if (!size)
		return far_fail(-EINVAL, "an allocation of 0 bytes");
	count = (size - 1) / far.page_size + 1;
	pthread_mutex_lock(&far.lock);
	first = find_free(count);
	if (first == far.pages) {
		err = far_fail(-ENOMEM, "no %zu bytes of far memory in a row are free", size);
	} else if (mprotect(far_page_addr(first), count * far.page_size, PROT_READ | PROT_WRITE)) {
		err = far_fail(-ENOMEM, "mprotect: %s", strerror(errno));
	} else {
		mark(first, count, FAR_EMPTY);
		far.page[first].flags = FAR_START;
		far.allocated += count;
		*addr = far_page_addr(first);
	}
	pthread_mutex_unlock(&far.lock);
	return err;
}

/* The pages of the allocation that begins at @first */
static uint64_t length(uint64_t first)
{
	uint64_t n = first + 1;

	while (n < far.pages && far.page[n].state != FAR_FREE && !(far.page[n].flags & FAR_START))
		n++;
	return n - first;
}

void far_range_empty(uint64_t first, uint64_t count)
{
	uint64_t n;

	for (n = first; n < first + count; n++) {
		far_page_wait(n);
		far_page_forget(n);
	}
	/* Busy, all of them: nobody puts a page there meanwhile. */
	pthread_mutex_unlock(&far.lock);
	far_uffd_drop(far_page_addr(first), count * far.page_size);
	pthread_mutex_lock(&far.lock);
}

static void unpin_all(uint64_t first, uint64_t count)
{
	uint64_t n;

	for (n = first; n < first + count; n++)
		far.pinned -= far.page[n].pins != 0;
}

FAR_PUBLIC int pvas_far_free(void *addr)
{
	uint64_t first, end, count;
	int err = far_check();

	if (err || !addr)
		return err;
	pthread_mutex_lock(&far.lock);
	err = far_range_get(addr, 1, &first, &end);
	if (!err && (far_page_addr(first) != addr || !(far.page[first].flags & FAR_START)))
		err = far_fail(-EINVAL, "not the address of an allocation");
	if (!err) {
		count = length(first);
		/* Before: whoever touches it from now on gets a signal. */
		mprotect(addr, count * far.page_size, PROT_NONE);
		far_range_empty(first, count);
		unpin_all(first, count);
		mark(first, count, FAR_FREE);
		far.allocated -= count;
		far_uffd_wake(&far.uffd, addr, count * far.page_size);
		far_changed();
	}
	pthread_mutex_unlock(&far.lock);
	return err;
}
