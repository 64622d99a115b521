// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Get, put and atomics. A peer's memory is memory: each is done when the call
 * returns, with no registration, no system call and no work for the peer.
 */
#include "btl_pvas.h"

#include <string.h>

/* No endpoint: ourselves. One-sided components do ask for that. */
static bool reachable(struct mca_btl_base_endpoint_t *ep)
{
	if (OPAL_LIKELY(!ep || pvas_alive(ep->index, ep->gen)))
		return true;
	pvas_peer_gone(ep);
	return false;
}

enum direction { FROM_PEER, TO_PEER };

/* False: the peer ended meanwhile; the fault handler brought us back. */
static bool copy(struct mca_btl_base_endpoint_t *ep, enum direction direction, void *local,
		 uint64_t remote, size_t size)
{
	volatile bool done = false;
	sigjmp_buf back;

	if (!sigsetjmp(back, 0)) {
		pvas_may_fault = &back;
		if (direction == FROM_PEER) {
			done = pvas_copy_from(ep, local, (const void *)remote, size);
		} else {
			memcpy((void *)remote, local, size);
			/* Before what tells the peer of it, even if that is a plain store */
			__atomic_thread_fence(__ATOMIC_RELEASE);
			done = true;
		}
	}
	pvas_may_fault = NULL;
	return done;
}

static int transfer(struct mca_btl_base_endpoint_t *ep, enum direction direction, void *local,
		    uint64_t remote, size_t size)
{
	if (!reachable(ep))
		return OPAL_ERR_UNREACH;
	if (!copy(ep, direction, local, remote, size)) {
		pvas_peer_gone(ep);
		return OPAL_ERR_UNREACH;
	}
	pvas_count(bytes_copied, size);
	return OPAL_SUCCESS;
}

int pvas_get(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
	     void *local_address, uint64_t remote_address,
	     mca_btl_base_registration_handle_t *local_handle,
	     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
	     int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	int rc = transfer(ep, FROM_PEER, local_address, remote_address, size);

	(void)remote_handle;
	(void)flags;
	(void)order;
	if (rc != OPAL_SUCCESS)
		return rc;
	pvas_count(gets, 1);
	cbfunc(btl, ep, local_address, local_handle, cbcontext, cbdata, OPAL_SUCCESS);
	return OPAL_SUCCESS;
}

int pvas_put(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
	     void *local_address, uint64_t remote_address,
	     mca_btl_base_registration_handle_t *local_handle,
	     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
	     int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	int rc = transfer(ep, TO_PEER, local_address, remote_address, size);

	(void)remote_handle;
	(void)flags;
	(void)order;
	if (rc != OPAL_SUCCESS)
		return rc;
	pvas_count(puts, 1);
	cbfunc(btl, ep, local_address, local_handle, cbcontext, cbdata, OPAL_SUCCESS);
	return OPAL_SUCCESS;
}

/* Those with no instruction of their own: compute, and try until nobody came between. */
#define DEFINE_LOOP(bits)                                                                        \
static uint##bits##_t choose##bits(mca_btl_base_atomic_op_t op, int##bits##_t a,                 \
				   int##bits##_t b)                                              \
{                                                                                                \
	if (op == MCA_BTL_ATOMIC_MIN)                                                            \
		return a < b ? a : b;                                                            \
	return a > b ? a : b;                                                                    \
}                                                                                                \
												 \
