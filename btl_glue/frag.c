// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fragments. One holds a message's header, or data that had to be packed; a short
 * message needs none (see mca_btl_pvas_sendi()). Small fragments are kept for reuse
 * for a while; a larger one is freed as soon as it is complete.
 */
#include "btl_pvas.h"

#include <stdlib.h>

#include "clock.h"

#define component mca_btl_pvas_component

/* Longer than ranks wait for a processor if many share it, for these would take memory */
#define STUCK_NS (2000 * CLOCK_NS_PER_MS)

static void frag_construct(mca_btl_pvas_frag_t *frag)
{
	frag->base.des_segments = frag->segments;
	frag->segments[0].seg_addr.pval = frag->buffer;
}

OBJ_CLASS_INSTANCE(mca_btl_pvas_frag_t, mca_btl_base_descriptor_t, frag_construct, NULL);

static bool is_small(const struct mca_btl_pvas_frag *frag)
{
	return frag->bytes == MCA_BTL_PVAS_SMALL_FRAG;
}

static struct mca_btl_pvas_frag *frag_new(size_t size)
{
	struct mca_btl_pvas_frag *frag = malloc(sizeof(*frag) + size);

	if (!frag)
		return NULL;
	OBJ_CONSTRUCT(frag, mca_btl_pvas_frag_t);
	frag->bytes = sizeof(*frag) + size;
	frag->extra = false;
	mca_btl_pvas_account(frag->bytes);
	return frag;
}

static void frag_delete(struct mca_btl_pvas_frag *frag)
{
	mca_btl_pvas_account(-(long)frag->bytes);
	OBJ_DESTRUCT(frag);
	free(frag);
}

/* The caller holds the component's lock; also for get_large(). */
static struct mca_btl_pvas_frag *get_small(void)
{
	struct mca_btl_pvas_frag *frag = component.free_frags;

	component.frags_requested++;
	if (frag) {
		component.free_frags = frag->next;
		return frag;
	}
	if (component.nr_small >= component.small_limit)
		return NULL;
	frag = frag_new(MCA_BTL_PVAS_SMALL_SIZE);
	if (frag)
		component.nr_small++;
	return frag;
}

/* They are up to max_send_size long. */
static int max_large(void)
{
	return mca_btl_pvas_clamp(MCA_BTL_PVAS_MIN_FRAGS, component.frag_max / 8,
				  component.frag_max);
}

static struct mca_btl_pvas_frag *get_large(size_t size)
{
	struct mca_btl_pvas_frag *frag;

	if (size > mca_btl_pvas.super.btl_max_send_size ||
	    component.nr_large >= max_large())
		return NULL;
	frag = frag_new(size);
	if (frag)
		component.nr_large++;
	return frag;
}

/* Has no fragment been released for a while? */
static bool is_stuck(void)
{
	static unsigned int seen;
	static uint64_t since;
	uint64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);

	if (!since || seen != component.nr_released) {
		seen = component.nr_released;
		since = now;
	}
	return now - since >= STUCK_NS;
}

/*
 * The limits are for all peers together, and one that does not poll returns none of its
 * fragments. Each other then gets one nevertheless, for the program may wait for its
 * messages before that peer polls again: the upper layer's progress function retries all
 * of them.
 */
static struct mca_btl_pvas_frag *get_extra(mca_btl_pvas_endpoint_t *ep, size_t size)
{
	struct mca_btl_pvas_frag *frag;

	if (!is_stuck() || ep->has_extra || size > mca_btl_pvas.super.btl_max_send_size)
		return NULL;
	frag = frag_new(size <= MCA_BTL_PVAS_SMALL_SIZE ? MCA_BTL_PVAS_SMALL_SIZE : size);
	if (!frag)
		return NULL;
	frag->extra = true;
	ep->has_extra = true;
	return frag;
}

/* NULL if there are too many: the upper layer tries again after a completion. */
static struct mca_btl_pvas_frag *frag_get(struct mca_btl_base_endpoint_t *ep, size_t size,
					  uint8_t order, uint32_t flags)
{
	struct mca_btl_pvas_frag *frag;

	OPAL_THREAD_LOCK(&component.lock);
	frag = size <= MCA_BTL_PVAS_SMALL_SIZE ? get_small() : get_large(size);
	if (OPAL_UNLIKELY(!frag))
		frag = get_extra(ep, size);
	if (OPAL_UNLIKELY(!frag))
		component.starved = true;
	OPAL_THREAD_UNLOCK(&component.lock);
	if (!frag)
		return NULL;
	frag->endpoint = ep;
	frag->segments[0].seg_len = size;
	frag->base.des_segment_count = 1;
	frag->base.des_flags = flags;
	frag->base.order = order;
	frag->base.des_cbfunc = NULL;
	return frag;
}

