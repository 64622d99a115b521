// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Accumulates. The origin's data are brought into an array of elements, unless they are one; the
 * target's elements are combined where they are, piece by piece: one by an atomic instruction, more
 * of them with the target's lock for accumulates.
 */
#include "element.h"
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

/* So many elements that it is faster to wait for all who use atomic instructions */
static bool is_long(const struct call *c)
{
	return c->n >= 4 + (size_t)c->m->size;
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
		mca_osc_pvas_begin_atomic(c->m, c->target->state);
		rc = combine_elements(c);
		mca_osc_pvas_end_atomic(c->m);
		return rc;
	}
	mca_osc_pvas_lock_accumulates(c->m, c->target->state);
	if (is_long(c)) {
		mca_osc_pvas_wait_for_atomics(c->m);
		c->alone = true;
	}
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

/* An origin's buffer */
struct buffer {
	void *at;
	size_t count;
	ompi_datatype_t *type;
};

/*
 * MPI_REPLACE and MPI_NO_OP of elements of several types. Others may use atomic instructions on
 * some of these elements, each of which they can access by itself.
 */
static int exchange_mixed(struct call *c, const struct buffer *origin, const struct buffer *result)
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

static int with_origin(struct call *c, const struct buffer *origin)
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

static int with_result(struct call *c, const struct buffer *origin, const struct buffer *result)
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

static size_t bytes_of(const struct buffer *b)
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

static bool is_alone(const struct mca_osc_pvas_target *target)
{
	return target->access == MCA_OSC_PVAS_EXCLUSIVE && !opal_using_threads();
}

static int accumulate(struct mca_osc_pvas_module *m, int rank, ptrdiff_t disp,
		      const struct buffer *origin, const struct buffer *result,
		      const struct buffer *where, ompi_op_t *op)
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
	c.alone = is_alone(c.target);
	return with_result(&c, origin, result);
}

/* False: not at that address */
static inline bool combine_one(struct mca_osc_pvas_module *m, int rank, char *at,
			  const struct mca_osc_pvas_operation *o, const void *from, void *old)
{
	struct mca_osc_pvas_target *target = &m->targets[rank];

	if (!mca_osc_pvas_is_atomic(o, at))
		return false;
	if (is_alone(target)) {
		mca_osc_pvas_will_store(m);
		mca_osc_pvas_apply_plain(o, at, from, old, 1);
		return true;
	}
	/* A plain store, if nobody asks for the value before */
	if (o->kind == MCA_OSC_PVAS_REPLACE)
		mca_osc_pvas_will_store(m);
	mca_osc_pvas_begin_atomic(m, target->state);
	mca_osc_pvas_apply_atomic(o, at, from, old, 1);
	mca_osc_pvas_end_atomic(m);
	return true;
}

/* One element of a predefined type on either side, which most accumulates are */
static int accumulate_one(struct mca_osc_pvas_module *m, int rank, ptrdiff_t disp,
			  const void *from, void *old, ompi_datatype_t *type, ompi_op_t *op)
{
	const struct buffer origin = { (void *)from, 1, type }, result = { old, 1, type };
	struct mca_osc_pvas_operation operation;
	char *at;
	int rc = mca_osc_pvas_reach(m, rank, disp, 1, type, &at);

	if (rc)
		return rc;
	mca_osc_pvas_operation_init(&operation, op, type);
	if (!combine_one(m, rank, at, &operation, from, old))
		return accumulate(m, rank, disp, &origin, old ? &result : NULL, &origin, op);
	mca_osc_pvas_count(accumulates, 1);
	return OMPI_SUCCESS;
}

