// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Dynamic windows: the regions that a rank has attached. Peers read its list where it is, without a
 * lock: an entry is invalid while its size is 0, and is changed only then. A full list is replaced
 * by a copy of twice the size; peers may go on with the old one, which lacks only what is
 * attached later, and stays until the window is freed.
 */
#include "osc_pvas.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 16

static void invalidate(struct mca_osc_pvas_region *region)
{
	__atomic_store_n(&region->bytes, 0, __ATOMIC_SEQ_CST);
}

static struct mca_osc_pvas_regions *grow(struct mca_osc_pvas_state *own)
{
	struct mca_osc_pvas_regions *old = own->regions, *new;
	const size_t nr = old ? 2 * old->nr : FIRST_SIZE;

	new = calloc(1, sizeof(*new) + nr * sizeof(new->region[0]));
	if (!new)
		return NULL;
	if (old)
		memcpy(new->region, old->region, old->nr * sizeof(old->region[0]));
	new->older = old;
	new->nr = nr;
	__atomic_store_n(&own->regions, new, __ATOMIC_RELEASE);
	return new;
}

static struct mca_osc_pvas_region *free_region(struct mca_osc_pvas_regions *list)
{
	size_t i;

	for (i = 0; list && i < list->nr; i++)
		if (!list->region[i].bytes)
			return &list->region[i];
	return NULL;
}

static bool overlaps(const struct mca_osc_pvas_regions *list, const char *base, size_t bytes)
{
	size_t i;

	for (i = 0; list && i < list->nr; i++)
		if (list->region[i].bytes && base < list->region[i].base + list->region[i].bytes &&
		    list->region[i].base < base + bytes)
			return true;
	return false;
}

static int attach(struct mca_osc_pvas_module *m, char *base, size_t bytes)
{
	struct mca_osc_pvas_region *region;

	/* There is nothing to access, so no entry. */
	if (!bytes) {
		m->nr_empty++;
		return OMPI_SUCCESS;
	}
	if (overlaps(m->own->regions, base, bytes))
		return OMPI_ERR_RMA_ATTACH;
	region = free_region(m->own->regions);
	if (!region && !grow(m->own))
		return OMPI_ERR_RMA_ATTACH;
	region = free_region(m->own->regions);
	__atomic_store_n(&region->base, base, __ATOMIC_RELEASE);
	__atomic_store_n(&region->bytes, bytes, __ATOMIC_RELEASE);
	return OMPI_SUCCESS;
}

static int detach(struct mca_osc_pvas_module *m, const char *base)
{
	struct mca_osc_pvas_regions *list;
	bool found = false;
	size_t i;

	for (list = m->own->regions; list; list = list->older)
		for (i = 0; i < list->nr; i++) {
			if (!list->region[i].bytes || list->region[i].base != base)
				continue;
			invalidate(&list->region[i]);
			found = true;
		}
	if (!found && !m->nr_empty)
		return MPI_ERR_BASE;
	if (!found)
		m->nr_empty--;
	return OMPI_SUCCESS;
}

int mca_osc_pvas_attach(ompi_win_t *win, void *base, size_t bytes)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	int rc;

	if (m->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		return OMPI_ERR_RMA_FLAVOR;
	OPAL_THREAD_LOCK(&win->w_lock);
	rc = attach(m, base, bytes);
	OPAL_THREAD_UNLOCK(&win->w_lock);
	return rc;
}

int mca_osc_pvas_detach(ompi_win_t *win, const void *base)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	int rc;

	if (m->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		return OMPI_ERR_RMA_FLAVOR;
	OPAL_THREAD_LOCK(&win->w_lock);
	rc = detach(m, base);
	OPAL_THREAD_UNLOCK(&win->w_lock);
	return rc;
}

/* A region that is detached, and attached again with another base, has size 0 in between. */
static bool contains(const struct mca_osc_pvas_region *region, const char *from, const char *to)
{
	const size_t bytes = mca_osc_pvas_load(&region->bytes);
	const char *base = __atomic_load_n(&region->base, __ATOMIC_ACQUIRE);

	return bytes && from >= base && to <= base + bytes &&
	       __atomic_load_n(&region->bytes, __ATOMIC_RELAXED) == bytes;
}

bool mca_osc_pvas_is_attached(struct mca_osc_pvas_target *target, const char *from, const char *to)
{
	const struct mca_osc_pvas_regions *list = mca_osc_pvas_load(&target->state->regions);
	const uint32_t hint = __atomic_load_n(&target->hint, __ATOMIC_RELAXED);
	uint32_t i;

	if (!list)
		return false;
	if (hint < list->nr && contains(&list->region[hint], from, to))
		return true;
	for (i = 0; i < list->nr; i++) {
		if (!contains(&list->region[i], from, to))
			continue;
		__atomic_store_n(&target->hint, i, __ATOMIC_RELAXED);
		return true;
	}
	return false;
}

void mca_osc_pvas_free_regions(struct mca_osc_pvas_regions *list)
{
	struct mca_osc_pvas_regions *older;

	for (; list; list = older) {
		older = list->older;
		free(list);
	}
}
