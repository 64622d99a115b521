// SPDX-License-Identifier: LGPL-2.1-or-later
/* Completing our own fragments: the upper layer's callback, then the fragment is free. */
#include "btl_pvas.h"

#define component mca_btl_pvas_component

/*
 * Only queue the fragment: not every caller of btl_send expects its callback before
 * btl_send has returned.
 */
void mca_btl_pvas_frag_complete(struct mca_btl_pvas_frag *frag)
{
	OPAL_THREAD_LOCK(&component.lock);
	opal_list_append(&component.completed, (opal_list_item_t *)frag);
	component.nr_completed++;
	OPAL_THREAD_UNLOCK(&component.lock);
}

/* The callback may free the fragment, unless the BTL owns it. */
static void call_back(struct mca_btl_pvas_frag *frag)
{
	bool btl_owns = frag->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;

	if (frag->base.des_cbfunc)
		frag->base.des_cbfunc(&mca_btl_pvas.super, frag->endpoint, &frag->base,
				      OPAL_SUCCESS);
	if (btl_owns)
		mca_btl_pvas_frag_return(frag);
}

int mca_btl_pvas_complete_queued(void)
{
	opal_list_item_t *item;
	int count = 0;

	for (;;) {
		OPAL_THREAD_LOCK(&component.lock);
		item = opal_list_remove_first(&component.completed);
		if (item)
			component.nr_completed--;
		OPAL_THREAD_UNLOCK(&component.lock);
		if (!item)
			return count;
		call_back((struct mca_btl_pvas_frag *)item);
		count++;
	}
}

/* Fragments that were passed by reference, and that receivers have finished with */
int mca_btl_pvas_complete_returned(void)
{
	struct mca_btl_pvas_frag *frag, *next;
	int count = 0;

	frag = __atomic_exchange_n(&component.port->returned, NULL, __ATOMIC_ACQUIRE);
	for (; frag; frag = next) {
		next = frag->next;
		call_back(frag);
		count++;
	}
	return count;
}
