// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fill in a space header (see header.h). Compiled into the library and into the
 * loader: no libc, no data.
 */
#include "header.h"

#include "../kmod/pvas_elf.h"

uint32_t pvas_header_entries(unsigned int shift)
{
	uint64_t all = PVAS_ELF_ADDR_MAX >> shift;

	return all < PVAS_MAX_TASKS + 2 ? all : PVAS_MAX_TASKS + 2;
}

static size_t table_length(uint32_t entries)
{
	return pvas_elf_page_up(entries * sizeof(struct pvas_part));
}

size_t pvas_header_length(uint32_t entries)
{
	return PVAS_HEADER_TABLE + table_length(entries) +
	       entries * sizeof(struct pvas_area) + PVAS_HEADER_SCRATCH;
}

void pvas_header_init(struct pvas_header *h, unsigned int shift)
{
	h->version = PVAS_HEADER_VERSION;
	h->shift = shift;
	h->entries = pvas_header_entries(shift);
	h->length = pvas_header_length(h->entries);
	h->table = (uint64_t)h + PVAS_HEADER_TABLE;
	h->areas = h->table + table_length(h->entries);
}

void pvas_header_publish(struct pvas_header *h, uint32_t id, uint32_t first, uint32_t last)
{
	h->id = id;
	h->first = first;
	h->last = last;
	__atomic_store_n(&h->magic, PVAS_HEADER_MAGIC, __ATOMIC_RELEASE);
}
