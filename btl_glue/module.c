// SPDX-License-Identifier: LGPL-2.1-or-later
/* The module: endpoints and fragments. */
#include "btl_pvas.h"

#include <string.h>

#include "opal/mca/pmix/pmix.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#define component mca_btl_pvas_component

/* ---- endpoints ---- */

static void endpoint_construct(pvas_endpoint_t *ep)
{
	OBJ_CONSTRUCT(&ep->lock, opal_mutex_t);
	OBJ_CONSTRUCT(&ep->pending, opal_list_t);
	ep->offer = NULL;
	ep->box = NULL;
	ep->queue_end = 0;
	ep->sent = 0;
	ep->asked = 0;
	ep->gone = false;
	ep->waiting = false;
}

static void endpoint_destruct(pvas_endpoint_t *ep)
{
	OBJ_DESTRUCT(&ep->pending);
	OBJ_DESTRUCT(&ep->lock);
}

OBJ_CLASS_INSTANCE(pvas_endpoint_t, opal_list_item_t, endpoint_construct, endpoint_destruct);

/*
 * What the peer told, if it is a task of our space. Ids repeat on other nodes:
 * it must also be where it says it is.
 */
static bool in_our_space(const struct opal_proc_t *proc, struct pvas_modex *told)
{
	struct pvas_modex *modex = NULL;
	size_t size = 0;
	bool ours = false;
	int rc;

	if (!OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags))
		return false;
	OPAL_MODEX_RECV(rc, &component.super.btl_version, &proc->proc_name, (void **)&modex, &size);
	if (rc != OPAL_SUCCESS || !modex)
		return false;
	if (size == sizeof(*modex) && modex->version == PVAS_BTL_MODEX_VERSION &&
	    modex->space == component.space && modex->index < PVAS_MAX_TASKS + 2 &&
	    modex->index != component.index && modex->port >> component.shift == modex->index &&
	    pvas_alive(modex->index, modex->gen))
		/* The entry's other members hold once it is seen to run. */
		ours = component.table[modex->index].pid == modex->pid;
	*told = *modex;
	free(modex);
	return ours;
}

static pvas_endpoint_t *make_endpoint(struct opal_proc_t *proc, const struct pvas_modex *modex)
{
	pvas_endpoint_t *ep = OBJ_NEW(pvas_endpoint_t);

	if (!ep)
		return NULL;
	ep->proc = proc;
	ep->index = modex->index;
	ep->gen = modex->gen;
	ep->port = (struct pvas_port *)modex->port;
	OPAL_THREAD_LOCK(&component.lock);
	opal_list_append(&component.endpoints, &ep->super);
	OPAL_THREAD_UNLOCK(&component.lock);
	return ep;
}

static int pvas_add_procs(struct mca_btl_base_module_t *btl, size_t nr,
			  struct opal_proc_t **procs,
			  struct mca_btl_base_endpoint_t **endpoints,
			  struct opal_bitmap_t *reachable)
{
	struct pvas_modex modex;
	size_t i;
	int rc;

	(void)btl;
	for (i = 0; i < nr; i++) {
		endpoints[i] = NULL;
		if (procs[i] == opal_proc_local_get() || !in_our_space(procs[i], &modex))
			continue;
		/* Each writes into the other's rings: the longest message must fit into both. */
		if (modex.eager_limit != mca_btl_pvas.super.btl_eager_limit)
			continue;
		endpoints[i] = make_endpoint(procs[i], &modex);
		if (!endpoints[i])
			return OPAL_ERR_OUT_OF_RESOURCE;
		if (!reachable)
			continue;
		rc = opal_bitmap_set_bit(reachable, i);
		if (rc != OPAL_SUCCESS)
			return rc;
	}
	return OPAL_SUCCESS;
}

/*
 * It may be called twice for one endpoint, once for each of the uses that the
 * caller makes of it: so the endpoint stays until the module goes.
 */
static int pvas_del_procs(struct mca_btl_base_module_t *btl, size_t nr,
			  struct opal_proc_t **procs, struct mca_btl_base_endpoint_t **endpoints)
{
	size_t i;

	(void)btl;
	(void)procs;
	for (i = 0; i < nr; i++) {
		if (endpoints[i])
			pvas_say_goodbye(endpoints[i]);
		endpoints[i] = NULL;
	}
	return OPAL_SUCCESS;
}

/*
 * Port and boxes stay mapped: a peer that is not yet through may still say
 * goodbye there. They go with the process.
 */
static int pvas_finalize(struct mca_btl_base_module_t *btl)
{
	opal_list_item_t *item;

	(void)btl;
	while ((item = opal_list_remove_first(&component.endpoints))) {
		pvas_say_goodbye((pvas_endpoint_t *)item);
		OBJ_RELEASE(item);
	}
	component.watched = NULL;
	pvas_watch_stop();
	return OPAL_SUCCESS;
}