/* The caller holds the component's lock. */
static void release(struct mca_btl_pvas_frag *frag)
{
	if (frag->extra) {
		frag->endpoint->has_extra = false;
		frag_delete(frag);
		return;
	}
	component.nr_released++;
	if (is_small(frag)) {
		frag->next = component.free_frags;
		component.free_frags = frag;
	} else {
		component.nr_large--;
		frag_delete(frag);
	}
}

/* For a fragment whose callback was made: that lets the upper layer try again */
void mca_btl_pvas_frag_return(struct mca_btl_pvas_frag *frag)
{
	OPAL_THREAD_LOCK(&component.lock);
	release(frag);
	component.starved = false;
	OPAL_THREAD_UNLOCK(&component.lock);
}

/* Without a callback. False: the upper layer is waiting for one. */
bool mca_btl_pvas_frag_try_return(struct mca_btl_pvas_frag *frag)
{
	bool can;

	OPAL_THREAD_LOCK(&component.lock);
	can = !component.starved;
	if (can)
		release(frag);
	OPAL_THREAD_UNLOCK(&component.lock);
	return can;
}

/* Free the unused small fragments if none was requested since the previous call. */
void mca_btl_pvas_frag_trim(void)
{
	struct mca_btl_pvas_frag *frag;

	OPAL_THREAD_LOCK(&component.lock);
	while (!component.frags_requested && (frag = component.free_frags)) {
		component.free_frags = frag->next;
		component.nr_small--;
		frag_delete(frag);
	}
	component.frags_requested = 0;
	OPAL_THREAD_UNLOCK(&component.lock);
}

mca_btl_base_descriptor_t *mca_btl_pvas_alloc(struct mca_btl_base_module_t *btl,
					      struct mca_btl_base_endpoint_t *ep, uint8_t order,
					      size_t size, uint32_t flags)
{
	(void)btl;
	return (mca_btl_base_descriptor_t *)frag_get(ep, size, order, flags);
}

int mca_btl_pvas_free(struct mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
	(void)btl;
	mca_btl_pvas_frag_return((struct mca_btl_pvas_frag *)descriptor);
	return OPAL_SUCCESS;
}

/* Data that is not contiguous: pack as much of it as fits into the fragment. */
static struct mca_btl_pvas_frag *prepare_packed(struct mca_btl_base_endpoint_t *ep,
						struct opal_convertor_t *convertor, uint8_t order,
						size_t reserve, size_t *size, uint32_t flags)
{
	size_t room = mca_btl_pvas.super.btl_max_send_size - reserve;
	struct mca_btl_pvas_frag *frag;
	uint32_t count = 1;
	struct iovec iov;

	if (*size > room)
		*size = room;
	frag = frag_get(ep, reserve + *size, order, flags);
	if (!frag)
		return NULL;
	iov.iov_base = frag->buffer + reserve;
	iov.iov_len = *size;
	if (opal_convertor_pack(convertor, &iov, &count, size) < 0) {
		mca_btl_pvas_frag_return(frag);
		return NULL;
	}
	frag->segments[0].seg_len = reserve + *size;
	return frag;
}

mca_btl_base_descriptor_t *mca_btl_pvas_prepare_src(struct mca_btl_base_module_t *btl,
						    struct mca_btl_base_endpoint_t *ep,
						    struct opal_convertor_t *convertor,
						    uint8_t order, size_t reserve, size_t *size,
						    uint32_t flags)
{
	struct mca_btl_pvas_frag *frag;
	void *data;

	(void)btl;
	if (opal_convertor_need_buffers(convertor))
		return (mca_btl_base_descriptor_t *)prepare_packed(ep, convertor, order, reserve,
								   size, flags);
	/* Contiguous data is sent in place. */
	opal_convertor_get_current_pointer(convertor, &data);
	frag = frag_get(ep, reserve, order, flags);
	if (!frag)
		return NULL;
	frag->base.des_segment_count = 2;
	frag->segments[1].seg_addr.pval = data;
	frag->segments[1].seg_len = *size;
	return &frag->base;
}
