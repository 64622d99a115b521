// SPDX-License-Identifier: LGPL-2.1-or-later
/* The module: endpoints, and copies from and to the memory of peers. */
#include "smsc_pvas.h"

#include <string.h>

#include "opal/util/proc.h"

#define component mca_smsc_pvas_component

OBJ_CLASS_INSTANCE(mca_smsc_pvas_endpoint_t, opal_object_t, NULL, NULL);

/*
 * Open MPI makes the endpoints of all local peers before any of them gets a message. One
 * that can't map our memory must get no message that is left in place, and btl/sm knows
 * only whether all can.
 */
static mca_smsc_endpoint_t *get_endpoint(opal_proc_t *proc)
{
	struct mca_smsc_pvas_modex modex;
	mca_smsc_pvas_endpoint_t *ep;

	if (!mca_smsc_pvas_look_up(proc, &modex)) {
		mca_smsc_pvas_module.features &= ~(uint64_t)MCA_SMSC_FEATURE_CAN_MAP;
		return NULL;
	}
	ep = OBJ_NEW(mca_smsc_pvas_endpoint_t);
	if (!ep)
		return NULL;
	ep->super.proc = proc;
	ep->index = modex.index;
	mca_smsc_pvas_watch(proc, &modex);
	return &ep->super;
}

static void return_endpoint(mca_smsc_endpoint_t *ep)
{
	mca_smsc_pvas_unwatch(((mca_smsc_pvas_endpoint_t *)ep)->index);
	OBJ_RELEASE(ep);
}

static void count(size_t size)
{
	component.counters.copies++;
	component.counters.bytes_copied += size;
}

/* If the peer ends meanwhile, these fault: see btl_glue/fault.c. */
static int copy_to(mca_smsc_endpoint_t *ep, void *local, void *remote, size_t size, void *reg)
{
	(void)ep;
	(void)reg;
	mca_btl_pvas_memcpy(remote, local, size);
	count(size);
	return OPAL_SUCCESS;
}

static int copy_from(mca_smsc_endpoint_t *ep, void *local, void *remote, size_t size, void *reg)
{
	(void)ep;
	(void)reg;
	mca_btl_pvas_memcpy(local, remote, size);
	count(size);
	return OPAL_SUCCESS;
}

/* The result only says that it succeeded: there is nothing to undo. */
static void *map_peer_region(mca_smsc_endpoint_t *ep, uint64_t flags, void *remote, size_t size,
			     void **local)
{
	(void)ep;
	(void)flags;
	(void)size;
	component.counters.mapped++;
	*local = remote;
	return &mca_smsc_pvas_module;
}

static void unmap_peer_region(void *mapping)
{
	(void)mapping;
}

mca_smsc_module_t mca_smsc_pvas_module = {
	.features = MCA_SMSC_FEATURE_CAN_MAP,
	.get_endpoint = get_endpoint,
	.return_endpoint = return_endpoint,
	.copy_to = copy_to,
	.copy_from = copy_from,
	.map_peer_region = map_peer_region,
	.unmap_peer_region = unmap_peer_region,
};