static int pvas_register_error(struct mca_btl_base_module_t *btl,
			       mca_btl_base_module_error_cb_fn_t cbfunc)
{
	((struct pvas_module *)btl)->error_cb = cbfunc;
	return OPAL_SUCCESS;
}

static int pvas_ft_event(int state)
{
	(void)state;
	return OPAL_SUCCESS;
}

/* ---- fragments ---- */

static void frag_construct(pvas_frag_t *frag)
{
	frag->base.des_segments = frag->segments;
	frag->base.des_segment_count = 1;
	frag->segments[0].seg_addr.pval = frag->buffer;
}

OBJ_CLASS_INSTANCE(pvas_frag_t, mca_btl_base_descriptor_t, frag_construct, NULL);

static opal_free_list_t *list_for(size_t size)
{
	if (size <= PVAS_SMALL)
		return &component.small;
	if (size <= mca_btl_pvas.super.btl_eager_limit)
		return &component.eager;
	if (size <= mca_btl_pvas.super.btl_max_send_size)
		return &component.large;
	return NULL;
}

struct pvas_frag *pvas_frag_get(struct mca_btl_base_endpoint_t *endpoint, size_t size,
				uint8_t order, uint32_t flags)
{
	opal_free_list_t *list = list_for(size);
	struct pvas_frag *frag = list ? (struct pvas_frag *)opal_free_list_get(list) : NULL;

	if (!frag)
		return NULL;
	frag->list = list;
	frag->endpoint = endpoint;
	frag->segments[0].seg_len = size;
	frag->base.des_segment_count = 1;
	frag->base.des_flags = flags;
	frag->base.order = order;
	frag->base.des_cbfunc = NULL;
	return frag;
}

void pvas_frag_put(struct pvas_frag *frag)
{
	opal_free_list_return(frag->list, &frag->base.super);
}

static mca_btl_base_descriptor_t *pvas_alloc(struct mca_btl_base_module_t *btl,
					     struct mca_btl_base_endpoint_t *endpoint,
					     uint8_t order, size_t size, uint32_t flags)
{
	(void)btl;
	return (mca_btl_base_descriptor_t *)pvas_frag_get(endpoint, size, order, flags);
}

static int pvas_free(struct mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
	(void)btl;
	pvas_frag_put((struct pvas_frag *)descriptor);
	return OPAL_SUCCESS;
}

/* The data lies in pieces: gather it into the fragment, as much as fits. */
static struct pvas_frag *prepare_packed(struct mca_btl_base_endpoint_t *endpoint,
					struct opal_convertor_t *convertor, uint8_t order,
					size_t reserve, size_t *size, uint32_t flags)
{
	size_t room = mca_btl_pvas.super.btl_max_send_size - reserve;
	struct pvas_frag *frag;
	uint32_t count = 1;
	struct iovec iov;

	if (*size > room)
		*size = room;
	frag = pvas_frag_get(endpoint, reserve + *size, order, flags);
	if (!frag)
		return NULL;
	iov.iov_base = frag->buffer + reserve;
	iov.iov_len = *size;
	if (opal_convertor_pack(convertor, &iov, &count, size) < 0) {
		pvas_frag_put(frag);
		return NULL;
	}
	frag->segments[0].seg_len = reserve + *size;
	return frag;
}

static mca_btl_base_descriptor_t *pvas_prepare_src(struct mca_btl_base_module_t *btl,
						   struct mca_btl_base_endpoint_t *endpoint,
						   struct opal_convertor_t *convertor,
						   uint8_t order, size_t reserve, size_t *size,
						   uint32_t flags)
{
	struct pvas_frag *frag;
	void *data;

	(void)btl;
	if (opal_convertor_need_buffers(convertor))
		return (mca_btl_base_descriptor_t *)prepare_packed(endpoint, convertor, order,
								   reserve, size, flags);
	/* In one piece: it stays where it is, and is copied at most once. */
	opal_convertor_get_current_pointer(convertor, &data);
	frag = pvas_frag_get(endpoint, reserve, order, flags);
	if (!frag)
		return NULL;
	frag->base.des_segment_count = 2;
	frag->segments[1].seg_addr.pval = data;
	frag->segments[1].seg_len = *size;
	return &frag->base;
}

struct pvas_module mca_btl_pvas = {
	.super = {
		.btl_component = &mca_btl_pvas_component.super,
		.btl_add_procs = pvas_add_procs,
		.btl_del_procs = pvas_del_procs,
		.btl_finalize = pvas_finalize,
		.btl_alloc = pvas_alloc,
		.btl_free = pvas_free,
		.btl_prepare_src = pvas_prepare_src,
		.btl_send = pvas_send,
		.btl_sendi = pvas_sendi,
		.btl_put = pvas_put,
		.btl_get = pvas_get,
		.btl_dump = mca_btl_base_dump,
		.btl_atomic_op = pvas_atomic_op,
		.btl_atomic_fop = pvas_atomic_fop,
		.btl_atomic_cswap = pvas_atomic_cswap,
		.btl_register_error = pvas_register_error,
		.btl_ft_event = pvas_ft_event,
	},
};