static bool fetch##bits(uint##bits##_t *p, mca_btl_base_atomic_op_t op, uint##bits##_t v,        \
			uint##bits##_t *old)                                                     \
{                                                                                                \
	switch (op) {                                                                            \
	case MCA_BTL_ATOMIC_ADD:                                                                 \
		*old = __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                               \
		return true;                                                                     \
	case MCA_BTL_ATOMIC_AND:                                                                 \
		*old = __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST);                               \
		return true;                                                                     \
	case MCA_BTL_ATOMIC_OR:                                                                  \
		*old = __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);                                \
		return true;                                                                     \
	case MCA_BTL_ATOMIC_XOR:                                                                 \
		*old = __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST);                               \
		return true;                                                                     \
	case MCA_BTL_ATOMIC_SWAP:                                                                \
		*old = __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                              \
		return true;                                                                     \
	case MCA_BTL_ATOMIC_MIN:                                                                 \
	case MCA_BTL_ATOMIC_MAX:                                                                 \
		*old = __atomic_load_n(p, __ATOMIC_RELAXED);                                     \
		while (!__atomic_compare_exchange_n(p, old, choose##bits(op, *old, v), true,     \
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))         \
			;                                                                        \
		return true;                                                                     \
	default:                                                                                 \
		return false;                                                                    \
	}                                                                                        \
}

DEFINE_LOOP(32)
DEFINE_LOOP(64)

/* @local, if not NULL, receives the old value in the operation's width. */
static int do_atomic(struct mca_btl_base_endpoint_t *ep, void *local, uint64_t remote,
		     mca_btl_base_atomic_op_t op, uint64_t operand, int flags)
{
	uint64_t old64;
	uint32_t old32;

	if (flags & MCA_BTL_ATOMIC_FLAG_FLOAT)
		return OPAL_ERR_NOT_AVAILABLE;
	if (!reachable(ep))
		return OPAL_ERR_UNREACH;
	if (flags & MCA_BTL_ATOMIC_FLAG_32BIT) {
		if (!fetch32((uint32_t *)remote, op, operand, &old32))
			return OPAL_ERR_NOT_AVAILABLE;
		if (local)
			memcpy(local, &old32, sizeof(old32));
	} else {
		if (!fetch64((uint64_t *)remote, op, operand, &old64))
			return OPAL_ERR_NOT_AVAILABLE;
		if (local)
			memcpy(local, &old64, sizeof(old64));
	}
	pvas_count(atomics, 1);
	return OPAL_SUCCESS;
}

int pvas_atomic_op(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
		   uint64_t remote_address, mca_btl_base_registration_handle_t *remote_handle,
		   mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
		   mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	int rc = do_atomic(ep, NULL, remote_address, op, operand, flags);

	(void)remote_handle;
	(void)order;
	if (rc == OPAL_SUCCESS)
		cbfunc(btl, ep, NULL, NULL, cbcontext, cbdata, OPAL_SUCCESS);
	return rc;
}

int pvas_atomic_fop(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
		    void *local_address, uint64_t remote_address,
		    mca_btl_base_registration_handle_t *local_handle,
		    mca_btl_base_registration_handle_t *remote_handle,
		    mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
		    mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	int rc = do_atomic(ep, local_address, remote_address, op, operand, flags);

	(void)remote_handle;
	(void)order;
	if (rc == OPAL_SUCCESS)
		cbfunc(btl, ep, local_address, local_handle, cbcontext, cbdata, OPAL_SUCCESS);
	return rc;
}

int pvas_atomic_cswap(struct mca_btl_base_module_t *btl,
		      struct mca_btl_base_endpoint_t *ep, void *local_address,
		      uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
		      mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
		      uint64_t value, int flags, int order,
		      mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	uint32_t old32 = compare;

	(void)remote_handle;
	(void)order;
	if (!reachable(ep))
		return OPAL_ERR_UNREACH;
	/* The failing exchange leaves the value it found where the expected one was. */
	if (flags & MCA_BTL_ATOMIC_FLAG_32BIT) {
		__atomic_compare_exchange_n((uint32_t *)remote_address, &old32, (uint32_t)value,
					    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		memcpy(local_address, &old32, sizeof(old32));
	} else {
		__atomic_compare_exchange_n((uint64_t *)remote_address, &compare, value, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		memcpy(local_address, &compare, sizeof(compare));
	}
	pvas_count(atomics, 1);
	cbfunc(btl, ep, local_address, local_handle, cbcontext, cbdata, OPAL_SUCCESS);
	return OPAL_SUCCESS;
}
