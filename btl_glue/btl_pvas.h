/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The byte transfer layer "pvas" for Open MPI 4.1: ranks that are tasks of one
 * PVAS space. They share one address space, so a peer's pointer can be used as it is.
 *
 *  component.c     open, init and close; the counters; publishing the modex
 *  parameters.c    MCA parameters
 *  module.c        endpoints
 *  memory.c        mapped memory, the count of all that is held, and its budget
 *  frag.c          fragments
 *  send.c          writing fragments into a peer's memory
 *  progress.c      reading what peers have sent
 *  completion.c    completing our own fragments
 *  fbox.c          creating, reclaiming and releasing fast boxes
 *  rdma.c          get, put and atomics: loads and stores
 *  copy.c          long copies, shared by both sides
 *  peer_failure.c  peers that end before MPI_Finalize
 *  fault.c         faults in the memory of a peer that has ended; also in coll/pvas
 *  common.c        finding peers, and Open MPI's version; also in coll/pvas
 *  oversubscribe.c waiting in MPI_Init with more ranks than processors
 *  ring.c          the ring buffer behind the queue and the fast boxes
 *
 * Memory. A rank has a *port*, whose address its peers find in the space. It has
 * one queue for all peers; a busy peer gets a *fast box* (fbox) as well. Both are
 * in the reader's memory, so a message outlives its sender, and both are small. A
 * fragment that does not fit is passed by reference and returned through @returned,
 * or it stays a request of the upper layer, which tries again. In addition, a peer
 * takes 40 bytes, and fragments exist while they are in use.
 *
 * Order. Fragments between two ranks arrive in the order they were sent. Those in
 * a fast box wait for those sent through the queue before them, the queue is used
 * only when the fast box is empty, and no fragment overtakes one in @pending.
 *
 * Locks, none held across a callback: an endpoint's, mca_btl_pvas_endpoint_lock(),
 * protects writing to its peer and its fragments in @pending; then @lock of the
 * component protects the lists. One thread at a time reads the port and the fast
 * boxes: it holds @progressing.
 */
#ifndef BTL_PVAS_H
#define BTL_PVAS_H

#include "opal_config.h"

#include "opal/class/opal_free_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/util/proc.h"

#include <linux/pvas.h>

#include "common.h"
#include "distance.h"
#include "open_mpi.h"
#include "ring.h"

#define MCA_BTL_PVAS_NAME "btl pvas"
#define MCA_BTL_PVAS_MODEX_VERSION 2

/* A bitmap with one bit for each possible partition */
#define MCA_BTL_PVAS_BITMAP_WORDS (PVAS_MAX_TASKS / 64 + 1)

struct mca_btl_pvas_frag;

/**
 * struct mca_btl_pvas_shared_copy - a peer's copy from our memory that we share; see copy.c
 * @left:	pieces not claimed yet; can be negative
 * @busy:	in use by a peer
 * @copied_by_sender:	copied by this rank for the peer
 * @nr:		number of pieces
 * @piece:	bytes in each piece but the last
 */
struct mca_btl_pvas_shared_copy {
	_Alignas(MCA_BTL_PVAS_CACHE_LINE) int64_t left;
	_Alignas(MCA_BTL_PVAS_CACHE_LINE) int64_t busy;
	int64_t copied_by_sender;
	int64_t nr;
	char *to;
	const char *from;
	size_t size;
	size_t piece;
};

/**
 * struct mca_btl_pvas_modex - what a rank publishes to its peers
 */
struct mca_btl_pvas_modex {
	uint32_t version;
	uint32_t space;
	uint32_t index;
	uint32_t gen;
	int32_t pid;
	uint32_t eager_limit;
	uint64_t port;
};

/**
 * struct mca_btl_pvas_port - the part of a rank that its peers use
 * @queue:	shared by all peers that have no fast box
 * @shared_copy:	a peer's copy from our memory, for us to take part in
 * @modex:	for peers that find the port by the rank's name in the space
 * @returned:	our fragments that receivers have finished with: a stack, which
 *		only we empty, and always completely
 * @finalized:	bitmap by partition: peers that have completed MPI_Finalize
 */
struct mca_btl_pvas_port {
	struct mca_btl_pvas_ring queue;
	struct mca_btl_pvas_shared_copy shared_copy;
	struct mca_btl_pvas_modex modex;
	_Alignas(MCA_BTL_PVAS_CACHE_LINE) struct mca_btl_pvas_frag *returned;
	_Alignas(MCA_BTL_PVAS_CACHE_LINE) uint64_t finalized[MCA_BTL_PVAS_BITMAP_WORDS];
};

/**
 * struct mca_btl_pvas_fbox - a fast box: a ring with one writer, in the reader's memory
 */
struct mca_btl_pvas_fbox {
	struct mca_btl_pvas_ring ring;
	char data[];
};

