/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Communicators over several nodes. Inside a node an operation is done by this component, on
 * a communicator of the node's ranks; between the nodes by the component that Open MPI selects
 * for a communicator of one rank of each, their leaders. Both are made by the first operation.
 *
 * Long data are cut into segments: while one is on its way between leaders, the ranks of a node
 * copy or combine another. So an operation takes as long as the slower of both parts, plus one
 * segment, as in the pipelined collectives of the K computer's MPI (Sumimoto et al., "The Design
 * of MPI Communication Facility for K computer"). Short data are one segment, and take blocking
 * operations, which have the least latency.
 */
#ifndef COLL_PVAS_NODES_H
#define COLL_PVAS_NODES_H

#include "coll_pvas.h"

#include "ompi/request/request.h"

/* Segments that are between leaders at a time */
#define MCA_COLL_PVAS_WINDOW 4

#define MCA_COLL_PVAS_NODES_OPERATIONS(X)					\
	X(allgather, allgather) X(allgatherv, allgatherv) X(allreduce, allreduce) \
	X(alltoall, alltoall) X(alltoallv, alltoallv) X(alltoallw, alltoallw)	\
	X(barrier, barrier) X(bcast, bcast)					\
	X(exscan, exscan) X(gather, gather) X(gatherv, gatherv)			\
	X(reduce, reduce) X(reduce_scatter, reduce_scatter)			\
	X(reduce_scatter_block, reduce_scatter_block) X(scan, scan)		\
	X(scatter, scatter) X(scatterv, scatterv)				\
	MCA_COLL_PVAS_DEVICES_OPERATIONS(X)

/* Over several devices, by interfaces of Open MPI 4.1's BTLs that its next series has changed */
#if OMPI_MAJOR_VERSION < 5
#define MCA_COLL_PVAS_DEVICES_OPERATIONS(X)					\
	X(neighbor_allgather, allgather) X(neighbor_alltoall, alltoall)
#else
#define MCA_COLL_PVAS_DEVICES_OPERATIONS(X)
#endif

struct mca_coll_pvas_devices;

/**
 * struct mca_coll_pvas_nodes - a communicator over several nodes
 * @state:	ATTACHING: @node and @leaders are being made, and all is passed on
 * @node:	the ranks of this node, in their order; the leader is rank 0
 * @leaders:	of all nodes, by the number of their node; NULL if we are none
 * @me:		our node's number
 * @nr:		number of nodes
 * @node_of:	by rank: the number of its node. Nodes are numbered by their first ranks.
 * @first:	by node: where its ranks are in @ranks; one more than there are nodes
 * @ranks:	sorted by node, and then by rank
 * @sorted:	they are so anyway
 * @even:	all nodes have as many ranks
 * @devices:	exchange with neighbors over several devices, or NULL: not @asked_devices yet, or
 *		nothing is gained
 */
struct mca_coll_pvas_nodes {
	mca_coll_base_module_t super;
	struct {
#define MCA_COLL_PVAS_PREVIOUS(name, type)			\
		mca_coll_base_module_##type##_fn_t name;	\
		mca_coll_base_module_t *name##_module;
		MCA_COLL_PVAS_NODES_OPERATIONS(MCA_COLL_PVAS_PREVIOUS)
#undef MCA_COLL_PVAS_PREVIOUS
	} previous;
	struct ompi_communicator_t *comm;
	enum mca_coll_pvas_state state;
	struct ompi_communicator_t *node;
	struct ompi_communicator_t *leaders;
	int me;
	int nr;
	int *node_of;
	int *first;
	int *ranks;
	bool sorted;
	bool even;
	bool asked_devices;
	struct mca_coll_pvas_devices *devices;
};
typedef struct mca_coll_pvas_nodes mca_coll_pvas_nodes_t;
OBJ_CLASS_DECLARATION(mca_coll_pvas_nodes_t);

