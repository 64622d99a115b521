// SPDX-License-Identifier: LGPL-2.1-or-later
/* User backend: far memory as others may see it, in the header, as pvasps reads it. */
#include "far.h"
#include "../header.h"

static uint32_t kib(uint64_t bytes)
{
	return bytes >> 10 > UINT32_MAX ? UINT32_MAX : (uint32_t)(bytes >> 10);
}

static void publish_part(const struct user_space *u, unsigned int row)
{
	struct pvas_part *p = pvas_header_part(u->header, u->space->first + row);
	uint64_t allocated, resident;

	u->far->ops->row(row, &allocated, &resident);
	p->reserved[PVAS_PART_FAR] = kib(allocated);
	p->reserved[PVAS_PART_FAR_LOCAL] = kib(resident);
}

PVAS_PUBLIC void libpvas_far_publish(const struct pvas_space *space,
				     const struct pvas_far_seen *seen)
{
	const struct user_space *u = space->priv;
	unsigned int row;

	if (!u->far)
		return;
	*(struct pvas_far_seen *)((char *)u->header + PVAS_HEADER_FAR) = *seen;
	for (row = 0; row < u->far->rows; row++)
		publish_part(u, row);
}
