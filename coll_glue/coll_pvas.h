/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The collective component "pvas" for Open MPI 4.1: ranks of a communicator that are tasks
 * of one PVAS space operate straight on each other's buffers. Datatypes and arrays of counts
 * are read where the peer has them, too.
 *
 *  component.c   parameters, counters, open and close
 *  peers.c       which processes are in our space, and do they still run
 *  module.c      selection, and what is passed on to other components
 *  block.c       the memory that the ranks of a communicator share
 *  wait.c        waiting for peers, and for those that have ended
 *  processors.c  have ranks a processor each, so that waiting costs nobody else time?
 *  post.c        saying where data are, and fetching them
 *  share.c       long copies, made by two ranks together
 *  copy.c        copies between any two datatypes
 *  rooted.c      bcast, scatter(v), gather(v)
 *  exchange.c    barrier, allgather(v), alltoall(v, w)
 *  topology.c    the neighbors of a rank in its communicator's topology
 *  neighbor.c    neighbor_allgather(v), neighbor_alltoall(v, w)
 *  fold.c        the order in which contributions are combined
 *  reduce.c      reduce, allreduce, reduce_scatter(_block)
 *  scan.c        scan, exscan
 *  nbc.c         non-blocking operations: requests and progress
 *  nbc_block.c   their memory
 *  nbc_step.c    their steps
 *  nbc_move.c, nbc_neighbor.c, nbc_reduce.c
 *                the parts of each of them
 *  persistent.c  persistent operations
 *  home.c        which ranks of other nodes use this component, too
 *  nodes.c       communicators over several nodes: one of each node's ranks, and one of leaders
 *  nodes_move.c, nodes_allgather.c, nodes_blocks.c, nodes_v.c, nodes_reduce.c,
 *  nodes_scatter.c, nodes_scan.c, nodes_exchange.c
 *                their operations
 *  devices.c, devices_message.c, devices_move.c, nodes_neighbor.c
 *                exchange with neighbors on other nodes over several network devices
 *
 * block.h has the protocol.
 */
#ifndef COLL_PVAS_H
#define COLL_PVAS_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/op/op.h"

#include "opal/class/opal_list.h"

#include <linux/pvas.h>

#include "../btl_glue/common.h"
#include "block.h"

#define MCA_COLL_PVAS_NAME "coll pvas"
#define MCA_COLL_PVAS_MODEX_VERSION 6

/**
 * struct mca_coll_pvas_modex - what a rank publishes to its peers
 * @home:	of a job on several nodes: the space, and no other space anywhere; not 0
 * @settings:	parameters that all ranks of a communicator must have in common
 */
struct mca_coll_pvas_modex {
	uint64_t home;
	uint32_t version;
	uint32_t space;
	uint32_t index;
	uint32_t gen;
	int32_t pid;
	uint32_t settings[11];
};

/* ---- the module ---- */

/* X(name, type of function) for each operation that we have */
#define MCA_COLL_PVAS_OPERATIONS(X)						\
	X(allgather, allgather) X(allgatherv, allgatherv) X(allreduce, allreduce) \
	X(alltoall, alltoall) X(alltoallv, alltoallv) X(alltoallw, alltoallw)	\
	X(barrier, barrier) X(bcast, bcast) X(exscan, exscan) X(gather, gather)	\
	X(gatherv, gatherv) X(reduce, reduce) X(reduce_scatter, reduce_scatter)	\
	X(reduce_scatter_block, reduce_scatter_block) X(scan, scan)		\
	X(scatter, scatter) X(scatterv, scatterv)				\
	X(neighbor_allgather, allgather) X(neighbor_allgatherv, allgatherv)	\
	X(neighbor_alltoall, alltoall) X(neighbor_alltoallv, alltoallv)		\
	X(neighbor_alltoallw, neighbor_alltoallw)				\
	X(iallgather, iallgather) X(iallgatherv, iallgatherv)			\
	X(iallreduce, iallreduce) X(ialltoall, ialltoall)			\
	X(ialltoallv, ialltoallv) X(ialltoallw, ialltoallw)			\
	X(ibarrier, ibarrier) X(ibcast, ibcast) X(iexscan, iexscan)		\
	X(igather, igather) X(igatherv, igatherv) X(ireduce, ireduce)		\
	X(ireduce_scatter, ireduce_scatter)					\
	X(ireduce_scatter_block, ireduce_scatter_block) X(iscan, iscan)		\
	X(iscatter, iscatter) X(iscatterv, iscatterv)				\
	X(ineighbor_allgather, iallgather) X(ineighbor_allgatherv, iallgatherv)	\
	X(ineighbor_alltoall, ialltoall) X(ineighbor_alltoallv, ialltoallv)	\
	X(ineighbor_alltoallw, ineighbor_alltoallw)				\
	MCA_COLL_PVAS_PERSISTENT(X)

