/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The Open MPI component "coll pretend": collective operations among the ranks of a job
 * of which only the first node exists (pvasrun --pretend).
 *
 * Open MPI creates communicators by an allgather and allreduces in which all members take
 * part. This component completes them among the ranks that exist: a rank that does not
 * contributes nothing to a reduction or a barrier, and to an allgather the same as the
 * rank that has its place on the first node, so that ranks can be split into communicators
 * of all of them. Operations that it lacks are left to other components, which then fail
 * to reach a peer.
 */
#ifndef COLL_PRETEND_H
#define COLL_PRETEND_H

#include "ompi_config.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/coll.h"

typedef struct {
	mca_coll_base_component_2_0_0_t super;
	int ranks;	/* that exist: MPI_COMM_WORLD's first; 0: this is a job like others */
	int priority;
} mca_coll_pretend_component_t;

OMPI_MODULE_DECLSPEC extern mca_coll_pretend_component_t mca_coll_pretend_component;

typedef struct {
	mca_coll_base_module_t super;
	int *existing;	/* ranks in this communicator, ascending */
	int nr;
	int *stand_in;	/* of each rank of the first node: one in this communicator, or -1 */
} mca_coll_pretend_module_t;

OBJ_CLASS_DECLARATION(mca_coll_pretend_module_t);

/* share.c */
void mca_coll_pretend_share_group(struct ompi_group_t *group);

/* The rank in MPI_COMM_WORLD of a member of @comm */
uint32_t mca_coll_pretend_world_rank(struct ompi_communicator_t *comm, int rank);

int mca_coll_pretend_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			       void *rbuf, int rcount, struct ompi_datatype_t *rtype,
			       struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pretend_allreduce(const void *sbuf, void *rbuf, int count,
			       struct ompi_datatype_t *type, struct ompi_op_t *op,
			       struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pretend_iallreduce(const void *sbuf, void *rbuf, int count,
				struct ompi_datatype_t *type, struct ompi_op_t *op,
				struct ompi_communicator_t *comm, ompi_request_t **request,
				mca_coll_base_module_t *module);
int mca_coll_pretend_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pretend_ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request,
			      mca_coll_base_module_t *module);
int mca_coll_pretend_bcast(void *buf, int count, struct ompi_datatype_t *type, int root,
			   struct ompi_communicator_t *comm, mca_coll_base_module_t *module);

#endif
