// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Accumulates. The origin's data are brought into an array of elements, unless they are one; the
 * target's elements are combined where they are, piece by piece: one by an atomic instruction, more
 * of them with the target's lock for accumulates.
 */
#include "accumulate.h"
#include "exclude.h"

#include <stdlib.h>

#include "ompi/request/request.h"

/* Pieces of the target that are enumerated at a time */
#define PIECES 32

/* Arrays up to this size are on the stack. */
#define SMALL 1024

/**
 * struct call - an accumulate
 * @old:	an array of elements for the values before the operation, or NULL
 * @n:		elements
 * @flat:	the target's elements are one array
 * @alone:	no other rank or thread can accumulate there meanwhile
 */
struct call {
	struct mca_osc_pvas_module *m;
	struct mca_osc_pvas_target *target;
	struct mca_osc_pvas_operation operation;
	char *at;
	size_t count;
	ompi_datatype_t *type;
	const char *from;
	char *old;
	size_t n;
	bool flat;
	bool alone;
};

/*
 * For the holder of the lock: if nobody uses atomic instructions there, or if there are so many
 * elements that it is faster to wait for all who do. False: use them, too.
 */
static inline bool keep_atomics_away(struct mca_osc_pvas_module *m,
				     const struct mca_osc_pvas_state *state, size_t n)
{
	if (!mca_osc_pvas_load(&state->atomics))
		return true;
	if (n < 4 + (size_t)m->size)
		return false;
	mca_osc_pvas_wait_for_atomics(m);
	return true;
}

/* ---- combining ---- */

/* The caller has announced it, or has the lock. */
static inline void combine_array(struct call *c, char *to, const char *from, char *old, size_t n)
{
	if (!c->alone && mca_osc_pvas_is_atomic(&c->operation, to))
		mca_osc_pvas_apply_atomic(&c->operation, to, from, old, n);
	else
		mca_osc_pvas_apply_plain(&c->operation, to, from, old, n);
}

/* The target's elements have gaps between them, but none inside. */
static void combine_pieces(struct call *c)
{
	const size_t element = c->operation.type->super.size, bytes = c->n * element;
	struct iovec pieces[PIECES];
	opal_convertor_t convertor;
	size_t done = 0, length;
	uint32_t nr, i;
	int ended = 0;

	OBJ_CONSTRUCT(&convertor, opal_convertor_t);
	opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &c->type->super,
						 c->count, c->at, 0, &convertor);
	while (done < bytes && !ended) {
		nr = PIECES;
		length = bytes;
		ended = opal_convertor_raw(&convertor, pieces, &nr, &length);
		if (!nr)
			break;
		for (i = 0; i < nr && done < bytes; i++) {
			length = pieces[i].iov_len;
			length = length < bytes - done ? length : bytes - done;
			combine_array(c, pieces[i].iov_base, c->from ? c->from + done : NULL,
				      c->old ? c->old + done : NULL, length / element);
			done += length;
		}
	}
	OBJ_DESTRUCT(&convertor);
}

/* Elements with gaps inside: those of the target are brought into an array, and back. */
static int combine_copy(struct call *c)
{
	const struct mca_osc_pvas_operation *o = &c->operation;
	char *copy = malloc(c->n * mca_coll_pvas_extent(o->type) + 1);
	int rc;

	if (!copy)
		return OMPI_ERR_OUT_OF_RESOURCE;
	rc = mca_coll_pvas_copy_data(copy, c->n, o->type, c->at, c->count, c->type);
	mca_osc_pvas_apply_plain(o, copy, c->from, c->old, c->n);
	if (rc == OMPI_SUCCESS && o->kind != MCA_OSC_PVAS_NO_OP)
		rc = mca_coll_pvas_copy_data(c->at, c->count, c->type, copy, c->n, o->type);
	free(copy);
	return rc;
}

/* Are these data an array of elements? What lies in gaps is not ours to read or write. */
static bool is_array(const ompi_datatype_t *element, const ompi_datatype_t *type, size_t count)
{
	return mca_coll_pvas_is_plain(element) && mca_osc_pvas_is_contiguous(type, count);
}

