/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A space header without a space, and threads that act as tasks. The memory is
 * shared, so processes can act as tasks, too.
 */
#ifndef PVAS_TEST_FAKE_H
#define PVAS_TEST_FAKE_H

#include <sys/mman.h>
#include <unistd.h>

#include "header.h"
#include "private.h"

static inline struct pvas_header *fake_header(void)
{
	uint32_t entries = pvas_header_entries(PVAS_SHIFT_DEFAULT);
	struct pvas_header *h = mmap(NULL, pvas_header_length(entries), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	pvas_header_init(h, PVAS_SHIFT_DEFAULT);
	pvas_header_publish(h, 1, 1, entries - 2);
	return h;
}

/* In the module's order: state last on entry. */
static inline struct pvas_self fake_task(struct pvas_header *h, uint32_t index, uint32_t gen)
{
	struct pvas_part *p = pvas_header_part(h, index);
	struct pvas_self me = { h, index, gen };

	p->gen = gen;
	p->pid = getpid();
	__atomic_store_n(&p->state, PVAS_PART_RUNNING, __ATOMIC_RELEASE);
	return me;
}

static inline void fake_state(struct pvas_header *h, uint32_t index, uint32_t state)
{
	__atomic_store_n(&pvas_header_part(h, index)->state, state, __ATOMIC_RELEASE);
}

#endif /* PVAS_TEST_FAKE_H */