/* Call operation @name of a communicator, whoever does it there. */
#define mca_coll_pvas_do(comm, name, ...) \
	((comm)->c_coll->coll_##name(__VA_ARGS__, (comm), (comm)->c_coll->coll_##name##_module))

/* Start a non-blocking operation. */
#define mca_coll_pvas_start(comm, request, name, ...) \
	((comm)->c_coll->coll_##name(__VA_ARGS__, (comm), (request), \
				     (comm)->c_coll->coll_##name##_module))

/* Requests of segments, of which the last few are in progress */
struct mca_coll_pvas_window {
	ompi_request_t *requests[MCA_COLL_PVAS_WINDOW];
};

static inline ompi_request_t **mca_coll_pvas_request_of(struct mca_coll_pvas_window *w, int segment)
{
	return &w->requests[segment % MCA_COLL_PVAS_WINDOW];
}

/* A message in segments of @each elements; the last one can have fewer. */
struct mca_coll_pvas_segments {
	const struct ompi_datatype_t *type;
	size_t count;
	size_t each;
	int nr;
};

static inline int mca_coll_pvas_segment_count(const struct mca_coll_pvas_segments *s, int i)
{
	return i < s->nr - 1 ? s->each : s->count - (s->nr - 1) * s->each;
}

/* Where segment @i begins */
static inline char *mca_coll_pvas_segment(const struct mca_coll_pvas_segments *s, const void *buf,
					  int i)
{
	return (char *)buf + (ptrdiff_t)i * s->each * (s->type->super.ub - s->type->super.lb);
}

/*
 * The first error counts, and if data were too long for a buffer, an operation goes on, so that
 * other ranks need not wait for this one.
 */
static inline void mca_coll_pvas_and_then(int *rc, int now)
{
	if (*rc == OMPI_SUCCESS)
		*rc = now;
}

/* How many ranks has a node? */
static inline int mca_coll_pvas_nodes_ranks(const struct mca_coll_pvas_nodes *m, int node)
{
	return m->first[node + 1] - m->first[node];
}

/* Where the block of @rank is, of blocks of @count elements */
static inline char *mca_coll_pvas_block_at(const void *buf, size_t count,
					   const struct ompi_datatype_t *type, int rank)
{
	return (char *)buf + (ptrdiff_t)(rank * count) * (type->super.ub - type->super.lb);
}

/* nodes.c */
mca_coll_base_module_t *mca_coll_pvas_nodes_query(struct ompi_communicator_t *comm, int *priority);
bool mca_coll_pvas_nodes_ready(struct mca_coll_pvas_nodes *m);
bool mca_coll_pvas_nodes_begin_next(struct mca_coll_pvas_nodes *m, bool possible);

/* Begin an operation if it is @possible; false: pass it on. */
#define mca_coll_pvas_nodes_begin_if(m, name, possible)				\
	mca_coll_pvas_count_call(mca_coll_pvas_nodes_begin_next(m, possible),	\
				 mca_coll_pvas_calls(name))
#define mca_coll_pvas_nodes_begin(m, name) mca_coll_pvas_nodes_begin_if(m, name, true)

/*
 * When ranks outnumber processors, all but a barrier are passed on: the others are faster only with
 * some lengths, and ranks whose lengths differ would wait for each other. See README.md.
 */
static inline bool mca_coll_pvas_nodes_prefers(void)
{
	return !mca_coll_pvas_component.choose;
}

int mca_coll_pvas_nodes_rank_in_node(const struct mca_coll_pvas_nodes *m, int rank);
int mca_coll_pvas_nodes_sort(const struct mca_coll_pvas_nodes *m, char *packed, size_t bytes,
			     const void *buf, size_t count, const struct ompi_datatype_t *type);
int mca_coll_pvas_nodes_unsort(const struct mca_coll_pvas_nodes *m, void *buf, size_t count,
			       const struct ompi_datatype_t *type, const char *packed,
			       size_t bytes);
int *mca_coll_pvas_nodes_counts(const struct mca_coll_pvas_nodes *m, size_t bytes);
struct mca_coll_pvas_segments mca_coll_pvas_cut(size_t count, const struct ompi_datatype_t *type);
int mca_coll_pvas_wait_request(struct mca_coll_pvas_window *w, int segment);
int mca_coll_pvas_wait_window(struct mca_coll_pvas_window *w, int rc);

/* nodes_move.c */
int mca_coll_pvas_nodes_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_nodes_bcast(void *buf, int count, struct ompi_datatype_t *type, int root,
			      struct ompi_communicator_t *comm, mca_coll_base_module_t *module);

/* nodes_allgather.c */
int mca_coll_pvas_nodes_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				  void *rbuf, int rcount, struct ompi_datatype_t *rtype,
				  struct ompi_communicator_t *comm,
				  mca_coll_base_module_t *module);

int mca_coll_pvas_nodes_allgatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				   void *rbuf, const int *rcounts, const int *displs,
				   struct ompi_datatype_t *rtype,
				   struct ompi_communicator_t *comm,
				   mca_coll_base_module_t *module);

