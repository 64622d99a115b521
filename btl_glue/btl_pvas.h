/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The byte transfer layer "pvas" for Open MPI 4.1: ranks that are tasks of one
 * PVAS space. One address space means that a peer's pointer is good as it is.
 *
 *  component.c  the component: parameters, init, the modex
 *  module.c     endpoints, fragments
 *  send.c       fragments into the peer's memory
 *  progress.c   fragments out of ours, completions
 *  box.c        fast boxes: who has one
 *  rdma.c       get, put and atomics: loads and stores
 *  copy.c       long copies, shared by both sides
 *  watch.c      peers that end too early
 *  ring.c       the queue and the boxes themselves
 *
 * Memory. A rank has a *port*, whose address its peers get by the modex, with
 * one queue for all of them; a busy peer gets a *fast box* beside it. Both lie
 * in the reader's memory, so that what was sent stays when the sender goes. A
 * fragment that does not fit into a queue is passed by reference, and stays
 * the sender's until it comes back over @returned.
 *
 * Order. Fragments between two ranks arrive in the order they were sent: those
 * in a new box wait for those still in the queue, a box is left only empty,
 * and what finds no room waits in @pending, before all later ones.
 *
 * Locks, none held over a callback: @lock of an endpoint (its tail and its
 * pending list), then @lock of the component (lists). Only one thread at a
 * time reads port and boxes: it holds @progressing.
 */
#ifndef BTL_PVAS_H
#define BTL_PVAS_H

#include "opal_config.h"

#include "opal/class/opal_free_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/threads/mutex.h"

#include <linux/pvas.h>
#include <setjmp.h>

#include "ring.h"

#define PVAS_BTL_MODEX_VERSION 1

/* Bits for all partitions there can be */
#define PVAS_BTL_WORDS (PVAS_MAX_TASKS / 64 + 1)

struct pvas_frag;

/**
 * struct pvas_job - a copy that a peer makes and we may help with; see copy.c
 * @left:	pieces not taken yet
 * @busy:	some peer uses it
 * @helped:	pieces that we have done
 * @nr:		all pieces
 * @piece:	bytes in each but the last
 */
struct pvas_job {
	_Alignas(PVAS_LINE) int64_t left;
	_Alignas(PVAS_LINE) int64_t busy;
	int64_t helped;
	int64_t nr;
	char *to;
	const char *from;
	size_t size;
	size_t piece;
};

/**
 * struct pvas_port - what peers see of a rank
 * @queue:	of all peers that have no box
 * @job:	where a peer that copies from us would like to have help
 * @returned:	fragments of ours that receivers are done with: a stack that
 *		only we take from, and always all of it
 * @left:	by partition: peers that ended as they should
 */
struct pvas_port {
	struct pvas_ring queue;
	struct pvas_job job;
	_Alignas(PVAS_LINE) struct pvas_frag *returned;
	_Alignas(PVAS_LINE) uint64_t left[PVAS_BTL_WORDS];
};

enum pvas_box_state { PVAS_BOX_FREE, PVAS_BOX_OFFERED, PVAS_BOX_USED };

/**
 * struct pvas_box - a fast box: a ring with one writer, in the reader's memory
 * @ring:	its @tail is unused
 * @closing:	the reader wants it back
 * @abandoned:	the writer uses it no more
 * @after:	written by the writer before its first record: where in the
 *		queue its last record ended
 * @state:	the reader's
 * @at_once:	records to take in one turn
 * @from:	the writer
 * @gen:	its generation
 * @used_to:	the head when last looked for idle boxes
 */
struct pvas_box {
	struct pvas_ring ring;
	_Alignas(PVAS_LINE) uint32_t closing;
	_Alignas(PVAS_LINE) uint32_t abandoned;
	uint64_t after;
	_Alignas(PVAS_LINE) int state;
	int at_once;
	uint32_t from;
	uint32_t gen;
	uint64_t used_to;
	_Alignas(PVAS_LINE) char data[];
};