static inline int combine_elements(struct call *c)
{
	if (c->flat)
		combine_array(c, c->at + c->type->super.true_lb, c->from, c->old, c->n);
	else if (!mca_coll_pvas_is_plain(c->operation.type))
		return combine_copy(c);
	else
		combine_pieces(c);
	return OMPI_SUCCESS;
}

static inline bool is_one_atomic(const struct call *c)
{
	return c->n == 1 && c->flat &&
	       mca_osc_pvas_is_atomic(&c->operation, c->at + c->type->super.true_lb);
}

/*
 * MPI demands that elements are atomic, but programs exchange structures as arrays of bytes, so
 * all of an accumulate is, with respect to others of more than one element.
 */
static int combine(struct call *c)
{
	int rc;

	if (c->alone)
		return combine_elements(c);
	if (is_one_atomic(c)) {
		mca_osc_pvas_begin_atomic(c->m, c->target);
		rc = combine_elements(c);
		mca_osc_pvas_end_atomic(c->m);
		return rc;
	}
	mca_osc_pvas_lock_accumulates(c->m, c->target->state);
	c->alone = keep_atomics_away(c->m, c->target->state, c->n);
	rc = combine_elements(c);
	mca_osc_pvas_unlock_accumulates(c->target->state);
	return rc;
}

/* ---- the origin's side ---- */

/**
 * struct array - a buffer of the origin as an array of elements
 * @copy:	allocated, if not NULL
 */
struct array {
	char *at;
	char *copy;
	char small[SMALL];
};

/* False: no memory. The data are not yet copied. */
static bool make_array(struct array *a, const struct call *c, void *buf, size_t count,
		       const ompi_datatype_t *type)
{
	const size_t bytes = c->n * mca_coll_pvas_extent(c->operation.type);

	a->copy = NULL;
	a->at = a->small;
	if (is_array(c->operation.type, type, count))
		a->at = (char *)buf + type->super.true_lb;
	else if (bytes > SMALL)
		a->at = a->copy = malloc(bytes);
	return a->at;
}

static bool is_copied(const struct array *a)
{
	return a->at == a->small || a->copy;
}

/*
 * MPI_REPLACE and MPI_NO_OP of elements of several types. Others may use atomic instructions on
 * some of these elements, each of which they can access by itself.
 */
static int exchange_mixed(struct call *c, const struct mca_osc_pvas_buffer *origin,
			  const struct mca_osc_pvas_buffer *result)
{
	int rc = OMPI_SUCCESS;

	if (c->operation.kind > MCA_OSC_PVAS_NO_OP)
		return MPI_ERR_OP;
	mca_osc_pvas_lock_accumulates(c->m, c->target->state);
	mca_osc_pvas_wait_for_atomics(c->m);
	if (result)
		rc = mca_coll_pvas_copy_data(result->at, result->count, result->type, c->at,
					     c->count, c->type);
	if (rc == OMPI_SUCCESS && c->operation.kind == MCA_OSC_PVAS_REPLACE)
		rc = mca_coll_pvas_copy_data(c->at, c->count, c->type, origin->at, origin->count,
					     origin->type);
	mca_osc_pvas_unlock_accumulates(c->target->state);
	return rc;
}

static int with_origin(struct call *c, const struct mca_osc_pvas_buffer *origin)
{
	struct array a;
	int rc = OMPI_SUCCESS;

	if (c->operation.kind == MCA_OSC_PVAS_NO_OP)
		return combine(c);
	if (!make_array(&a, c, origin->at, origin->count, origin->type))
		return OMPI_ERR_OUT_OF_RESOURCE;
	if (is_copied(&a))
		rc = mca_coll_pvas_copy_data(a.at, c->n, c->operation.type, origin->at,
					     origin->count, origin->type);
	c->from = a.at;
	if (rc == OMPI_SUCCESS)
		rc = combine(c);
	free(a.copy);
	return rc;
}

