/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of this component that coll/pvas needs, too: both compile common.c and fault.c.
 */
#ifndef BTL_PVAS_COMMON_H
#define BTL_PVAS_COMMON_H

#include "opal_config.h"

#include "opal/mca/base/base.h"
#include "opal/util/proc.h"

#include <linux/pvas.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* common.c */
bool mca_btl_pvas_fits_open_mpi(const mca_base_component_t *us, const char *name);
int mca_btl_pvas_publish(const mca_base_component_t *us, const char *name, void *modex,
			 size_t size, bool *in_space);
bool mca_btl_pvas_look_up_in_space(const char *name, const opal_process_name_t *rank, void *modex,
				   size_t size);
bool mca_btl_pvas_look_up(const mca_base_component_t *us, const char *name,
			  const opal_process_name_t *rank, void *modex, size_t size);

bool mca_btl_pvas_several_nodes(void);
void mca_btl_pvas_touch_pages(char *p, size_t size);
void mca_btl_pvas_copy_long(void *to, const void *from, size_t n);

/* memcpy() for data that can be long */
static inline void mca_btl_pvas_memcpy(void *to, const void *from, size_t n)
{
	if (n < 2048)
		memcpy(to, from, n);
	else
		mca_btl_pvas_copy_long(to, from, n);
}

/* Between two checks that all peers still run */
#define MCA_BTL_PVAS_CHECK_MS 10

/* Is it time for one? @next is the caller's. Threads may both find so. */
static inline bool mca_btl_pvas_check_is_due(uint64_t *next)
{
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	now = ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
	if (now < __atomic_load_n(next, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(next, now + MCA_BTL_PVAS_CHECK_MS, __ATOMIC_RELAXED);
	return true;
}

/**
 * struct mca_btl_pvas_faults - what the fault handlers need to know
 * @index:	our partition
 * @shift:	binary logarithm of a partition's size
 * @table:	the space's partition table
 * @lost:	called for a fault in the partition of a task that has ended, if there is
 *		no @mca_btl_pvas_fault_return; if it returns, the previous handler is called
 */
struct mca_btl_pvas_faults {
	uint32_t index;
	unsigned int shift;
	const struct pvas_part *table;
	void (*lost)(uint32_t index);
};

/* fault.c */
extern __thread sigjmp_buf *mca_btl_pvas_fault_return;
/* A peer whose memory is used from now on, and not that of a task which follows it there. */
void mca_btl_pvas_expect_faults(uint32_t index, uint32_t gen);
void mca_btl_pvas_install_fault_handlers(const struct mca_btl_pvas_faults *faults);
void mca_btl_pvas_restore_fault_handlers(void);

#endif /* BTL_PVAS_COMMON_H */