/* nodes_v.c */
int mca_coll_pvas_nodes_gatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				void *rbuf, const int *rcounts, const int *displs,
				struct ompi_datatype_t *rtype, int root,
				struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_nodes_scatterv(const void *sbuf, const int *scounts, const int *displs,
				 struct ompi_datatype_t *stype, void *rbuf, int rcount,
				 struct ompi_datatype_t *rtype, int root,
				 struct ompi_communicator_t *comm, mca_coll_base_module_t *module);

/* nodes_scan.c */
int mca_coll_pvas_nodes_scan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			     struct ompi_op_t *op, struct ompi_communicator_t *comm,
			     mca_coll_base_module_t *module);
int mca_coll_pvas_nodes_exscan(const void *sbuf, void *rbuf, int count,
			       struct ompi_datatype_t *type, struct ompi_op_t *op,
			       struct ompi_communicator_t *comm, mca_coll_base_module_t *module);

/* nodes_reduce.c */
int mca_coll_pvas_nodes_reduce(const void *sbuf, void *rbuf, int count,
			       struct ompi_datatype_t *type, struct ompi_op_t *op, int root,
			       struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_nodes_allreduce(const void *sbuf, void *rbuf, int count,
				  struct ompi_datatype_t *type, struct ompi_op_t *op,
				  struct ompi_communicator_t *comm,
				  mca_coll_base_module_t *module);

/* nodes_scatter.c */
int mca_coll_pvas_nodes_reduce_scatter(const void *sbuf, void *rbuf, const int *counts,
				       struct ompi_datatype_t *type, struct ompi_op_t *op,
				       struct ompi_communicator_t *comm,
				       mca_coll_base_module_t *module);
int mca_coll_pvas_nodes_reduce_scatter_block(const void *sbuf, void *rbuf, int count,
					     struct ompi_datatype_t *type, struct ompi_op_t *op,
					     struct ompi_communicator_t *comm,
					     mca_coll_base_module_t *module);

/* nodes_blocks.c */
int mca_coll_pvas_nodes_gather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			       void *rbuf, int rcount, struct ompi_datatype_t *rtype, int root,
			       struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_nodes_scatter(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				void *rbuf, int rcount, struct ompi_datatype_t *rtype, int root,
				struct ompi_communicator_t *comm,
				mca_coll_base_module_t *module);
int mca_coll_pvas_nodes_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				 void *rbuf, int rcount, struct ompi_datatype_t *rtype,
				 struct ompi_communicator_t *comm,
				 mca_coll_base_module_t *module);

/* nodes_exchange.c */
int mca_coll_pvas_nodes_exchange(struct mca_coll_pvas_nodes *m, const void *sbuf, int scount,
				 struct ompi_datatype_t *stype, void *rbuf, int rcount,
				 struct ompi_datatype_t *rtype);
int mca_coll_pvas_nodes_alltoallv(const void *sbuf, const int *scounts, const int *sdispls,
				  struct ompi_datatype_t *stype, void *rbuf, const int *rcounts,
				  const int *rdispls, struct ompi_datatype_t *rtype,
				  struct ompi_communicator_t *comm,
				  mca_coll_base_module_t *module);
int mca_coll_pvas_nodes_alltoallw(const void *sbuf, const int *scounts, const int *sdispls,
				  struct ompi_datatype_t *const *stypes, void *rbuf,
				  const int *rcounts, const int *rdispls,
				  struct ompi_datatype_t *const *rtypes,
				  struct ompi_communicator_t *comm,
				  mca_coll_base_module_t *module);

/* nodes_neighbor.c */
int mca_coll_pvas_nodes_neighbor_allgather(const void *sbuf, int scount,
					   struct ompi_datatype_t *stype, void *rbuf, int rcount,
					   struct ompi_datatype_t *rtype,
					   struct ompi_communicator_t *comm,
					   mca_coll_base_module_t *module);
int mca_coll_pvas_nodes_neighbor_alltoall(const void *sbuf, int scount,
					  struct ompi_datatype_t *stype, void *rbuf, int rcount,
					  struct ompi_datatype_t *rtype,
					  struct ompi_communicator_t *comm,
					  mca_coll_base_module_t *module);
void mca_coll_pvas_nodes_leave_devices(struct mca_coll_pvas_nodes *m);

#endif /* COLL_PVAS_NODES_H */
