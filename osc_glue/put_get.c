// SPDX-License-Identifier: LGPL-2.1-or-later
/* Put and get: one copy between the origin's buffer and the window, done when the call returns. */
#include "reach.h"

#include "ompi/request/request.h"

int mca_osc_pvas_put(const void *origin, int origin_count, struct ompi_datatype_t *origin_type,
		     int rank, ptrdiff_t disp, int count, struct ompi_datatype_t *type,
		     ompi_win_t *win)
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

int mca_osc_pvas_get(void *origin, int origin_count, struct ompi_datatype_t *origin_type,
		     int rank, ptrdiff_t disp, int count, struct ompi_datatype_t *type,
		     ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	char *at;
	int rc = mca_osc_pvas_reach(m, rank, disp, count, type, &at);

	mca_osc_pvas_count(gets, 1);
	if (rc == MCA_OSC_PVAS_NOTHING)
		return OMPI_SUCCESS;
	return rc ? rc : mca_osc_pvas_copy(origin, origin_count, origin_type, at, count, type);
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