#define MCA_COLL_PVAS_PERSISTENT(X)						\
	X(allgather_init, allgather_init) X(allgatherv_init, allgatherv_init)	\
	X(allreduce_init, allreduce_init) X(alltoall_init, alltoall_init)	\
	X(alltoallv_init, alltoallv_init) X(alltoallw_init, alltoallw_init)	\
	X(barrier_init, barrier_init) X(bcast_init, bcast_init)			\
	X(exscan_init, exscan_init) X(gather_init, gather_init)			\
	X(gatherv_init, gatherv_init) X(reduce_init, reduce_init)		\
	X(reduce_scatter_init, reduce_scatter_init)				\
	X(reduce_scatter_block_init, reduce_scatter_block_init)			\
	X(scan_init, scan_init) X(scatter_init, scatter_init)			\
	X(scatterv_init, scatterv_init)						\
	X(neighbor_allgather_init, allgather_init)				\
	X(neighbor_allgatherv_init, allgatherv_init)				\
	X(neighbor_alltoall_init, alltoall_init)				\
	X(neighbor_alltoallv_init, alltoallv_init)				\
	X(neighbor_alltoallw_init, neighbor_alltoallw_init)

#define MCA_COLL_PVAS_NAMES(X)							\
	X(allgather) X(allgatherv) X(allreduce) X(alltoall) X(alltoallv) X(alltoallw)	\
	X(barrier) X(bcast) X(exscan) X(gather) X(gatherv) X(reduce) X(reduce_scatter)	\
	X(reduce_scatter_block) X(scan) X(scatter) X(scatterv) X(neighbor_allgather)	\
	X(neighbor_allgatherv) X(neighbor_alltoall) X(neighbor_alltoallv)	\
	X(neighbor_alltoallw)

/* The functions that were selected before ours */
struct mca_coll_pvas_previous {
#define MCA_COLL_PVAS_PREVIOUS(name, type)			\
	mca_coll_base_module_##type##_fn_t name;		\
	mca_coll_base_module_t *name##_module;
	MCA_COLL_PVAS_OPERATIONS(MCA_COLL_PVAS_PREVIOUS)
#undef MCA_COLL_PVAS_PREVIOUS
};

