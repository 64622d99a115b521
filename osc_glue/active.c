// SPDX-License-Identifier: LGPL-2.1-or-later
/* Active target: fence; post, start, complete, wait and test. */
#include "osc_pvas.h"

#include <stdlib.h>

static bool is_passive(const struct mca_osc_pvas_module *m)
{
	return m->lock_all || m->nr_locks;
}

/*
 * Also with MPI_MODE_NOPRECEDE: a rank that has passed the fence may store into the window of one
 * that has not yet, and still uses it.
 */
int mca_osc_pvas_fence(int assertion, ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);

	if (is_passive(m) || m->nr_started >= 0)
		return OMPI_ERR_RMA_SYNC;
	mca_osc_pvas_barrier(m);
	m->fence = assertion & MPI_MODE_NOSUCCEED ? MCA_OSC_PVAS_CLOSED : MCA_OSC_PVAS_OPEN;
	return OMPI_SUCCESS;
}

/* The group's ranks in the window, which the caller frees; NULL: no memory */
static int *ranks_of(struct ompi_group_t *group, const ompi_win_t *win)
{
	const int n = group->grp_proc_count;
	int *ranks = malloc((n + 1) * sizeof(*ranks)), *all = malloc((n + 1) * sizeof(*all));
	int i;

	for (i = 0; all && i < n; i++)
		all[i] = i;
	if (!ranks || !all ||
	    ompi_group_translate_ranks(group, n, all, win->w_group, ranks) != OMPI_SUCCESS) {
		free(ranks);
		ranks = NULL;
	}
	free(all);
	return ranks;
}

static bool all_in_window(const int *ranks, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (ranks[i] < 0)
			return false;
	return true;
}

/* ---- access epoch ---- */

/* The difference is right also when the numbers have wrapped around. */
static bool has_posted(const struct mca_osc_pvas_module *m, int rank)
{
	return (int32_t)(mca_osc_pvas_load(&m->own->posted[rank]) -
			 m->targets[rank].nr_started) > 0;
}

int mca_osc_pvas_start(struct ompi_group_t *group, int assertion, ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	const int n = group->grp_proc_count;
	struct mca_osc_pvas_target *target;
	int i;

	if (is_passive(m) || m->nr_started >= 0 || m->fence == MCA_OSC_PVAS_USED)
		return OMPI_ERR_RMA_SYNC;
	m->started = ranks_of(group, win);
	if (!m->started)
		return OMPI_ERR_OUT_OF_RESOURCE;
	if (!all_in_window(m->started, n)) {
		free(m->started);
		m->started = NULL;
		return MPI_ERR_GROUP;
	}
	m->fence = MCA_OSC_PVAS_CLOSED;
	for (i = 0; i < n; i++) {
		target = &m->targets[m->started[i]];
		if (!(assertion & MPI_MODE_NOCHECK)) {
			mca_osc_pvas_wait_until(m, has_posted(m, m->started[i]));
			target->nr_started++;
		}
		target->access = MCA_OSC_PVAS_STARTED;
	}
	m->nr_started = n;
	return OMPI_SUCCESS;
}

int mca_osc_pvas_complete_epoch(ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	struct mca_osc_pvas_target *target;
	int i;

	if (m->nr_started < 0)
		return OMPI_ERR_RMA_SYNC;
	mca_osc_pvas_complete_all();
	for (i = 0; i < m->nr_started; i++) {
		target = &m->targets[m->started[i]];
		if (!mca_osc_pvas_alive(target))
			mca_osc_pvas_end_job(m, m->started[i]);
		target->access = MCA_OSC_PVAS_NONE;
		__atomic_fetch_add(&target->state->completed, 1, __ATOMIC_RELEASE);
	}
	free(m->started);
	m->started = NULL;
	m->nr_started = -1;
	return OMPI_SUCCESS;
}

/* ---- exposure epoch ---- */

int mca_osc_pvas_post(struct ompi_group_t *group, int assertion, ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	const int n = group->grp_proc_count;
	struct mca_osc_pvas_target *origin;
	int *ranks, i;

	if (m->exposed || m->fence == MCA_OSC_PVAS_USED)
		return OMPI_ERR_RMA_SYNC;
	ranks = ranks_of(group, win);
	if (!ranks)
		return OMPI_ERR_OUT_OF_RESOURCE;
	if (!all_in_window(ranks, n)) {
		free(ranks);
		return MPI_ERR_GROUP;
	}
	mca_osc_pvas_complete_all();
	for (i = 0; !(assertion & MPI_MODE_NOCHECK) && i < n; i++) {
		origin = &m->targets[ranks[i]];
		if (!mca_osc_pvas_alive(origin))
			mca_osc_pvas_end_job(m, ranks[i]);
		__atomic_store_n(&origin->state->posted[m->rank], ++origin->nr_posted,
				 __ATOMIC_RELEASE);
	}
	free(ranks);
	m->fence = MCA_OSC_PVAS_CLOSED;
	m->expected += n;
	m->exposed = true;
	return OMPI_SUCCESS;
}

static bool all_completed(const struct mca_osc_pvas_module *m)
{
	return mca_osc_pvas_load(&m->own->completed) >= m->expected;
}

int mca_osc_pvas_wait(ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);

	if (!m->exposed)
		return OMPI_ERR_RMA_SYNC;
	mca_osc_pvas_wait_until(m, all_completed(m));
	m->exposed = false;
	return OMPI_SUCCESS;
}

int mca_osc_pvas_test(ompi_win_t *win, int *flag)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);

	if (!m->exposed)
		return OMPI_ERR_RMA_SYNC;
	*flag = all_completed(m);
	if (*flag)
		m->exposed = false;
	else
		mca_osc_pvas_poll(m);
	return OMPI_SUCCESS;
}