static int with_result(struct call *c, const struct mca_osc_pvas_buffer *origin,
		       const struct mca_osc_pvas_buffer *result)
{
	struct array a;
	int rc;

	if (!result)
		return with_origin(c, origin);
	if (!make_array(&a, c, result->at, result->count, result->type))
		return OMPI_ERR_OUT_OF_RESOURCE;
	c->old = a.at;
	rc = with_origin(c, origin);
	if (rc == OMPI_SUCCESS && is_copied(&a))
		rc = mca_coll_pvas_copy_data(result->at, result->count, result->type, a.at, c->n,
					     c->operation.type);
	free(a.copy);
	return rc;
}

static size_t bytes_of(const struct mca_osc_pvas_buffer *b)
{
	return b->count * b->type->super.size;
}

/* Open MPI has checked that the operator is defined for the type. */
static ompi_datatype_t *element_of(ompi_datatype_t *type)
{
	if (ompi_datatype_is_predefined(type))
		return type;
	return ompi_datatype_get_single_predefined_type_from_args(type);
}

int mca_osc_pvas_accumulate_any(struct mca_osc_pvas_module *m, int rank, ptrdiff_t disp,
				const struct mca_osc_pvas_buffer *origin,
				const struct mca_osc_pvas_buffer *result,
				const struct mca_osc_pvas_buffer *where, ompi_op_t *op)
{
	struct call c = {
		.m = m, .target = &m->targets[rank], .count = where->count, .type = where->type,
	};
	int rc = mca_osc_pvas_reach(m, rank, disp, where->count, where->type, &c.at);

	mca_osc_pvas_count(accumulates, 1);
	if (rc)
		return rc == MCA_OSC_PVAS_NOTHING ? OMPI_SUCCESS : rc;
	mca_osc_pvas_operation_init(&c.operation, op, element_of(where->type));
	mca_osc_pvas_will_store(m);
	if ((c.operation.kind != MCA_OSC_PVAS_NO_OP && bytes_of(origin) != bytes_of(where)) ||
	    (result && bytes_of(result) < bytes_of(where)))
		return MPI_ERR_TRUNCATE;
	if (!c.operation.type)
		return exchange_mixed(&c, origin, result);
	c.n = bytes_of(where) / c.operation.type->super.size;
	c.flat = is_array(c.operation.type, c.type, c.count);
	c.alone = mca_osc_pvas_is_alone(c.target);
	return with_result(&c, origin, result);
}

/* While some may use atomic instructions there, and the lock is held */
__attribute__((noinline)) static void apply_few(char *at, const void *from, size_t n,
						ompi_datatype_t *type, ompi_op_t *op)
{
	struct mca_osc_pvas_operation operation;

	mca_osc_pvas_operation_init(&operation, op, type);
	if (mca_osc_pvas_is_atomic(&operation, at))
		mca_osc_pvas_apply_atomic(&operation, at, from, NULL, n);
	else
		mca_osc_pvas_apply_plain(&operation, at, from, NULL, n);
}

/* Elements of a predefined type, which are an array on either side */
static inline int accumulate_array(struct mca_osc_pvas_module *m, int rank, ptrdiff_t disp,
				   const void *from, size_t n, ompi_datatype_t *type,
				   ompi_op_t *op)
{
	/* The size matters for sums of integers only, all of which have an instruction. */
	const struct mca_osc_pvas_operation operation = {
		mca_osc_pvas_kind_of(op, type), op, type, type->super.size,
	};
	struct mca_osc_pvas_target *target = &m->targets[rank];
	char *at = mca_osc_pvas_reach_quickly(m, target, disp, n * type->super.size);
	const bool alone = mca_osc_pvas_is_alone(target);
	int rc;

	mca_osc_pvas_count(accumulates, 1);
	if (__builtin_expect(!at, 0)) {
		rc = mca_osc_pvas_reach(m, rank, disp, n, type, &at);
		if (rc)
			return rc == MCA_OSC_PVAS_NOTHING ? OMPI_SUCCESS : rc;
	}
	mca_osc_pvas_will_store(m);
	if (!alone)
		mca_osc_pvas_lock_accumulates(m, target->state);
	if (alone || keep_atomics_away(m, target->state, n))
		mca_osc_pvas_apply_plain(&operation, at, from, NULL, n);
	else
		apply_few(at, from, n, type, op);
	if (!alone)
		mca_osc_pvas_unlock_accumulates(target->state);
	return OMPI_SUCCESS;
}

