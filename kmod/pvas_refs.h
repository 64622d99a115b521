/* SPDX-License-Identifier: GPL-2.0-only */
/* References to a task's pages: see struct pvas_refs of the ABI. */
#ifndef PVAS_REFS_H
#define PVAS_REFS_H

struct pvas_refs;

int pvas_refs_clear(struct pvas_refs *arg);

#endif
