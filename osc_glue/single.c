// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Accumulates of one element of a predefined type on either side, which most are: numbers of 4 or
 * 8 bytes in few instructions, and all others.
 */
#include "accumulate.h"
#include "change.h"
#include "exclude.h"

/* ---- numbers, one of which an instruction changes ---- */

static inline bool is_number(const ompi_datatype_t *type)
{
	const unsigned int flags = OMPI_DATATYPE_FLAG_PREDEFINED | OPAL_DATATYPE_FLAG_CONTIGUOUS |
				   OPAL_DATATYPE_FLAG_NO_GAPS;

	return (type->super.flags & flags) == flags &&
	       (type->super.size == 8 || type->super.size == 4);
}

/* NULL: not where an instruction can change it, or threads, or mca_osc_pvas_reach() decides. */
__attribute__((always_inline)) static inline char *
find_number(const struct mca_osc_pvas_module *m, const struct mca_osc_pvas_target *target,
	    ptrdiff_t disp, const ompi_datatype_t *type)
{
	const size_t size = type->super.size;
	char *at;

	if (__builtin_expect(!is_number(type) || opal_using_threads(), 0))
		return NULL;
	at = mca_osc_pvas_reach_quickly(m, target, disp, size);
	return __builtin_expect((uintptr_t)at & (size - 1), 0) ? NULL : at;
}

/* A function of its own, which is rarely called */
__attribute__((noinline)) static void wait_for_lock(struct mca_osc_pvas_module *m,
						    struct mca_osc_pvas_target *target)
{
	mca_osc_pvas_end_atomic(m);
	mca_osc_pvas_begin_atomic(m, target);
}

