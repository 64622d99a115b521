// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Places in the stores whose contents nobody needs any more. A thread of its own tells the stores,
 * many places in a row at once: so nobody who frees memory waits for a store, and none is called
 * with the lock held. A put makes it needless; one that is under way is waited for by the put, as
 * stores have no order among operations. At the end the rest goes with the stores.
 */
#include <errno.h>
#include <stdlib.h>

#include "far.h"
#include "store.h"

enum { BITS = 64, MOST = 1024 /* places at once: a put waits for as many, at most */ };

int far_discards_open(uint64_t places)
{
	far.stale_words = (places + BITS - 1) / BITS;
	far.stale = calloc(far.stale_words, sizeof(*far.stale));
	return far.stale ? 0 : far_fail(-ENOMEM, "no memory for a table of places");
}

void far_discards_close(void)
{
	free(far.stale);
	far.stale = NULL;
}

static bool is_stale(uint64_t place)
{
	return place / BITS < far.stale_words && far.stale[place / BITS] >> place % BITS & 1;
}

static void forget(uint64_t place)
{
	far.stale[place / BITS] &= ~(1ULL << place % BITS);
	far.stale_count--;
}

void far_discard(uint64_t place)
{
	if (is_stale(place))
		return;
	far.stale[place / BITS] |= 1ULL << place % BITS;
	far.stale_count++;
	pthread_cond_signal(&far.discard);
}

void far_discard_none(uint64_t place)
{
	while (place - far.discarding < far.discards)
		far_wait();
	if (is_stale(place))
		forget(place);
}

/* The next places in a row: how many */
static uint64_t take(uint64_t *first)
{
	uint64_t word = far.stale_at, n, count;

	while (!far.stale[word])
		word = (word + 1) % far.stale_words;
	far.stale_at = word;
	n = word * BITS + (uint64_t)__builtin_ctzll(far.stale[word]);
	for (count = 0; count < MOST && is_stale(n + count); count++)
		forget(n + count);
	*first = n;
	return count;
}

bool far_discard_work(void)
{
	if (!far.stale_count)
		return false;
	far.discards = take(&far.discarding);
	pthread_mutex_unlock(&far.lock);
	far_stripe_discard(&far.stripe, far.discarding, far.discards);
	pthread_mutex_lock(&far.lock);
	far.discards = 0;
	far_changed();
	return true;
}
