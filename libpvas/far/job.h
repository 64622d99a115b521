/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pager of a job: shared by job.c, job_hold.c, job_move.c and areas.c */
#ifndef PVAS_FAR_JOB_H
#define PVAS_FAR_JOB_H

#include "../far_ops.h"
#include "far.h"
#include "store.h"

/* Map and register memory at an address: it, or -errno. */
int64_t far_job_map_at(uint64_t at, uint64_t len);

/* Free pages are mapped now. With the lock. */
void far_job_mark(uint64_t first, uint64_t count);

int64_t far_job_unmap(uint64_t addr, uint64_t len);
bool far_job_is_in_row(uint64_t addr, uint64_t len);

/* With the lock */
void far_job_pin(uint64_t page);
void far_job_unpin(uint64_t page);

/* job_hold.c: see struct pvas_far_ops */
uint64_t far_job_hold(uint64_t addr, uint64_t len, int write);
void far_job_release(uint64_t addr, uint64_t len);
uint64_t far_job_room(void);

/*
 * areas.c: the protection of a range of the program's, PROT_READ and so on. -EFAULT: there is none
 * that is the same for all of it, as not all is mapped, or by several mprotect()
 */
int far_area_protection(uint64_t addr, uint64_t len);

int64_t far_job_move(uint64_t addr, uint64_t len, uint64_t new_len, int may_move);

/* job_seen.c: see struct pvas_far_ops */
void far_job_totals(struct pvas_far_totals *totals);
void far_job_row(unsigned int row, uint64_t *allocated, uint64_t *resident);

/* Of a row, the end of the highest mapping so far: all pages behind it are free. With the lock */
uint64_t far_job_top(unsigned int row);

/* holder.c: 0 or -errno. The pager's process may execute another program if it is a task. */
extern bool far_pager_in_task;
int far_holder_start(void);
void far_holder_stop(void);

/* job_key.c: see @key of struct pvas_far_ops */
int far_job_key(const char *file, char *line);

extern const struct pvas_far_ops far_job_ops;

#endif
