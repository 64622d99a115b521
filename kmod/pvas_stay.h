/* SPDX-License-Identifier: GPL-2.0-only */
/* The exec of a task that stays in its space, for pvas_exec.c. */
#ifndef PVAS_STAY_H
#define PVAS_STAY_H

#include "pvas.h"

struct linux_binprm;

struct pvas_member *pvas_stay_begin(const struct linux_binprm *bprm);
bool pvas_stay_may(struct pvas_member *m);
void pvas_stay_end(struct pvas_member *m);
int pvas_stay_enter(struct pvas_member *m, struct file *exe);

#endif /* PVAS_STAY_H */
