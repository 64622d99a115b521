/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The only file that depends on Open MPI's version: the names that changed after 4.1. */
#ifndef BTL_PVAS_OPEN_MPI_H
#define BTL_PVAS_OPEN_MPI_H

#include "opal_config.h"

#include <string.h>

#include "opal/util/proc.h"

#if OPAL_MAJOR_VERSION >= 5

#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"

#define MCA_BTL_PVAS_MODEX_LOCAL PMIX_LOCAL
#define MCA_BTL_PVAS_MODEX_GLOBAL PMIX_GLOBAL
/* A peer that has published nothing is asked no second time: PMIx_Get would wait for it. */
#define MCA_BTL_PVAS_MODEX_RECV OPAL_MODEX_RECV_IMMEDIATE
#define MCA_COLL_PVAS_BASE_VERSION MCA_COLL_BASE_VERSION_2_4_0
#define MCA_BTL_PVAS_NR_PROCS opal_process_info.num_procs
#define MCA_BTL_PVAS_FT_EVENT

/* Hands a message to the upper layer, which keeps nothing of it. */
#define mca_btl_pvas_trigger(btl_, tag_, segments_, count_)					\
	do {											\
		const mca_btl_active_message_callback_t *am_ =					\
			&mca_btl_base_active_message_trigger[tag_];				\
		const mca_btl_base_receive_descriptor_t received_ = {				\
			.des_segments = (segments_), .des_segment_count = (count_),		\
			.tag = (tag_), .cbdata = am_->cbdata,					\
		};										\
												\
		am_->cbfunc((btl_), &received_);						\
	} while (0)

/* The record of @size bytes that @rank has published; false if it has not. */
static inline bool mca_btl_pvas_get_now(const opal_process_name_t *rank, const char *key, void *to,
					size_t size)
{
	uint8_t *bytes = NULL;
	size_t received = 0;
	int rc;

	OPAL_MODEX_RECV_STRING_IMMEDIATE(rc, key, rank, &bytes, &received);
	if (rc != PMIX_SUCCESS || !bytes)
		return false;
	if (received == size)
		memcpy(to, bytes, size);
	free(bytes);
	return received == size;
}

#else

#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"
#include "ompi/mca/rte/rte.h"

#define MCA_BTL_PVAS_MODEX_LOCAL OPAL_PMIX_LOCAL
#define MCA_BTL_PVAS_MODEX_GLOBAL OPAL_PMIX_GLOBAL
#define MCA_BTL_PVAS_MODEX_RECV OPAL_MODEX_RECV
#define MCA_COLL_PVAS_BASE_VERSION MCA_COLL_BASE_VERSION_2_0_0
#define MCA_BTL_PVAS_NR_PROCS ompi_process_info.num_procs
/* Of a checkpoint */
static inline int mca_btl_pvas_ft_event(int state)
{
	(void)state;
	return OPAL_SUCCESS;
}
#define MCA_BTL_PVAS_FT_EVENT .btl_ft_event = mca_btl_pvas_ft_event,

#define mca_btl_pvas_trigger(btl_, tag_, segments_, count_)					\
	do {											\
		const mca_btl_active_message_callback_t *am_ =					\
			&mca_btl_base_active_message_trigger[tag_];				\
		mca_btl_base_descriptor_t received_;						\
												\
		received_.des_segments = (segments_);						\
		received_.des_segment_count = (count_);						\
		am_->cbfunc((btl_), (tag_), &received_, am_->cbdata);				\
	} while (0)

static inline bool mca_btl_pvas_get_now(const opal_process_name_t *rank, const char *key, void *to,
					size_t size)
{
	opal_value_t *value = NULL, *now;
	opal_list_t infos;
	bool got = false;

	OBJ_CONSTRUCT(&infos, opal_list_t);
	now = OBJ_NEW(opal_value_t);
	now->key = strdup(OPAL_PMIX_IMMEDIATE);
	now->type = OPAL_BOOL;
	now->data.flag = true;
	opal_list_append(&infos, &now->super);
	if (opal_pmix.get(rank, key, &infos, &value) == OPAL_SUCCESS && value) {
		got = value->type == OPAL_BYTE_OBJECT &&
		      (size_t)value->data.bo.size == size;
		if (got)
			memcpy(to, value->data.bo.bytes, size);
		OBJ_RELEASE(value);
	}
	OPAL_LIST_DESTRUCT(&infos);
	return got;
}

#endif

/* All but the error, which only functions for several requests set; the macro is of 4.1.2. */
#define mca_btl_pvas_copy_status(to, from)			\
	do {							\
		(to)->MPI_TAG = (from)->MPI_TAG;		\
		(to)->MPI_SOURCE = (from)->MPI_SOURCE;		\
		(to)->_ucount = (from)->_ucount;		\
		(to)->_cancelled = (from)->_cancelled;		\
	} while (0)

#endif /* BTL_PVAS_OPEN_MPI_H */