#define MCA_BTL_PVAS_PAGE 4096U

/* A small fast box still has room for a copied message of MCA_BTL_PVAS_MIN_REFERENCE bytes. */
#define MCA_BTL_PVAS_MIN_FBOX 1024

/* Why idle fast boxes are looked for: another peer requested one, or the timer expired */
enum mca_btl_pvas_idle_check {
	MCA_BTL_PVAS_IDLE_ON_REQUEST,
	MCA_BTL_PVAS_IDLE_ON_TIMER,
	MCA_BTL_PVAS_IDLE_CHECKS
};

/**
 * struct mca_btl_pvas_fbox_in - a fast box that we read from
 * @bytes:	its size: several pages, or less than one
 * @batch:	number of records to read at a time
 * @from:	the writer's partition
 * @gen:	the writer's generation
 * @closing:	the writer was told to release it
 * @last_head:	the ring's head at the previous check of each kind
 */
struct mca_btl_pvas_fbox_in {
	struct mca_btl_pvas_fbox *fbox;
	uint32_t bytes;
	int batch;
	uint32_t from;
	uint32_t gen;
	bool closing;
	uint64_t last_head[MCA_BTL_PVAS_IDLE_CHECKS];
};

/**
 * struct mca_btl_base_endpoint_t - a peer
 * @fbox_out:	set by the peer when it provides a fast box
 * @sent:	messages sent without a fast box since the last request for one
 * @nr_pending:	fragments for this peer in the component's @pending
 * @stalled:	one of them did not fit in this pass over @pending
 * @has_extra:	one of its fragments is above the limits
 * @distance:	how far apart the two ranks are: an enum mca_btl_pvas_distance
 * @nr_requests:	requests for a fast box so far, up to a limit
 * @gone:	the peer has failed, or one of us has completed MPI_Finalize
 */
struct mca_btl_base_endpoint_t {
	struct opal_proc_t *proc;
	struct mca_btl_pvas_port *port;
	struct mca_btl_pvas_fbox *fbox_out;
	uint32_t gen;
	uint32_t sent;
	uint16_t nr_pending;
	uint16_t index : 13;
	uint16_t distance : 3;
	uint8_t stalled;
	bool has_extra;
	uint8_t nr_requests;
	bool gone;
};
typedef struct mca_btl_base_endpoint_t mca_btl_pvas_endpoint_t;

_Static_assert(PVAS_MAX_TASKS + 2 <= 1 << 13 && MCA_BTL_PVAS_DISTANCES <= 1 << 3,
	       "bits of an endpoint");

/**
 * struct mca_btl_pvas_endpoint_group - endpoints of one call of add_procs
 */
struct mca_btl_pvas_endpoint_group {
	struct mca_btl_pvas_endpoint_group *next;
	unsigned int nr;
	mca_btl_pvas_endpoint_t endpoints[];
};

/**
 * struct mca_btl_pvas_frag - a descriptor; its buffer follows it
 * @segments:	the buffer, and the user's memory if it is sent in place
 * @next:	in the stack of returned or of free fragments
 * @bytes:	total size, including the buffer
 * @extra:	the endpoint's only one above the limits, not in the component's numbers
 */
struct mca_btl_pvas_frag {
	mca_btl_base_descriptor_t base;
	mca_btl_base_segment_t segments[2];
	struct mca_btl_pvas_frag *next;
	struct mca_btl_base_endpoint_t *endpoint;
	uint32_t bytes;
	mca_btl_base_tag_t tag;
	bool extra;
	_Alignas(16) char buffer[];
};
typedef struct mca_btl_pvas_frag mca_btl_pvas_frag_t;
OBJ_CLASS_DECLARATION(mca_btl_pvas_frag_t);

/**
 * struct mca_btl_pvas_reference - the body of an MCA_BTL_PVAS_RECORD_REFERENCE record
 */
struct mca_btl_pvas_reference {
	struct mca_btl_pvas_frag *frag;
	struct mca_btl_pvas_port *port;
	uint32_t gen;
	uint32_t count;
	mca_btl_base_segment_t segments[2];
};

