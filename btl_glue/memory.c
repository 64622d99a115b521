// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory for communication: the counters of how much this process holds, and the budget.
 *
 * Endpoints take what they need of the budget; fast boxes and small fragments share the
 * rest, so a rank's total does not grow with the job. Fast boxes leave room for one
 * fragment for each peer, up to half of free_list_max, or of what endpoints leave: with
 * two of them in all, an all-to-all of 16 ranks takes a fifth longer.
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

/* What malloc() adds to each fragment */
#define FRAG_BYTES (MCA_BTL_PVAS_SMALL_FRAG + MCA_BTL_PVAS_MALLOC_BYTES)

static size_t subtract(size_t value, size_t taken)
{
	return value > taken ? value - taken : 0;
}

/* Without endpoints */
static size_t budget(void)
{
	return subtract(component.budget, component.endpoint_bytes);
}

static size_t left_in_budget(void)
{
	return subtract(budget(), component.fbox_bytes);
}

/* Fragments for which fast boxes leave room */
static size_t reserved_frags(void)
{
	size_t most = mca_btl_pvas_clamp(component.frag_max / 8, budget() / 2 / FRAG_BYTES,
					 component.frag_max / 2);

	return mca_btl_pvas_clamp(MCA_BTL_PVAS_MIN_FRAGS, component.nr_peers,
				  most > MCA_BTL_PVAS_MIN_FRAGS ? most : MCA_BTL_PVAS_MIN_FRAGS);
}

/* Endpoints or fast boxes have come or gone; the caller holds the component's lock. */
void mca_btl_pvas_share_budget(void)
{
	component.small_limit = mca_btl_pvas_clamp(
		reserved_frags(), left_in_budget() / FRAG_BYTES, component.frag_max);
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
	size_t frags = mca_btl_pvas_clamp(reserved_frags(), component.nr_small,
					  component.frag_max);
	size_t left = subtract(left_in_budget(), frags * FRAG_BYTES);
	size_t bytes = component.fbox_size;

	if (!allowed)
		return 0;
	while (bytes > MCA_BTL_PVAS_MIN_FBOX && bytes > (allowed > 1 ? left / 2 : left))
		bytes = half_of(bytes);
	return bytes <= left || !component.nr_fboxes_in ? bytes : 0;
}
