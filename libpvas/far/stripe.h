/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Several stores as one: page p is in store p mod n, and its second copy, if there is one,
 * in the store after that. Thread-safe as the stores are; see store.h.
 */
#ifndef PVAS_FAR_STRIPE_H
#define PVAS_FAR_STRIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pvas_far.h"
#include "store.h"

/* Pages in all operations of one far_stripe_together() */
enum { FAR_TOGETHER = 64 };

/**
 * struct far_stripe - the stores of the pager
 * @store:	them
 * @failed:	the store failed, and second copies are used in its place
 * @name:	as the user named it, for messages
 * @abandoned:	no page is needed any more: see far_stripe_abandon()
 * @rows:	pages that each has for first copies; second copies follow
 */
struct far_stripe {
	struct far_store *store[PVAS_FAR_STORES_MAX];
	bool failed[PVAS_FAR_STORES_MAX];
	bool abandoned;
	char *name[PVAS_FAR_STORES_MAX];
	unsigned int count;
	unsigned int copies;
	size_t page_size;
	uint64_t rows;
};

int far_stripe_open(struct far_stripe *s, const char *specs, unsigned int copies,
		    size_t page_size, uint64_t pages);
int far_stripe_put(struct far_stripe *s, uint64_t first, uint64_t count, const void *buf);
int far_stripe_get(struct far_stripe *s, uint64_t first, uint64_t count, void *buf);
/* Several runs at once, of FAR_TOGETHER pages in all: see @together of the stores */
int far_stripe_together(struct far_stripe *s, const struct far_io *ios, unsigned int count);
void far_stripe_discard(struct far_stripe *s, uint64_t first, uint64_t count);
void far_stripe_abandon(struct far_stripe *s);	/* all that is under way fails, silently */
uint64_t far_stripe_held(struct far_stripe *s);
void far_stripe_close(struct far_stripe *s);

#endif