/* As many of them, which are an array on either side */
static int accumulate_array(struct mca_osc_pvas_module *m, int rank, ptrdiff_t disp,
			    const void *from, size_t n, ompi_datatype_t *type, ompi_op_t *op)
{
	struct call c = {
		.m = m, .target = &m->targets[rank], .count = n, .type = type, .from = from,
		.n = n, .flat = true,
	};
	int rc = mca_osc_pvas_reach(m, rank, disp, n, type, &c.at);

	mca_osc_pvas_count(accumulates, 1);
	if (rc)
		return rc == MCA_OSC_PVAS_NOTHING ? OMPI_SUCCESS : rc;
	mca_osc_pvas_operation_init(&c.operation, op, type);
	mca_osc_pvas_will_store(m);
	c.alone = is_alone(c.target);
	return combine(&c);
}

/* ---- MPI's calls ---- */

int mca_osc_pvas_accumulate(const void *origin, int origin_count,
			    struct ompi_datatype_t *origin_type, int rank, ptrdiff_t disp,
			    int count, struct ompi_datatype_t *type, struct ompi_op_t *op,
			    ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);

	if (count == origin_count && type == origin_type && ompi_datatype_is_predefined(type)) {
		if (count == 1)
			return accumulate_one(m, rank, disp, origin, NULL, type, op);
		if (mca_coll_pvas_is_plain(type))
			return accumulate_array(m, rank, disp, origin, count, type, op);
	}
	return accumulate(m, rank, disp,
			  &(struct buffer) { (void *)origin, origin_count, origin_type }, NULL,
			  &(struct buffer) { NULL, count, type }, op);
}

int mca_osc_pvas_get_accumulate(const void *origin, int origin_count,
				struct ompi_datatype_t *origin_type, void *result,
				int result_count, struct ompi_datatype_t *result_type, int rank,
				ptrdiff_t disp, int count, struct ompi_datatype_t *type,
				struct ompi_op_t *op, ompi_win_t *win)
{
	return accumulate(mca_osc_pvas_module_of(win), rank, disp,
			  &(struct buffer) { (void *)origin, origin_count, origin_type },
			  &(struct buffer) { result, result_count, result_type },
			  &(struct buffer) { NULL, count, type }, op);
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

int mca_osc_pvas_fetch_and_op(const void *origin, void *result, struct ompi_datatype_t *type,
			      int rank, ptrdiff_t disp, struct ompi_op_t *op, ompi_win_t *win)
{
	if (!ompi_datatype_is_predefined(type))
		return MPI_ERR_TYPE;
	return accumulate_one(mca_osc_pvas_module_of(win), rank, disp, origin, result, type, op);
}

static bool is_comparable(const ompi_datatype_t *type)
{
	const uint32_t data = type->super.flags & OMPI_DATATYPE_FLAG_DATA_TYPE;

	return ompi_datatype_is_predefined(type) && data != OMPI_DATATYPE_FLAG_DATA_FLOAT &&
	       data != OMPI_DATATYPE_FLAG_DATA_COMPLEX && mca_coll_pvas_is_plain(type);
}

int mca_osc_pvas_compare_and_swap(const void *origin, const void *compare, void *result,
				  struct ompi_datatype_t *type, int rank, ptrdiff_t disp,
				  ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	struct call c = { .m = m, .target = &m->targets[rank] };
	int rc;

	if (!is_comparable(type))
		return MPI_ERR_TYPE;
	rc = mca_osc_pvas_reach(m, rank, disp, 1, type, &c.at);
	if (rc)
		return rc;
	mca_osc_pvas_count(accumulates, 1);
	mca_osc_pvas_operation_init(&c.operation, &ompi_mpi_op_replace.op, type);
	if (mca_osc_pvas_is_atomic(&c.operation, c.at)) {
		mca_osc_pvas_begin_atomic(m, c.target->state);
		mca_osc_pvas_compare_exchange(c.operation.bytes, c.at, compare, origin, result);
		mca_osc_pvas_end_atomic(m);
		return OMPI_SUCCESS;
	}
	mca_osc_pvas_will_store(m);
	mca_osc_pvas_lock_accumulates(m, c.target->state);
	memcpy(result, c.at, type->super.size);
	if (!memcmp(result, compare, type->super.size))
		memcpy(c.at, origin, type->super.size);
	mca_osc_pvas_unlock_accumulates(c.target->state);
	return OMPI_SUCCESS;
}
