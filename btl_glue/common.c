// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Shared with coll/pvas: the check of Open MPI's version, the records that ranks publish, and
 * copying.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/runtime/opal.h"
#include "opal/util/output.h"

#include "../libpvas/pvas.h"
#include "open_mpi.h"

/*
 * Open MPI checks only the version of the component interface, which is the same in
 * 4.1 and 5.0. The headers that we include describe internal structures of one series,
 * so check the series before touching any of them.
 */
bool mca_btl_pvas_fits_open_mpi(const mca_base_component_t *us, const char *name)
{
	int major = 0, minor = 0;

	sscanf(opal_version_string, "%d.%d", &major, &minor);
	if (major == us->mca_project_major_version && minor == us->mca_project_minor_version)
		return true;
	opal_output(0, "%s: built for Open MPI %d.%d, not for this %s: not used (rebuild it)", name,
		    us->mca_project_major_version, us->mca_project_minor_version,
		    opal_version_string);
	return false;
}

#define PORT_NAME_MAX 48

static void port_name(char full[PORT_NAME_MAX], const char *name, const opal_process_name_t *rank)
{
	snprintf(full, PORT_NAME_MAX, "%s %x.%x", name, rank->jobid, rank->vpid);
}

/*
 * Publish the modex twice: by name in the space, where looking it up is cheap, and through
 * PMIx, which makes peers wait until it is there. @modex is read by peers. If the table of
 * names is full, *@in_space is false, and PMIx's copy is used.
 */
int mca_btl_pvas_publish(const mca_base_component_t *us, const char *name, void *modex, size_t size,
			 bool *in_space)
{
	char full[PORT_NAME_MAX];
	int rc;

	OPAL_MODEX_SEND(rc, MCA_BTL_PVAS_MODEX_LOCAL, us, modex, size);
	if (rc != OPAL_SUCCESS)
		return rc;
	port_name(full, name, &OPAL_PROC_MY_NAME);
	*in_space = !pvas_name_export(full, modex);
	return OPAL_SUCCESS;
}

/*
 * A launcher that starts ranks in their order gives them partitions in that order. To
 * search all of them for each peer takes time in proportion to the square of the ranks.
 */
static unsigned int likely_index(const opal_process_name_t *rank)
{
	return pvas_task_get_index() + rank->vpid - OPAL_PROC_MY_NAME.vpid;
}

/* The modex that the peer published in its space; false if not there, or not yet */
bool mca_btl_pvas_look_up_in_space(const char *name, const opal_process_name_t *rank, void *modex,
				   size_t size)
{
	char full[PORT_NAME_MAX];
	void *at;
	sigjmp_buf back;

	port_name(full, name, rank);
	if (pvas_name_import(likely_index(rank), full, &at) < 0 &&
	    pvas_name_import(PVAS_ANY, full, &at) < 0)
		return false;
	/* If the peer ends during the copy, the fault handler returns here. */
	if (sigsetjmp(back, 0)) {
		mca_btl_pvas_fault_return = NULL;
		return false;
	}
	mca_btl_pvas_fault_return = &back;
	memcpy(modex, at, size);
	mca_btl_pvas_fault_return = NULL;
	return true;
}

/* The modex from PMIx: slower, for each lookup takes two thread switches in libpmix */
static bool look_up_in_pmix(const mca_base_component_t *us, const opal_process_name_t *rank,
			    void *modex, size_t wanted)
{
	void *received = NULL;
	size_t size = 0;
	int rc;

	MCA_BTL_PVAS_MODEX_RECV(rc, us, rank, &received, &size);
	if (rc != OPAL_SUCCESS || !received)
		return false;
	if (size == wanted)
		memcpy(modex, received, size);
	free(received);
	return size == wanted;
}

bool mca_btl_pvas_look_up(const mca_base_component_t *us, const char *name,
			  const opal_process_name_t *rank, void *modex, size_t size)
{
	return mca_btl_pvas_look_up_in_space(name, rank, modex, size) ||
	       look_up_in_pmix(us, rank, modex, size);
}

/* ---- the machine ---- */

/* Has the machine several NUMA nodes? Their list is like 0 or 0-1. */
bool mca_btl_pvas_several_nodes(void)
{
	FILE *f = fopen("/sys/devices/system/node/online", "re");
	char list[64] = "";

	if (!f)
		return false;
	if (!fgets(list, sizeof(list), f))
		list[0] = 0;
	fclose(f);
	return strpbrk(list, "-,");
}

#define PAGE 4096U

/* A new page is allocated on the node of the processor that touches it first: ours. */
void mca_btl_pvas_touch_pages(char *p, size_t size)
{
	volatile char *to = p, *end = p + size;

	while (to < end) {
		*to = *to;
		to = (char *)(((uintptr_t)to | (PAGE - 1)) + 1);
	}
}

typedef long long pair __attribute__((vector_size(16), may_alias, aligned(1)));

/* Four at a time, loaded before they are stored; the compiler would make memcpy() of less. */
static void copy_vectors(void *to, const void *from, size_t n)
{
	const pair *s = from;
	pair *d = to;
	size_t i;

	for (i = 0; i < n / sizeof(*s) / 4 * 4; i += 4) {
		const pair a = s[i], b = s[i + 1], c = s[i + 2], e = s[i + 3];

		d[i] = a;
		d[i + 1] = b;
		d[i + 2] = c;
		d[i + 3] = e;
	}
	memcpy(&d[i], &s[i], n - i * sizeof(*s));
}

/* glibc takes "rep movsb" for this length. */
#define PIECE (256 << 10)

/*
 * From some KiB on glibc takes "rep movsb", which processors of AMD's Zen 3 make 10 to 20 times
 * slower if the destination is 1 to 31 bytes behind the source, modulo a page; and there it is if
 * malloc() has put one array of a power of two behind another. From the size of a cache on it
 * takes a loop, which on Zen 5 is 1.2 to 1.6 times as slow.
 */
void mca_btl_pvas_copy_long(void *to, const void *from, size_t n)
{
	const size_t behind = ((uintptr_t)to - (uintptr_t)from) % 4096;
	const char *f = from;
	char *t = to;

	if (__builtin_expect(behind && behind < 32, 0)) {
		copy_vectors(to, from, n);
		return;
	}
	for (; n > PIECE; n -= PIECE, t += PIECE, f += PIECE)
		memcpy(t, f, PIECE);
	memcpy(t, f, n);
}
