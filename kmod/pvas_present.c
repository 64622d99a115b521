// SPDX-License-Identifier: GPL-2.0-only
/* How much of a range of addresses has page tables, which freeing it takes time for. */
#include <linux/mm.h>
#include <linux/pgtable.h>

#include "pvas.h"

/* The first table or leaf from *@at on that covers at most PUD_SIZE, or NULL. Moves *@at. */
static pud_t *pvas_next_pud(struct mm_struct *mm, unsigned long *at, unsigned long end)
{
	unsigned long next;
	pgd_t *pgd;
	p4d_t *p4d;
	pud_t *pud;

	for (; *at < end; *at = next) {
		pgd = pgd_offset(mm, *at);
		next = pgd_addr_end(*at, end);
		if (pgd_none(*pgd))
			continue;
		p4d = p4d_offset(pgd, *at);
		next = p4d_addr_end(*at, end);
		if (p4d_none(*p4d))
			continue;
		pud = pud_offset(p4d, *at);
		next = pud_addr_end(*at, end);
		if (!pud_none(*pud))
			return pud;
	}
	return NULL;
}

/*
 * The end of a part of [@from, @end) that has at most *@room entries for PMD_SIZE bytes,
 * each of which is a huge page or a table. *@room becomes what is left of it. A range that
 * nobody has touched costs no more than a few steps, however large it is. The caller holds
 * mmap_lock, so that no table is freed.
 */
unsigned long pvas_present_end(struct mm_struct *mm, unsigned long from, unsigned long end,
			       unsigned int *room)
{
	unsigned long at = from, next;
	pud_t *pud;
	pmd_t *pmd;

	for (pud = pvas_next_pud(mm, &at, end); pud; pud = pvas_next_pud(mm, &at, end)) {
		/* A leaf, or none any more. */
		if (pud_bad(READ_ONCE(*pud))) {
			at = pud_addr_end(at, end);
			continue;
		}
		pmd = pmd_offset(pud, at);
		next = pmd_addr_end(at, end);
		if (!pmd_none(READ_ONCE(*pmd))) {
			if (!*room)
				return at;
			--*room;
		}
		at = next;
	}
	return end;
}
