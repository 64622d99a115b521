/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The byte transfer layer "pvas" for Open MPI 4.1: ranks that are tasks of one
 * PVAS space. One address space means that a peer's pointer is good as it is.
 *
 *  component.c  the component: counters, init, the modex
 *  parameters.c its parameters
 *  module.c     endpoints
 *  frag.c       fragments
 *  send.c       fragments into the peer's memory
 *  progress.c   fragments out of ours, completions
 *  box.c        fast boxes: who has one
 *  rdma.c       get, put and atomics: loads and stores
 *  copy.c       long copies, shared by both sides
 *  watch.c      peers that end too early
 *  crowd.c      waiting in MPI_Init, if there are few processors
 *  ring.c       the queue and the boxes themselves
 *
 * Memory. A rank has a *port*, whose address its peers find in the space, with
 * one queue for all of them; a busy peer gets a *fast box* beside it. Both lie
 * in the reader's memory, so that what was sent stays when the sender goes, and
 * both are small: what finds no room is left where it is, as a fragment that
 * is passed by reference, and comes back over @returned, or as a request of the
 * upper layer, which tries again. There is little else: 40 bytes for a peer, and
 * fragments while they are used.
 *
 * Order. Fragments between two ranks arrive in the order they were sent: those
 * in a box wait for those sent through the queue before them, the queue is used
 * only when the box is empty, and what waits in @pending is before all later ones.
 *
 * Locks, none held over a callback: an endpoint's, pvas_lock() (where it writes,
 * and what it has in @pending), then @lock of the component (lists). Only one
 * thread at a time reads port and boxes: it holds @progressing.
 */
#ifndef BTL_PVAS_H
#define BTL_PVAS_H

#include "opal_config.h"

#include "opal/class/opal_free_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/threads/mutex.h"
#include "opal/util/proc.h"

#include <linux/pvas.h>
#include <setjmp.h>

#include "ring.h"

#define PVAS_BTL_MODEX_VERSION 2

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
 * struct pvas_port - what peers see of a rank
 * @queue:	of all peers that have no box
 * @job:	where a peer that copies from us would like to have help
 * @told:	what peers must know, for those that find the port by its rank's name
 * @returned:	fragments of ours that receivers are done with: a stack that
 *		only we take from, and always all of it
 * @left:	by partition: peers that ended as they should
 */
struct pvas_port {
	struct pvas_ring queue;
	struct pvas_job job;
	struct pvas_modex told;
	_Alignas(PVAS_LINE) struct pvas_frag *returned;
	_Alignas(PVAS_LINE) uint64_t left[PVAS_BTL_WORDS];
};

/**
 * struct pvas_box - a fast box: a ring with one writer, in the reader's memory
 * @closing:	the reader wants it back
 * @abandoned:	the writer uses it no more
 * @behind:	the writer's: its last record went into the queue
 */
struct pvas_box {
	struct pvas_ring ring;
	_Alignas(PVAS_LINE) uint32_t closing;
	uint32_t abandoned;
	uint32_t behind;
	_Alignas(PVAS_LINE) char data[];
};

/* Why boxes are looked at: a peer asked for one in vain, or time has passed */
enum pvas_look { PVAS_LOOK_ASKED, PVAS_LOOK_TICKED, PVAS_LOOKS };

/**
 * struct pvas_given - what its reader knows of a box
 * @at_once:	records to take in one turn
 * @from:	the writer
 * @gen:	its generation
 * @closing:	it was told to leave
 * @head_at:	the ring's head at the last look
 */
struct pvas_given {
	struct pvas_box *box;
	int at_once;
	uint32_t from;
	uint32_t gen;
	bool closing;
	uint64_t head_at[PVAS_LOOKS];
};

/**
 * struct mca_btl_base_endpoint_t - a peer
 * @box:	written by the peer when it gives us one
 * @sent:	messages without a box, since the last time we asked for one
 * @waiting:	how many of its fragments are in the component's @pending
 * @held_up:	one of them has found no room in this turn
 * @asked:	how often we asked for a box
 * @gone:	the peer has ended
 */
struct mca_btl_base_endpoint_t {
	struct opal_proc_t *proc;
	struct pvas_port *port;
	struct pvas_box *box;
	uint32_t gen;
	uint32_t sent;
	uint16_t waiting;
	uint16_t held_up;
	uint16_t index;
	uint8_t asked;
	bool gone;
};
typedef struct mca_btl_base_endpoint_t pvas_endpoint_t;

/**
 * struct pvas_peers - endpoints that were made together
 */
struct pvas_peers {
	struct pvas_peers *next;
	unsigned int nr;
	pvas_endpoint_t endpoints[];
};

/**
 * struct pvas_frag - a descriptor; its buffer follows it
 * @segments:	the buffer, and the user's memory if it is sent from there
 * @next:	in a stack of returned or of free ones
 * @bytes:	it has in all
 */
struct pvas_frag {
	mca_btl_base_descriptor_t base;
	mca_btl_base_segment_t segments[2];
	struct pvas_frag *next;
	struct mca_btl_base_endpoint_t *endpoint;
	uint32_t bytes;
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
	unsigned long long bytes_most;
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

#define PVAS_LOCKS 8

/**
 * struct pvas_component - the component and all it has
 * @index:	our partition
 * @table:	all partitions
 * @given:	@nr_given boxes of at most @box_limit, that we read from
 * @peers:	all endpoints, which take @peer_bytes
 * @budget:	bytes for them, boxes and small fragments
 * @locks:	of endpoints, some of which share one
 * @free_frags:	small fragments
 * @nr_small:	all there are, free or not, at most @small_limit; @nr_large: those too long for that
 * @got_frags:	how often one was needed
 * @starved:	there was none, and no callback since then
 * @pending:	fragments that found no room
 * @done:	descriptors whose callbacks are due
 * @watched:	the endpoint to look at next
 */
struct pvas_component {
	mca_btl_base_component_3_0_0_t super;

