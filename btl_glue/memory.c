// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory for communication: the counters of how much this process holds, and the budget.
 *
 * Endpoints take what they need of the budget, then room is kept for the fragments of an
 * exchange with all peers, and fast boxes get the rest, so that such an exchange takes a
 * rank of a large job no more than one of a small job. A rank of few peers may have more
 * fragments: as many as a peer that shares our processor can read in its turn.
 */
#include "btl_pvas.h"

#include <sys/mman.h>

#define component mca_btl_pvas_component

void mca_btl_pvas_account(long bytes)
{
	struct mca_btl_pvas_counters *c = &component.counters;

	c->bytes_held += bytes;
	if (c->bytes_most < c->bytes_held)
		c->bytes_most = c->bytes_held;
}

void *mca_btl_pvas_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* A fork child has no use for it, and copy-on-write would cost us page faults. */
	madvise(p, bytes, MADV_DONTFORK);
	mca_btl_pvas_account(bytes);
	return p;
}

void mca_btl_pvas_unmap(void *p, size_t bytes)
{
	munmap(p, bytes);
	mca_btl_pvas_account(-(long)bytes);
}

static size_t subtract(size_t value, size_t taken)
{
	return value > taken ? value - taken : 0;
}

/* Endpoints have come; the caller holds the component's lock. */
void mca_btl_pvas_share_budget(void)
{
	const int few = component.frag_max / 8;
	const int peers = component.nr_peers ? component.nr_peers : 1;

	component.small_limit = mca_btl_pvas_clamp(MCA_BTL_PVAS_MIN_FRAGS,
						   few + 2 * component.frag_max / peers,
						   component.frag_max);
}

/* Fragments for which fast boxes leave room */
static size_t reserved_bytes(void)
{
	size_t frags = mca_btl_pvas_clamp(MCA_BTL_PVAS_MIN_FRAGS, 2 * component.nr_peers,
					  component.small_limit);

	/* malloc() adds 16 bytes. */
	return frags * (MCA_BTL_PVAS_SMALL_FRAG + 16);
}

static size_t half_of(size_t fbox)
{
	fbox /= 2;
	return fbox > MCA_BTL_PVAS_PAGE ? fbox & ~(size_t)(MCA_BTL_PVAS_PAGE - 1) : fbox;
}

/*
 * The size of the next fast box: the first peers get large ones, and many peers get one.
 * 0: there are enough of them. One is always allowed.
 */
size_t mca_btl_pvas_next_fbox_bytes(void)
{
	const unsigned int allowed = component.fbox_max - component.nr_fboxes_in;
	size_t taken = component.endpoint_bytes + component.fbox_bytes + reserved_bytes();
	size_t left = subtract(component.budget, taken);
	size_t bytes = component.fbox_size;

	if (!allowed)
		return 0;
	while (bytes > MCA_BTL_PVAS_MIN_FBOX && bytes > (allowed > 1 ? left / 2 : left))
		bytes = half_of(bytes);
	return bytes <= left || !component.nr_fboxes_in ? bytes : 0;
}