/**
 * struct pvas_modex - what a rank tells its peers
 */
struct pvas_modex {
	uint32_t version;
	uint32_t space;
	uint32_t index;
	uint32_t gen;
	int32_t pid;
	uint32_t eager_limit;
	uint64_t port;
};

/**
 * struct mca_btl_base_endpoint_t - a peer
 * @super:	in the component's list of all
 * @offer:	written by the peer: the box it gives us
 * @box:	the one in use
 * @tail:	ours in @box
 * @seen:	its head when we last looked
 * @queue_end:	where our last record in the peer's queue ends
 * @sent:	messages without a box, since the last time we asked for one
 * @asked:	how often we did
 * @gone:	the peer has ended
 * @pending:	fragments that found no room
 * @waiting:	@pending is not empty: read without the lock
 */
struct mca_btl_base_endpoint_t {
	opal_list_item_t super;
	opal_mutex_t lock;
	struct pvas_port *port;
	struct opal_proc_t *proc;
	uint32_t index;
	uint32_t gen;
	struct pvas_box *offer;
	struct pvas_box *box;
	uint64_t tail;
	uint64_t seen;
	uint64_t queue_end;
	uint32_t sent;
	uint32_t asked;
	bool gone;
	bool waiting;
	opal_list_t pending;
};
typedef struct mca_btl_base_endpoint_t pvas_endpoint_t;
OBJ_CLASS_DECLARATION(pvas_endpoint_t);

/**
 * struct pvas_frag - a descriptor; its buffer follows it
 * @segments:	the buffer, and the user's memory if it is sent from there
 * @next:	in a stack of returned ones
 * @list:	where it came from
 */
struct pvas_frag {
	mca_btl_base_descriptor_t base;
	mca_btl_base_segment_t segments[2];
	struct pvas_frag *next;
	struct mca_btl_base_endpoint_t *endpoint;
	opal_free_list_t *list;
	mca_btl_base_tag_t tag;
	_Alignas(16) char buffer[];
};
typedef struct pvas_frag pvas_frag_t;
OBJ_CLASS_DECLARATION(pvas_frag_t);

/**
 * struct pvas_reference - the body of a PVAS_KIND_REF record
 */
struct pvas_reference {
	struct pvas_frag *frag;
	struct pvas_port *port;
	uint32_t gen;
	uint32_t count;
	mca_btl_base_segment_t segments[2];
};

/* Shown as MPI_T performance variables. Not exact where threads race. */
struct pvas_counters {
	unsigned long long bytes_held;
	unsigned long long fast_boxes;
	unsigned long long eager;
	unsigned long long references;
	unsigned long long gets;
	unsigned long long puts;
	unsigned long long atomics;
	unsigned long long bytes_copied;
	unsigned long long pieces_helped;
	unsigned long long waits;
};

struct pvas_module {
	mca_btl_base_module_t super;
	mca_btl_base_module_error_cb_fn_t error_cb;
};

/**
 * struct pvas_component - the component and all it has
 * @index:	our partition
 * @table:	all partitions
 * @boxes:	@nr_boxes of at most @box_max, that we read from
 * @small:	free lists by the size of the buffer
 * @done:	descriptors whose callbacks are due
 * @waiters:	endpoints that have something pending
 * @watched:	the endpoint to look at next
 */
struct pvas_component {
	mca_btl_base_component_3_0_0_t super;

	unsigned int queue_size;
	unsigned int box_threshold;
	unsigned int box_max;
	unsigned int box_size;
	unsigned int share_limit;
	unsigned int share_piece;
	int list_num;
	int list_max;
	int list_inc;
	bool watch;

	uint32_t index;
	uint32_t gen;
	uint32_t space;
	unsigned int shift;
	const struct pvas_part *table;