/* Keep the function of @comm that was selected before ours; without one, ours is not used. */
#define MCA_COLL_PVAS_SAVE(m, comm, name)						\
	(m)->previous.name = (comm)->c_coll->coll_##name;				\
	(m)->previous.name##_module = (comm)->c_coll->coll_##name##_module;		\
	if (!(m)->previous.name || !(m)->previous.name##_module)			\
		(m)->super.coll_##name = NULL;						\
	else										\
		OBJ_RETAIN((m)->previous.name##_module);

/* Call the function that was selected before ours. */
#define mca_coll_pvas_pass_on(m, name, ...) \
	((m)->previous.name(__VA_ARGS__, (m)->comm, (m)->previous.name##_module))

enum mca_coll_pvas_state {
	MCA_COLL_PVAS_NEW,
	MCA_COLL_PVAS_ATTACHING,
	MCA_COLL_PVAS_READY,
	MCA_COLL_PVAS_PASSING,	/* there was no memory: all is passed on */
};

/* Readers of what a rank posts, unless it is one rank */
#define MCA_COLL_PVAS_ALL (-1)
#define MCA_COLL_PVAS_NEIGHBORS (-2)

/* The last use of a line or annex: in which operation, and who reads it */
struct mca_coll_pvas_use {
	uint64_t op;
	int reader;
};

/**
 * struct mca_coll_pvas_nbc - the non-blocking operations of a communicator, or persistent ones
 * @users:	persistent: requests, the communicator, and the broadcast
 * @op:		number of the one that was started last, or of persistent ones
 * @posted:	of the last one that has posted its data
 * @attaching:	a broadcast that tells where @block is, for @m; @next: others are in progress
 * @annexed:	the last uses of our annexes
 */
struct mca_coll_pvas_nbc {
	enum mca_coll_pvas_state state;
	atomic_int users;
	uint64_t op;
	uint64_t posted;
	struct ompi_request_t *attaching;
	struct mca_coll_pvas_module *m;
	struct mca_coll_pvas_nbc *next;
	struct mca_coll_pvas_block *block;
	unsigned int nr_lines;
	struct mca_coll_pvas_line *lines;
	unsigned int nr_annexes;
	char *annexes;
	size_t annex_bytes;
	uint64_t annexed[MCA_COLL_PVAS_NBC_ANNEXES];
};

/**
 * struct mca_coll_pvas_module - a communicator
 * @op:		number of the operation in progress, or of the last one
 * @all_finished:	all ranks are known to have finished the operations up to this; likewise
 *		@neighbors_finished, and @reader_finished of the rank @reader
 * @nr_lines:	of each rank, a power of two; likewise @nr_annexes
 * @posted:	the last uses of our lines
 * @annexed:	the last uses of our annexes, each by piece of it
 * @annex_bytes:	size of an annex
 * @piece_bytes:	size of a piece of one
 * @ring_at:	offset behind the last record
 * @segment_op:	by segment of the ring: the last operation that used it
 * @next_check:	when the ranks' tasks are to be checked again
 * @neighbors:	in the communicator's topology; NULL: not looked up yet
 * @persistent:	the lines of the persistent operations that come next
 * @initializing: a persistent operation, which is not started yet
 */
struct mca_coll_pvas_module {
	mca_coll_base_module_t super;
	struct mca_coll_pvas_previous previous;
	struct ompi_communicator_t *comm;
	enum mca_coll_pvas_state state;
	int rank;
	int size;
	struct mca_coll_pvas_block *block;
	unsigned int nr_lines;
	unsigned int nr_annexes;
	struct mca_coll_pvas_line *lines;
	struct mca_coll_pvas_line *slots;
	char *ring;
	size_t segment_bytes;
	size_t annex_bytes;
	size_t piece_bytes;
	uint64_t op;
	uint64_t all_finished;
	uint64_t neighbors_finished;
	uint64_t reader_finished;
	int reader;
	struct mca_coll_pvas_use posted[MCA_COLL_PVAS_LINES];
	struct mca_coll_pvas_use annexed[MCA_COLL_PVAS_LINES];
	size_t ring_at;
	uint64_t segment_op[MCA_COLL_PVAS_SEGMENTS];
	uint64_t next_check;
	struct mca_coll_pvas_neighbors *neighbors;
	struct mca_coll_pvas_nbc nbc;
	struct mca_coll_pvas_nbc *persistent;
	bool initializing;
};
typedef struct mca_coll_pvas_module mca_coll_pvas_module_t;
OBJ_CLASS_DECLARATION(mca_coll_pvas_module_t);

/* ---- the component ---- */

/* Calls that this component did, blocking, non-blocking and to initialize persistent ones */
struct mca_coll_pvas_calls {
#define MCA_COLL_PVAS_CALLS(name) unsigned long long name;
	MCA_COLL_PVAS_NAMES(MCA_COLL_PVAS_CALLS)
#undef MCA_COLL_PVAS_CALLS
};

/* MPI_T performance variables; approximate if several threads update them */
struct mca_coll_pvas_counters {
	unsigned long long operations;
	unsigned long long passed_on;
	unsigned long long posts_copied;
	unsigned long long posts_in_place;
	unsigned long long posts_shared;
	unsigned long long segments;
	unsigned long long bytes_copied;
	unsigned long long waits;
	unsigned long long communicators;
	unsigned long long bytes_held;
	struct mca_coll_pvas_calls calls;
};

/* A process that was looked up. 0: it is not in our space, or its home is unknown. */
struct mca_coll_pvas_peer {
	opal_process_name_t name;
	struct mca_coll_pvas_member member;
	uint64_t home;
};

/**
 * struct mca_coll_pvas_component - the component and its state
 * @ring_limit:	longest message that a root copies into the ring
 * @share:	fewest bytes of a reduction that a rank combines
 * @share_copy:	fewest bytes that two ranks copy together
 * @segment:	bytes of a segment, when operations over several nodes are pipelined
 * @most_ranks:	of a communicator over several nodes
 * @devices:	exchange with neighbors over several network devices
 * @device_latency: of a step of that, in microseconds
 * @device_bandwidth: of a device, in Mbit/s; 0: as its BTL says
 * @device_ahead: segments of a device that are in progress at a time; 0: all
 * @node_ranks:	for tests: so many ranks make a node, although they share a space with others
 * @spin:	iterations of a waiting loop between two calls of opal_progress()
 * @oversubscribed:	whether ranks outnumber processors, as set; -1: unknown
 * @when_oversubscribed: also used then: 0, 1, or -1: for operations that it makes faster
 * @choose:	they outnumber those of the machine, and only some operations are not passed on
 * @yield:	they outnumber those that they may use: a waiting rank yields
 * @look:	that can change
 * @next_look:	when to look at it again, in milliseconds
 * @ready:	this process is a task, and has published its modex
 * @lock:	protects @peers, @left_blocks and @next_look
 * @left_blocks:	blocks of ours that not all of their ranks have left
 * @devices_lock: protects @devices_in_use, and what neighbors have told
 * @nbc_lock:	protects @requests, the non-blocking operations in progress, and @attaching
 * @attaching:	those whose block is not known yet
 * @nr_unfinished: members of both
 * @in_vain:	calls of the progress function since one of them was complete
 * @in_progress: a thread goes on with them
 */
struct mca_coll_pvas_component {
	mca_coll_base_component_t super;

	int priority;
	unsigned int ring_limit;
	unsigned int share;
	unsigned int share_copy;
	unsigned int segment;
	unsigned int most_ranks;
	unsigned int devices;
	unsigned int device_latency;
	unsigned int device_bandwidth;
	unsigned int device_ahead;
	unsigned int node_ranks;
	unsigned int spin;
	int oversubscribed;
	int when_oversubscribed;
	bool choose;
	atomic_bool yield;
	bool look;
	uint64_t next_look;

	bool ready;
	struct mca_coll_pvas_modex modex;
	struct mca_btl_pvas_faults faults;

	opal_mutex_t lock;
	struct mca_coll_pvas_peer *peers;
	unsigned int nr_peers;
	unsigned int last_peer;
	struct mca_coll_pvas_block *left_blocks;

	opal_mutex_t devices_lock;
	struct mca_coll_pvas_devices *devices_in_use;

	opal_mutex_t nbc_lock;
	opal_list_t requests;
	struct mca_coll_pvas_nbc *attaching;
	unsigned int nr_unfinished;
	unsigned int in_vain;
	bool in_progress;

	struct mca_coll_pvas_counters counters;
};

/* The symbol that Open MPI looks up */
extern struct mca_coll_pvas_component mca_coll_pvas_component
	__attribute__((visibility("default")));

#define mca_coll_pvas_count(counter, n) (mca_coll_pvas_component.counters.counter += (n))

/* Count a call if it @began, and was not passed on. */
static inline bool mca_coll_pvas_count_call(bool began, unsigned long long *calls)
{
	*calls += began;
	return began;
}

#define mca_coll_pvas_calls(name) (&mca_coll_pvas_component.counters.calls.name)

/* This thread is in an operation, and not in code that an operation has called */
extern __thread int mca_coll_pvas_inside;

/* peers.c */
bool mca_coll_pvas_find_self(void);
bool mca_coll_pvas_publish(void);
bool mca_coll_pvas_same_space(struct ompi_communicator_t *comm);
uint64_t mca_coll_pvas_home(struct ompi_communicator_t *comm, int rank);
struct mca_coll_pvas_member mca_coll_pvas_member(struct ompi_communicator_t *comm, int rank);
bool mca_coll_pvas_member_alive(const struct mca_coll_pvas_member *member);
void mca_coll_pvas_lost(uint32_t index);

/* home.c */
bool mca_coll_pvas_several_nodes(void);
void mca_coll_pvas_find_home(void);
bool mca_coll_pvas_publish_home(void);
uint64_t mca_coll_pvas_home_of(const struct mca_coll_pvas_modex *modex);
uint64_t mca_coll_pvas_look_up_home(const opal_process_name_t *rank);

/* module.c */
mca_coll_base_module_t *mca_coll_pvas_comm_query(struct ompi_communicator_t *comm, int *priority);

/* block.c */
struct mca_coll_pvas_block *mca_coll_pvas_map_block(struct mca_coll_pvas_module *m, size_t bytes);
char *mca_coll_pvas_block_memory(struct mca_coll_pvas_block *block);
size_t mca_coll_pvas_block_bytes(int size);
int mca_coll_pvas_attach(struct mca_coll_pvas_module *m);
void mca_coll_pvas_leave_block(struct mca_coll_pvas_module *m, struct mca_coll_pvas_block *block);
void mca_coll_pvas_unmap_blocks(bool all);

/* nbc_block.c */
void mca_coll_pvas_nbc_plan(struct mca_coll_pvas_module *m);
struct mca_coll_pvas_nbc *mca_coll_pvas_nbc_take_attached(void);
void mca_coll_pvas_nbc_attached(struct mca_coll_pvas_nbc *attached);
void mca_coll_pvas_nbc_forget(struct mca_coll_pvas_module *m);
void mca_coll_pvas_nbc_leave(struct mca_coll_pvas_module *m, struct mca_coll_pvas_nbc *nbc);

/* persistent.c */
void mca_coll_pvas_put_persistent(struct mca_coll_pvas_module *m, struct mca_coll_pvas_nbc *nbc);

/* processors.c */
void mca_coll_pvas_look_at_processors(void);

/* wait.c */
void mca_coll_pvas_differs(struct mca_coll_pvas_module *m, int rank);
void mca_coll_pvas_watch(struct mca_coll_pvas_module *m, unsigned int calls);
void mca_coll_pvas_pause(struct mca_coll_pvas_module *m, unsigned int *polls);
uint64_t mca_coll_pvas_wait_finished(struct mca_coll_pvas_module *m, int rank, uint64_t op);
void mca_coll_pvas_wait_all_finished(struct mca_coll_pvas_module *m, uint64_t op);

/* Wait until @condition holds. */
#define mca_coll_pvas_wait_until(m, condition)			\
	do {							\
		unsigned int polls_ = 0;			\
								\
		while (!(condition))				\
			mca_coll_pvas_pause((m), &polls_);	\
	} while (0)

#endif /* COLL_PVAS_H */