	unsigned int queue_size;
	unsigned int box_threshold;
	unsigned int box_max;
	unsigned int box_size;
	unsigned int idle_ms;
	unsigned int copy_limit;
	unsigned int share_limit;
	unsigned int share_piece;
	int frag_max;
	bool watch;

	uint32_t index;
	uint32_t gen;
	uint32_t space;
	unsigned int shift;
	const struct pvas_part *table;

	struct pvas_port *port;
	int queue_at_once;
	struct pvas_given *given;
	unsigned int nr_given;
	unsigned int box_limit;
	struct pvas_peers *peers;
	size_t peer_bytes;
	size_t budget;
	opal_mutex_t locks[PVAS_LOCKS];

	opal_mutex_t lock;
	struct pvas_frag *free_frags;
	int nr_small;
	int small_limit;
	int nr_large;
	unsigned int got_frags;
	bool starved;
	opal_list_t pending;
	opal_list_t done;
	int nr_pending;
	int nr_done;
	struct pvas_peers *watched;
	unsigned int watched_nr;
	int progressing;
	unsigned int turns;

	struct pvas_counters counters;
};

/* The one name that Open MPI looks for */
extern struct pvas_component mca_btl_pvas_component __attribute__((visibility("default")));

extern struct pvas_module mca_btl_pvas;

#define PVAS_SMALL 128	/* bytes in a small fragment: all headers fit */
#define PVAS_SMALL_FRAG (sizeof(struct pvas_frag) + PVAS_SMALL)

/* Two for each use: a fragment is free only after its callback, which may need one. */
#define PVAS_FEWEST_FRAGS 2

/* What finds no room, and is longer than this, is left in place. */
#define PVAS_WORTH_A_REFERENCE 256

#define pvas_count(counter, n) \
	(mca_btl_pvas_component.counters.counter += (n))

/* Is this task of our space, in this generation, still there? Two plain loads. */
static inline bool pvas_alive(uint32_t index, uint32_t gen)
{
	const struct pvas_part *part = &mca_btl_pvas_component.table[index];

	return __atomic_load_n(&part->state, __ATOMIC_ACQUIRE) == PVAS_PART_RUNNING &&
	       __atomic_load_n(&part->gen, __ATOMIC_RELAXED) == gen;
}

static inline size_t pvas_between(size_t least, size_t value, size_t most)
{
	if (value < least)
		return least;
	return value < most ? value : most;
}

static inline opal_mutex_t *pvas_lock(const struct mca_btl_base_endpoint_t *ep)
{
	return &mca_btl_pvas_component.locks[ep->index % PVAS_LOCKS];
}

/* module.c */
#define PVAS_PORT_NAME_MAX 32
void pvas_port_name(char name[PVAS_PORT_NAME_MAX], const opal_process_name_t *rank);

/* component.c */
void pvas_hold(long bytes);
void *pvas_map(size_t bytes);
void pvas_unmap(void *p, size_t bytes);

/* parameters.c */
void pvas_register_parameters(void);
void pvas_check_parameters(void);

/* frag.c */
void pvas_frag_put(struct pvas_frag *frag);
bool pvas_frag_put_quietly(struct pvas_frag *frag);
void pvas_frag_tick(void);
mca_btl_base_descriptor_t *pvas_alloc(struct mca_btl_base_module_t *btl,
				      struct mca_btl_base_endpoint_t *endpoint, uint8_t order,
				      size_t size, uint32_t flags);
int pvas_free(struct mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor);
mca_btl_base_descriptor_t *pvas_prepare_src(struct mca_btl_base_module_t *btl,
					    struct mca_btl_base_endpoint_t *endpoint,
					    struct opal_convertor_t *convertor, uint8_t order,
					    size_t reserve, size_t *size, uint32_t flags);

/* send.c */
int pvas_send(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
	      struct mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag);
int pvas_sendi(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
	       struct opal_convertor_t *convertor, void *header, size_t header_size,
	       size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
	       mca_btl_base_descriptor_t **descriptor);
int pvas_send_pending(void);

/* progress.c */
int pvas_progress(void);
int pvas_read(struct pvas_ring *ring, int *at_once);
void pvas_done(struct pvas_frag *frag);

/* box.c */
void pvas_box_asked(uint32_t from, uint32_t gen, struct pvas_box **offer);
int pvas_box_poll(void);
void pvas_box_tick(void);
bool pvas_box_leave(struct mca_btl_base_endpoint_t *endpoint, struct pvas_box *box);

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

/* crowd.c */
void pvas_crowd_wait(void);
void pvas_crowd_go_on(void);

/* watch.c */
extern __thread sigjmp_buf *pvas_may_fault;
void pvas_watch_start(void);
void pvas_watch_stop(void);
void pvas_watch_step(void);
void pvas_peer_gone(struct mca_btl_base_endpoint_t *endpoint);
void pvas_say_goodbye(struct mca_btl_base_endpoint_t *endpoint);

#endif /* BTL_PVAS_H */