/* MPI_T performance variables; approximate if several threads update them */
struct mca_btl_pvas_counters {
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

struct mca_btl_pvas_module {
	mca_btl_base_module_t super;
	mca_btl_base_module_error_cb_fn_t error_cb;
};

#define MCA_BTL_PVAS_NR_LOCKS 8

/**
 * struct mca_btl_pvas_component - the component and its state
 * @copy_limit:		for all distances; UINT_MAX: their own defaults
 * @share_limit:	likewise
 * @limits:		those that are used
 * @oversubscribed:	there are more ranks than processors
 * @index:	our partition
 * @table:	the space's partition table
 * @queue_batch:	number of records to read from the queue at a time
 * @fbox_in:	the @nr_fboxes_in fast boxes that we read from, which take @fbox_bytes
 * @peers:	all @nr_peers endpoints, which take @endpoint_bytes
 * @budget:	bytes for endpoints, fast boxes and some small fragments
 * @locks:	locks of endpoints; several endpoints share one
 * @free_frags:	unused small fragments
 * @nr_small:	small fragments, used or unused, at most @small_limit
 * @nr_large:	larger fragments, all of them in use
 * @frags_requested:	small fragments requested since the last trim
 * @nr_released:	fragments within the limits that were released so far
 * @starved:	a request failed, and no callback was made since
 * @pending:	fragments that found no room
 * @completed:	fragments whose callbacks are due
 * @check_group:	with @check_index: the endpoint checked last
 * @progressing:	a thread is in the progress function
 */
struct mca_btl_pvas_component {
	mca_btl_base_component_3_0_0_t super;

	unsigned int queue_size;
	unsigned int fbox_threshold;
	unsigned int fbox_max;
	unsigned int fbox_size;
	unsigned int fbox_idle;
	unsigned int copy_limit;
	unsigned int share_limit;
	struct mca_btl_pvas_limits limits[MCA_BTL_PVAS_DISTANCES];
	unsigned int share_piece;
	unsigned int first_touch;
	bool oversubscribed;
	int frag_max;
	bool watch_peers;

	uint32_t index;
	uint32_t gen;
	uint32_t space;
	unsigned int shift;
	const struct pvas_part *table;

	struct mca_btl_pvas_port *port;
	int queue_batch;
	struct mca_btl_pvas_fbox_in *fbox_in;
	unsigned int nr_fboxes_in;
	size_t fbox_bytes;
	struct mca_btl_pvas_endpoint_group *peers;
	unsigned int nr_peers;
	size_t endpoint_bytes;
	size_t budget;
	opal_mutex_t locks[MCA_BTL_PVAS_NR_LOCKS];

	opal_mutex_t lock;
	struct mca_btl_pvas_frag *free_frags;
	int nr_small;
	int small_limit;
	int nr_large;
	unsigned int frags_requested;
	unsigned int nr_released;
	bool starved;
	opal_list_t pending;
	opal_list_t completed;
	int nr_pending;
	int nr_completed;
	struct mca_btl_pvas_endpoint_group *check_group;
	unsigned int check_index;
	int progressing;
	unsigned int polls;

