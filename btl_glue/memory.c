// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory for communication, and the counters of how much of it this process holds. */
#include "btl_pvas.h"

#include <sys/mman.h>

void mca_btl_pvas_account(long bytes)
{
	struct mca_btl_pvas_counters *c = &mca_btl_pvas_component.counters;

	c->bytes_held += bytes;
	if (c->bytes_most < c->bytes_held)
		c->bytes_most = c->bytes_held;
}

void *mca_btl_pvas_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* A fork child has no use for it, and copy-on-write would cost us page faults. */
	madvise(p, bytes, MADV_DONTFORK);
	mca_btl_pvas_account(bytes);
	return p;
}

void mca_btl_pvas_unmap(void *p, size_t bytes)
{
	munmap(p, bytes);
	mca_btl_pvas_account(-(long)bytes);
}