#define DEFINE_NUMBER(bits)								\
static inline void number##bits(struct mca_osc_pvas_module *m, enum mca_osc_pvas_kind kind,\
				char *at, const void *from, void *old)			\
{											\
	const unaligned##bits *value = from;						\
	uint##bits##_t seen;								\
											\
	/* The usual ones first */							\
	if (kind == MCA_OSC_PVAS_ADD) {							\
		seen = __atomic_fetch_add((element##bits *)at, *value, __ATOMIC_SEQ_CST);\
	} else if (kind == MCA_OSC_PVAS_ADD_REAL) {					\
		seen = add_real##bits((element##bits *)at, *value);			\
	} else if (kind == MCA_OSC_PVAS_REPLACE && !old) {				\
		mca_osc_pvas_will_store(m);						\
		__atomic_store_n((element##bits *)at, *value, __ATOMIC_RELEASE);	\
		return;									\
	} else {									\
		seen = change##bits(kind, (element##bits *)at,				\
				    kind == MCA_OSC_PVAS_NO_OP ? 0 : *value);		\
	}										\
	if (old)									\
		*(unaligned##bits *)old = seen;						\
}

DEFINE_NUMBER(32)
DEFINE_NUMBER(64)

/* A rank that is alone need not announce it. There are no other threads. */
static inline void begin_change(struct mca_osc_pvas_module *m, struct mca_osc_pvas_target *target)
{
	if (__builtin_expect(target->access == MCA_OSC_PVAS_EXCLUSIVE, 0))
		return;
	if (__builtin_expect(!target->announced, 0))
		mca_osc_pvas_announce(target);
	__atomic_exchange_n(&m->own->busy, 1, __ATOMIC_SEQ_CST);
	if (__builtin_expect(mca_osc_pvas_load(&target->state->acc_lock), 0))
		wait_for_lock(m, target);
}

static inline void end_change(struct mca_osc_pvas_module *m)
{
	__atomic_store_n(&m->own->busy, 0, __ATOMIC_RELEASE);
	mca_osc_pvas_count(accumulates, 1);
}

/* ---- any element ---- */

/* False: not at that address */
static bool combine_one(struct mca_osc_pvas_module *m, struct mca_osc_pvas_target *target,
			char *at, const struct mca_osc_pvas_operation *o, const void *from,
			void *old)
{
	if (!mca_osc_pvas_is_atomic(o, at))
		return false;
	if (mca_osc_pvas_is_alone(target)) {
		mca_osc_pvas_will_store(m);
		mca_osc_pvas_apply_plain(o, at, from, old, 1);
		return true;
	}
	/* A plain store, if nobody asks for the value before */
	if (o->kind == MCA_OSC_PVAS_REPLACE)
		mca_osc_pvas_will_store(m);
	mca_osc_pvas_begin_atomic(m, target);
	mca_osc_pvas_apply_atomic(o, at, from, old, 1);
	mca_osc_pvas_end_atomic(m);
	return true;
}

__attribute__((noinline)) static int
accumulate_any_one(struct mca_osc_pvas_module *m, int rank, ptrdiff_t disp, const void *from,
		   void *old, ompi_datatype_t *type, ompi_op_t *op)
{
	const struct mca_osc_pvas_buffer origin = { (void *)from, 1, type };
	const struct mca_osc_pvas_buffer result = { old, 1, type };
	struct mca_osc_pvas_operation operation;
	char *at;
	int rc = mca_osc_pvas_reach(m, rank, disp, 1, type, &at);

	if (rc)
		return rc;
	mca_osc_pvas_operation_init(&operation, op, type);
	if (!combine_one(m, &m->targets[rank], at, &operation, from, old))
		return mca_osc_pvas_accumulate_any(m, rank, disp, &origin, old ? &result : NULL,
						   &origin, op);
	mca_osc_pvas_count(accumulates, 1);
	return OMPI_SUCCESS;
}

int mca_osc_pvas_accumulate_one(struct mca_osc_pvas_module *m, int rank, ptrdiff_t disp,
				const void *from, void *old, ompi_datatype_t *type, ompi_op_t *op)
{
	const enum mca_osc_pvas_kind kind = mca_osc_pvas_kind_of(op, type);
	struct mca_osc_pvas_target *target = &m->targets[rank];
	char *at = find_number(m, target, disp, type);

	if (__builtin_expect(!at || kind == MCA_OSC_PVAS_FUNCTION, 0))
		return accumulate_any_one(m, rank, disp, from, old, type, op);
	begin_change(m, target);
	if (type->super.size == 8)
		number64(m, kind, at, from, old);
	else
		number32(m, kind, at, from, old);
	end_change(m);
	return OMPI_SUCCESS;
}

/* ---- MPI's calls ---- */

int mca_osc_pvas_fetch_and_op(const void *origin, void *result, struct ompi_datatype_t *type,
			      int rank, ptrdiff_t disp, struct ompi_op_t *op, ompi_win_t *win)
{
	if (!ompi_datatype_is_predefined(type))
		return MPI_ERR_TYPE;
	return mca_osc_pvas_accumulate_one(mca_osc_pvas_module_of(win), rank, disp, origin, result,
					   type, op);
}

static inline bool is_comparable(const ompi_datatype_t *type)
{
	const uint32_t data = type->super.flags & OMPI_DATATYPE_FLAG_DATA_TYPE;

	return data != OMPI_DATATYPE_FLAG_DATA_FLOAT && data != OMPI_DATATYPE_FLAG_DATA_COMPLEX;
}

__attribute__((noinline)) static int
compare_and_swap_any(const void *origin, const void *compare, void *result,
		     struct ompi_datatype_t *type, int rank, ptrdiff_t disp, ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	struct mca_osc_pvas_target *target = &m->targets[rank];
	struct mca_osc_pvas_operation operation;
	char *at;
	int rc;

	if (!ompi_datatype_is_predefined(type) || !is_comparable(type) ||
	    !mca_coll_pvas_is_plain(type))
		return MPI_ERR_TYPE;
	rc = mca_osc_pvas_reach(m, rank, disp, 1, type, &at);
	if (rc)
		return rc;
	mca_osc_pvas_count(accumulates, 1);
	mca_osc_pvas_operation_init(&operation, &ompi_mpi_op_replace.op, type);
	if (mca_osc_pvas_is_atomic(&operation, at)) {
		mca_osc_pvas_begin_atomic(m, target);
		mca_osc_pvas_compare_exchange(operation.bytes, at, compare, origin, result);
		mca_osc_pvas_end_atomic(m);
		return OMPI_SUCCESS;
	}
	mca_osc_pvas_will_store(m);
	mca_osc_pvas_lock_accumulates(m, target->state);
	memcpy(result, at, type->super.size);
	if (!memcmp(result, compare, type->super.size))
		memcpy(at, origin, type->super.size);
	mca_osc_pvas_unlock_accumulates(target->state);
	return OMPI_SUCCESS;
}

int mca_osc_pvas_compare_and_swap(const void *origin, const void *compare, void *result,
				  struct ompi_datatype_t *type, int rank, ptrdiff_t disp,
				  ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	struct mca_osc_pvas_target *target = &m->targets[rank];
	char *at = find_number(m, target, disp, type);

	if (__builtin_expect(!at || !is_comparable(type), 0))
		return compare_and_swap_any(origin, compare, result, type, rank, disp, win);
	begin_change(m, target);
	if (type->super.size == 8)
		compare_exchange64(at, compare, origin, result);
	else
		compare_exchange32(at, compare, origin, result);
	end_change(m);
	return OMPI_SUCCESS;
}