	struct mca_btl_pvas_counters counters;
};

/* The symbol that Open MPI looks up */
extern struct mca_btl_pvas_component mca_btl_pvas_component __attribute__((visibility("default")));

extern struct mca_btl_pvas_module mca_btl_pvas;

/* Bytes in a small fragment's buffer: enough for any header of the upper layer */
#define MCA_BTL_PVAS_SMALL_SIZE 64
#define MCA_BTL_PVAS_SMALL_FRAG (sizeof(struct mca_btl_pvas_frag) + MCA_BTL_PVAS_SMALL_SIZE)

/* A fragment is freed after its callback, which may need another one. */
#define MCA_BTL_PVAS_MIN_FRAGS 2

/* By default: a page of data, and the upper layer's header */
#define MCA_BTL_PVAS_EAGER_LIMIT (MCA_BTL_PVAS_PAGE + 128)

/* Shortest fragment that is passed by reference if it does not fit */
#define MCA_BTL_PVAS_MIN_REFERENCE 128

#define mca_btl_pvas_count(counter, n) (mca_btl_pvas_component.counters.counter += (n))

/* Does this task of our space, in this generation, still run? Two plain loads. */
static inline bool mca_btl_pvas_peer_alive(uint32_t index, uint32_t gen)
{
	const struct pvas_part *part = &mca_btl_pvas_component.table[index];

	return __atomic_load_n(&part->state, __ATOMIC_ACQUIRE) == PVAS_PART_RUNNING &&
	       __atomic_load_n(&part->gen, __ATOMIC_RELAXED) == gen;
}

static inline size_t mca_btl_pvas_clamp(size_t least, size_t value, size_t most)
{
	if (value < least)
		return least;
	return value < most ? value : most;
}

static inline opal_mutex_t *mca_btl_pvas_endpoint_lock(const struct mca_btl_base_endpoint_t *ep)
{
	return &mca_btl_pvas_component.locks[ep->index % MCA_BTL_PVAS_NR_LOCKS];
}

/* memory.c */
void mca_btl_pvas_account(long bytes);
void *mca_btl_pvas_map(size_t bytes);
void mca_btl_pvas_unmap(void *p, size_t bytes);
void mca_btl_pvas_share_budget(void);
size_t mca_btl_pvas_next_fbox_bytes(void);

/* parameters.c */
void mca_btl_pvas_register_parameters(void);
void mca_btl_pvas_check_parameters(void);

/* frag.c */
void mca_btl_pvas_frag_return(struct mca_btl_pvas_frag *frag);
bool mca_btl_pvas_frag_try_return(struct mca_btl_pvas_frag *frag);
void mca_btl_pvas_frag_trim(void);
mca_btl_base_descriptor_t *mca_btl_pvas_alloc(struct mca_btl_base_module_t *btl,
					      struct mca_btl_base_endpoint_t *endpoint,
					      uint8_t order, size_t size, uint32_t flags);
int mca_btl_pvas_free(struct mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor);
mca_btl_base_descriptor_t *mca_btl_pvas_prepare_src(struct mca_btl_base_module_t *btl,
						    struct mca_btl_base_endpoint_t *endpoint,
						    struct opal_convertor_t *convertor,
						    uint8_t order, size_t reserve, size_t *size,
						    uint32_t flags);

/* send.c */
int mca_btl_pvas_send(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
		      struct mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag);
int mca_btl_pvas_sendi(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
		       struct opal_convertor_t *convertor, void *header, size_t header_size,
		       size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
		       mca_btl_base_descriptor_t **descriptor);
int mca_btl_pvas_send_pending(void);

/* progress.c */
int mca_btl_pvas_component_progress(void);

/* completion.c */
void mca_btl_pvas_frag_complete(struct mca_btl_pvas_frag *frag);
int mca_btl_pvas_complete_queued(void);
int mca_btl_pvas_complete_returned(void);

/* fbox.c */
void mca_btl_pvas_fbox_requested(uint32_t from, uint32_t gen, struct mca_btl_pvas_fbox **offer);
void mca_btl_pvas_close_idle_fboxes(void);
bool mca_btl_pvas_fbox_reclaim(struct mca_btl_pvas_fbox_in *in);
bool mca_btl_pvas_fbox_release(struct mca_btl_base_endpoint_t *endpoint,
			       struct mca_btl_pvas_fbox *fbox);

static inline bool mca_btl_pvas_fbox_is_closing(const struct mca_btl_pvas_fbox *fbox)
{
	return __atomic_load_n(&fbox->ring.closing, __ATOMIC_RELAXED);
}

/* copy.c */
bool mca_btl_pvas_copy_from(struct mca_btl_base_endpoint_t *ep, void *to, const void *from,
			    size_t size);
void mca_btl_pvas_copy_help(void);

/* rdma.c */
int mca_btl_pvas_get(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
		     void *local_address, uint64_t remote_address,
		     mca_btl_base_registration_handle_t *local_handle,
		     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
		     int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
		     void *cbdata);
int mca_btl_pvas_put(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
		     void *local_address, uint64_t remote_address,
		     mca_btl_base_registration_handle_t *local_handle,
		     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
		     int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
		     void *cbdata);
int mca_btl_pvas_atomic_op(struct mca_btl_base_module_t *btl,
			   struct mca_btl_base_endpoint_t *endpoint, uint64_t remote_address,
			   mca_btl_base_registration_handle_t *remote_handle,
			   mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
			   mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
int mca_btl_pvas_atomic_fop(struct mca_btl_base_module_t *btl,
			    struct mca_btl_base_endpoint_t *endpoint, void *local_address,
			    uint64_t remote_address,
			    mca_btl_base_registration_handle_t *local_handle,
			    mca_btl_base_registration_handle_t *remote_handle,
			    mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
			    mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
			    void *cbdata);
int mca_btl_pvas_atomic_cswap(struct mca_btl_base_module_t *btl,
			      struct mca_btl_base_endpoint_t *endpoint, void *local_address,
			      uint64_t remote_address,
			      mca_btl_base_registration_handle_t *local_handle,
			      mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
			      uint64_t value, int flags, int order,
			      mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
			      void *cbdata);

/* oversubscribe.c */
void mca_btl_pvas_raise_timer_slack(void);
void mca_btl_pvas_restore_timer_slack(void);

/* peer_failure.c */
void mca_btl_pvas_catch_faults(void);
void mca_btl_pvas_check_next_peer(void);
void mca_btl_pvas_check_peers(void);
void mca_btl_pvas_peer_failed(struct mca_btl_base_endpoint_t *endpoint);
void mca_btl_pvas_notify_start(struct mca_btl_base_endpoint_t *endpoint);
void mca_btl_pvas_notify_finalize(struct mca_btl_base_endpoint_t *endpoint);

static inline bool mca_btl_pvas_reachable(struct mca_btl_base_endpoint_t *ep)
{
	if (OPAL_LIKELY(mca_btl_pvas_peer_alive(ep->index, ep->gen)))
		return true;
	mca_btl_pvas_peer_failed(ep);
	return false;
}

#endif /* BTL_PVAS_H */