	struct pvas_port *port;
	size_t port_bytes;
	struct pvas_box **boxes;
	unsigned int nr_boxes;
	unsigned int next_box;

	opal_free_list_t small;
	opal_free_list_t eager;
	opal_free_list_t large;

	opal_mutex_t lock;
	opal_list_t endpoints;
	opal_list_t done;
	int nr_done;
	int waiters;
	opal_list_item_t *watched;
	int progressing;
	unsigned int idle;

	struct pvas_counters counters;
};

/* The one name that Open MPI looks for */
extern struct pvas_component mca_btl_pvas_component __attribute__((visibility("default")));

extern struct pvas_module mca_btl_pvas;

#define PVAS_SMALL 256	/* bytes in a small fragment: all headers fit */

#define pvas_count(counter, n) \
	(mca_btl_pvas_component.counters.counter += (n))

/* Is this task of our space, in this generation, still there? Two plain loads. */
static inline bool pvas_alive(uint32_t index, uint32_t gen)
{
	const struct pvas_part *part = &mca_btl_pvas_component.table[index];

	return __atomic_load_n(&part->state, __ATOMIC_ACQUIRE) == PVAS_PART_RUNNING &&
	       __atomic_load_n(&part->gen, __ATOMIC_RELAXED) == gen;
}

/* component.c */
void *pvas_map(size_t bytes);
void pvas_unmap(void *p, size_t bytes);

/* module.c */
struct pvas_frag *pvas_frag_get(struct mca_btl_base_endpoint_t *endpoint, size_t size,
				uint8_t order, uint32_t flags);
void pvas_frag_put(struct pvas_frag *frag);

/* send.c */
int pvas_send(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
	      struct mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag);
int pvas_sendi(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
	       struct opal_convertor_t *convertor, void *header, size_t header_size,
	       size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
	       mca_btl_base_descriptor_t **descriptor);
int pvas_send_pending(struct mca_btl_base_endpoint_t *endpoint);

/* progress.c */
int pvas_progress(void);
void pvas_done(struct pvas_frag *frag);

/* box.c */
void pvas_box_asked(uint32_t from, uint32_t gen, struct pvas_box **offer);
int pvas_box_poll(void (*deliver)(union pvas_head *head));
void pvas_box_free_all(void);
bool pvas_box_enter(struct mca_btl_base_endpoint_t *endpoint);
bool pvas_box_leave(struct mca_btl_base_endpoint_t *endpoint);

/* copy.c */
bool pvas_copy_from(struct mca_btl_base_endpoint_t *ep, void *to, const void *from, size_t size);
void pvas_copy_help(void);

/* rdma.c */
int pvas_get(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
	     void *local_address, uint64_t remote_address,
	     mca_btl_base_registration_handle_t *local_handle,
	     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
	     int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
int pvas_put(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
	     void *local_address, uint64_t remote_address,
	     mca_btl_base_registration_handle_t *local_handle,
	     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
	     int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
int pvas_atomic_op(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
		   uint64_t remote_address, mca_btl_base_registration_handle_t *remote_handle,
		   mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
		   mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
int pvas_atomic_fop(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
		    void *local_address, uint64_t remote_address,
		    mca_btl_base_registration_handle_t *local_handle,
		    mca_btl_base_registration_handle_t *remote_handle,
		    mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
		    mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
int pvas_atomic_cswap(struct mca_btl_base_module_t *btl,
		      struct mca_btl_base_endpoint_t *endpoint, void *local_address,
		      uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
		      mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
		      uint64_t value, int flags, int order,
		      mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);

/* watch.c */
extern __thread sigjmp_buf *pvas_may_fault;
void pvas_watch_start(void);
void pvas_watch_stop(void);
void pvas_watch_step(void);
void pvas_peer_gone(struct mca_btl_base_endpoint_t *endpoint);
void pvas_say_goodbye(struct mca_btl_base_endpoint_t *endpoint);

#endif /* BTL_PVAS_H */