/* ---- MPI's calls ---- */

__attribute__((noinline)) static int
accumulate_typed(const void *origin, int origin_count, struct ompi_datatype_t *origin_type,
		 int rank, ptrdiff_t disp, int count, struct ompi_datatype_t *type,
		 struct ompi_op_t *op, ompi_win_t *win)
{
	const struct mca_osc_pvas_buffer origins = { (void *)origin, origin_count, origin_type };
	const struct mca_osc_pvas_buffer where = { NULL, count, type };

	return mca_osc_pvas_accumulate_any(mca_osc_pvas_module_of(win), rank, disp, &origins, NULL,
					   &where, op);
}

int mca_osc_pvas_accumulate(const void *origin, int origin_count,
			    struct ompi_datatype_t *origin_type, int rank, ptrdiff_t disp,
			    int count, struct ompi_datatype_t *type, struct ompi_op_t *op,
			    ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);

	if (__builtin_expect(count != origin_count || type != origin_type ||
			     !ompi_datatype_is_predefined(type), 0))
		return accumulate_typed(origin, origin_count, origin_type, rank, disp, count, type,
					op, win);
	if (count == 1)
		return mca_osc_pvas_accumulate_one(m, rank, disp, origin, NULL, type, op);
	if (__builtin_expect(!mca_osc_pvas_is_dense(type), 0))
		return accumulate_typed(origin, origin_count, origin_type, rank, disp, count, type,
					op, win);
	return accumulate_array(m, rank, disp, origin, count, type, op);
}

int mca_osc_pvas_get_accumulate(const void *origin, int origin_count,
				struct ompi_datatype_t *origin_type, void *result,
				int result_count, struct ompi_datatype_t *result_type, int rank,
				ptrdiff_t disp, int count, struct ompi_datatype_t *type,
				struct ompi_op_t *op, ompi_win_t *win)
{
	const struct mca_osc_pvas_buffer origins = { (void *)origin, origin_count, origin_type };
	const struct mca_osc_pvas_buffer results = { result, result_count, result_type };
	const struct mca_osc_pvas_buffer where = { NULL, count, type };
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);

	if (count == 1 && result_count == 1 && type == result_type &&
	    (op == &ompi_mpi_op_no_op.op || (origin_count == 1 && type == origin_type)) &&
	    ompi_datatype_is_predefined(type))
		return mca_osc_pvas_accumulate_one(m, rank, disp, origin, result, type, op);
	return mca_osc_pvas_accumulate_any(m, rank, disp, &origins, &results, &where, op);
}

int mca_osc_pvas_raccumulate(const void *origin, int origin_count,
			     struct ompi_datatype_t *origin_type, int rank, ptrdiff_t disp,
			     int count, struct ompi_datatype_t *type, struct ompi_op_t *op,
			     ompi_win_t *win, struct ompi_request_t **request)
{
	*request = &ompi_request_empty;
	mca_osc_pvas_poll(mca_osc_pvas_module_of(win));
	return mca_osc_pvas_accumulate(origin, origin_count, origin_type, rank, disp, count, type,
				       op, win);
}

int mca_osc_pvas_rget_accumulate(const void *origin, int origin_count,
				 struct ompi_datatype_t *origin_type, void *result,
				 int result_count, struct ompi_datatype_t *result_type, int rank,
				 ptrdiff_t disp, int count, struct ompi_datatype_t *type,
				 struct ompi_op_t *op, ompi_win_t *win,
				 struct ompi_request_t **request)
{
	*request = &ompi_request_empty;
	mca_osc_pvas_poll(mca_osc_pvas_module_of(win));
	return mca_osc_pvas_get_accumulate(origin, origin_count, origin_type, result, result_count,
					   result_type, rank, disp, count, type, op, win);
}
