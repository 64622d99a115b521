// SPDX-License-Identifier: LGPL-2.1-or-later
/* Put and get: one copy between the origin's buffer and the window, done when the call returns. */
#include "reach.h"

#include "ompi/request/request.h"

/* A function of its own, so that numbers are moved without a stack frame */
__attribute__((noinline)) static int move_bytes(void *to, const void *from, size_t bytes)
{
	mca_btl_pvas_memcpy(to, from, bytes);
	return OMPI_SUCCESS;
}

/* Numbers by single instructions: nobody sees half of one. */
static inline int move(void *to, const void *from, size_t bytes)
{
	mca_osc_pvas_count(bytes_copied, bytes);
	if (bytes == 8)
		memcpy(to, from, 8);
	else if (bytes == 4)
		memcpy(to, from, 4);
	else
		return move_bytes(to, from, bytes);
	return OMPI_SUCCESS;
}

/*
 * Where the data at the target are, if they are the same array of bytes on both sides; else, or if
 * mca_osc_pvas_reach() must decide, NULL.
 */
static inline char *find_array(const struct mca_osc_pvas_module *m, int origin_count,
			       const struct ompi_datatype_t *origin_type, int rank,
			       ptrdiff_t disp, int count, const struct ompi_datatype_t *type,
			       size_t *bytes)
{
	/* Sizes so large that the product wraps around are not for here. */
	if (__builtin_expect(type != origin_type || count != origin_count ||
			     !mca_osc_pvas_is_dense(type) || type->super.size > UINT32_MAX, 0))
		return NULL;
	*bytes = (uint32_t)count * type->super.size;
	return mca_osc_pvas_reach_quickly(m, &m->targets[rank], disp, *bytes);
}

__attribute__((noinline)) static int
put_any(const void *origin, int origin_count, struct ompi_datatype_t *origin_type, int rank,
	ptrdiff_t disp, int count, struct ompi_datatype_t *type, ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	char *at;
	int rc = mca_osc_pvas_reach(m, rank, disp, count, type, &at);

	mca_osc_pvas_count(puts, 1);
	if (rc == MCA_OSC_PVAS_NOTHING)
		return origin_count && origin_type->super.size ? MPI_ERR_TRUNCATE : OMPI_SUCCESS;
	if (rc)
		return rc;
	mca_osc_pvas_will_store(m);
	return mca_osc_pvas_copy(at, count, type, origin, origin_count, origin_type);
}

int mca_osc_pvas_put(const void *origin, int origin_count, struct ompi_datatype_t *origin_type,
		     int rank, ptrdiff_t disp, int count, struct ompi_datatype_t *type,
		     ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	size_t bytes;
	char *at = find_array(m, origin_count, origin_type, rank, disp, count, type, &bytes);

	if (__builtin_expect(!at, 0))
		return put_any(origin, origin_count, origin_type, rank, disp, count, type, win);
	mca_osc_pvas_count(puts, 1);
	mca_osc_pvas_will_store(m);
	return move(at, origin, bytes);
}

__attribute__((noinline)) static int
get_any(void *origin, int origin_count, struct ompi_datatype_t *origin_type, int rank,
	ptrdiff_t disp, int count, struct ompi_datatype_t *type, ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	char *at;
	int rc = mca_osc_pvas_reach(m, rank, disp, count, type, &at);

	mca_osc_pvas_count(gets, 1);
	if (rc == MCA_OSC_PVAS_NOTHING)
		return OMPI_SUCCESS;
	return rc ? rc : mca_osc_pvas_copy(origin, origin_count, origin_type, at, count, type);
}

int mca_osc_pvas_get(void *origin, int origin_count, struct ompi_datatype_t *origin_type,
		     int rank, ptrdiff_t disp, int count, struct ompi_datatype_t *type,
		     ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	size_t bytes;
	char *at = find_array(m, origin_count, origin_type, rank, disp, count, type, &bytes);

	if (__builtin_expect(!at, 0))
		return get_any(origin, origin_count, origin_type, rank, disp, count, type, win);
	mca_osc_pvas_count(gets, 1);
	return move(origin, at, bytes);
}

/*
 * Those with a request: it is complete at once, so MPI_Wait() and MPI_Test() never call Open MPI's
 * progress function, and a program that polls with them relies on ours.
 */
int mca_osc_pvas_rput(const void *origin, int origin_count, struct ompi_datatype_t *origin_type,
		      int rank, ptrdiff_t disp, int count, struct ompi_datatype_t *type,
		      ompi_win_t *win, struct ompi_request_t **request)
{
	*request = &ompi_request_empty;
	mca_osc_pvas_poll(mca_osc_pvas_module_of(win));
	return mca_osc_pvas_put(origin, origin_count, origin_type, rank, disp, count, type, win);
}

int mca_osc_pvas_rget(void *origin, int origin_count, struct ompi_datatype_t *origin_type,
		      int rank, ptrdiff_t disp, int count, struct ompi_datatype_t *type,
		      ompi_win_t *win, struct ompi_request_t **request)
{
	*request = &ompi_request_empty;
	mca_osc_pvas_poll(mca_osc_pvas_module_of(win));
	return mca_osc_pvas_get(origin, origin_count, origin_type, rank, disp, count, type, win);
}
