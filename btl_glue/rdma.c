// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Get, put and atomics: loads and stores in the peer's memory, complete when the call
 * returns, without registration, system call or work for the peer.
 */
#include "btl_pvas.h"

#include <string.h>

/* Without an endpoint, the target is this process: one-sided components use that. */
static bool reachable(struct mca_btl_base_endpoint_t *ep)
{
	return !ep || mca_btl_pvas_reachable(ep);
}

enum direction { FROM_PEER, TO_PEER };

/* After a copy from it: no fault tells of an exec, if the new program has memory there. */
static bool is_same(const struct mca_btl_base_endpoint_t *ep)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return !ep || mca_btl_pvas_peer_alive(ep->index, ep->gen);
}

/* False: the peer ended during the copy, and the fault handler returned here, or has exec'd. */
static bool copy(struct mca_btl_base_endpoint_t *ep, enum direction direction, void *local,
		 uint64_t remote, size_t size)
{
	volatile bool done = false;
	sigjmp_buf back;

	if (!sigsetjmp(back, 0)) {
		mca_btl_pvas_fault_return = &back;
		if (direction == FROM_PEER) {
			done = mca_btl_pvas_copy_from(ep, local, (const void *)remote, size) &&
			       is_same(ep);
		} else {
			mca_btl_pvas_memcpy((void *)remote, local, size);
			/* Order the data before its notification, which can be a plain store. */
			__atomic_thread_fence(__ATOMIC_RELEASE);
			done = true;
		}
	}
	mca_btl_pvas_fault_return = NULL;
	return done;
}

static int transfer(struct mca_btl_base_endpoint_t *ep, enum direction direction, void *local,
		    uint64_t remote, size_t size)
{
	if (!reachable(ep))
		return OPAL_ERR_UNREACH;
	if (!copy(ep, direction, local, remote, size)) {
		mca_btl_pvas_peer_failed(ep);
		return OPAL_ERR_UNREACH;
	}
	mca_btl_pvas_count(bytes_copied, size);
	if (direction == FROM_PEER)
		mca_btl_pvas_count(gets, 1);
	else
		mca_btl_pvas_count(puts, 1);
	return OPAL_SUCCESS;
}

static int rdma(enum direction direction, struct mca_btl_base_module_t *btl,
		struct mca_btl_base_endpoint_t *ep, void *local, uint64_t remote,
		mca_btl_base_registration_handle_t *handle, size_t size,
		mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	int rc = transfer(ep, direction, local, remote, size);

	if (rc == OPAL_SUCCESS)
		cbfunc(btl, ep, local, handle, cbcontext, cbdata, rc);
	return rc;
}

int mca_btl_pvas_get(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
		     void *local_address, uint64_t remote_address,
		     mca_btl_base_registration_handle_t *local_handle,
		     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
		     int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
		     void *cbdata)
{
	int rc = rdma(FROM_PEER, btl, ep, local_address, remote_address, local_handle, size,
		      cbfunc, cbcontext, cbdata);

	(void)remote_handle;
	(void)flags;
	(void)order;
	return rc;
}

int mca_btl_pvas_put(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
		     void *local_address, uint64_t remote_address,
		     mca_btl_base_registration_handle_t *local_handle,
		     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
		     int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
		     void *cbdata)
{
	int rc = rdma(TO_PEER, btl, ep, local_address, remote_address, local_handle, size,
		      cbfunc, cbcontext, cbdata);

	(void)remote_handle;
	(void)flags;
	(void)order;
	return rc;
}

/*
 * Atomic operations of one width. The component osc/rdma does not tell signed from
 * unsigned numbers, so MIN and MAX, and what has no instruction, are left to it: it
 * computes them itself, and stores the result by compare-and-swap.
 */
#define DEFINE_FETCH_OP(bits)								\
static bool fetch##bits(uint##bits##_t *p, mca_btl_base_atomic_op_t op, uint##bits##_t v,\
			uint##bits##_t *old)						\
{											\
	switch (op) {									\
	case MCA_BTL_ATOMIC_ADD:							\
		*old = __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);			\
		return true;								\
	case MCA_BTL_ATOMIC_AND:							\
		*old = __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST);			\
		return true;								\
	case MCA_BTL_ATOMIC_OR:								\
		*old = __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);			\
		return true;								\
	case MCA_BTL_ATOMIC_XOR:							\
		*old = __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST);			\
		return true;								\
	case MCA_BTL_ATOMIC_SWAP:							\
		*old = __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);			\
		return true;								\
	default:									\
		return false;								\
	}										\
}

DEFINE_FETCH_OP(32)
DEFINE_FETCH_OP(64)

/* @local, if not NULL, receives the old value in the operation's width. */
static int do_atomic(struct mca_btl_base_endpoint_t *ep, void *local, uint64_t remote,
		     mca_btl_base_atomic_op_t op, uint64_t operand, int flags)
{
	uint64_t old64;
	uint32_t old32;

	if (flags & MCA_BTL_ATOMIC_FLAG_FLOAT)
		return OPAL_ERR_NOT_SUPPORTED;
	if (!reachable(ep))
		return OPAL_ERR_UNREACH;
	if (flags & MCA_BTL_ATOMIC_FLAG_32BIT) {
		if (!fetch32((uint32_t *)remote, op, operand, &old32))
			return OPAL_ERR_NOT_SUPPORTED;
		if (local)
			memcpy(local, &old32, sizeof(old32));
	} else {
		if (!fetch64((uint64_t *)remote, op, operand, &old64))
			return OPAL_ERR_NOT_SUPPORTED;
		if (local)
			memcpy(local, &old64, sizeof(old64));
	}
	mca_btl_pvas_count(atomics, 1);
	return OPAL_SUCCESS;
}

int mca_btl_pvas_atomic_op(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
			   uint64_t remote_address,
			   mca_btl_base_registration_handle_t *remote_handle,
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

int mca_btl_pvas_atomic_fop(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
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

int mca_btl_pvas_atomic_cswap(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
			      void *local_address, uint64_t remote_address,
			      mca_btl_base_registration_handle_t *local_handle,
			      mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
			      uint64_t value, int flags, int order,
			      mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
			      void *cbdata)
{
	uint32_t old32 = compare;

	(void)remote_handle;
	(void)order;
	if (!reachable(ep))
		return OPAL_ERR_UNREACH;
	/* A failed exchange stores the value found in the expected one's place. */
	if (flags & MCA_BTL_ATOMIC_FLAG_32BIT) {
		__atomic_compare_exchange_n((uint32_t *)remote_address, &old32, (uint32_t)value,
					    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		memcpy(local_address, &old32, sizeof(old32));
	} else {
		__atomic_compare_exchange_n((uint64_t *)remote_address, &compare, value, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		memcpy(local_address, &compare, sizeof(compare));
	}
	mca_btl_pvas_count(atomics, 1);
	cbfunc(btl, ep, local_address, local_handle, cbcontext, cbdata, OPAL_SUCCESS);
	return OPAL_SUCCESS;
}
