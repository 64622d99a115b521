// SPDX-License-Identifier: LGPL-2.1-or-later
/* The operations: by messages to and from the first rank that exists. */
#include "coll_pretend.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/op/op.h"
#include "ompi/request/request.h"
#include "opal/util/output.h"

#define component mca_coll_pretend_component

typedef mca_coll_pretend_module_t module_t;

/* ---- messages ---- */

static int send_to(const void *buf, size_t count, struct ompi_datatype_t *type, int to, int tag,
		struct ompi_communicator_t *comm)
{
	return MCA_PML_CALL(send(buf, count, type, to, tag, MCA_PML_BASE_SEND_STANDARD, comm));
}

static int receive_from(void *buf, size_t count, struct ompi_datatype_t *type, int from, int tag,
		   struct ompi_communicator_t *comm)
{
	return MCA_PML_CALL(recv(buf, count, type, from, tag, comm, MPI_STATUS_IGNORE));
}

/* From @root to all others that exist */
static int distribute(const module_t *m, void *buf, size_t count, struct ompi_datatype_t *type,
		      int root, int tag, struct ompi_communicator_t *comm)
{
	int i, err = OMPI_SUCCESS;

	if (ompi_comm_rank(comm) != root)
		return receive_from(buf, count, type, root, tag, comm);
	for (i = 0; i < m->nr && !err; i++)
		if (m->existing[i] != root)
			err = send_to(buf, count, type, m->existing[i], tag, comm);
	return err;
}

/* ---- allgather ---- */

static char *block(void *rbuf, int rank, int rcount, struct ompi_datatype_t *rtype)
{
	ptrdiff_t low, extent;

	ompi_datatype_get_extent(rtype, &low, &extent);
	return (char *)rbuf + (ptrdiff_t)rank * rcount * extent;
}

/* A member that doesn't exist, by the one with its place on the first node */
static int stand_in_for(const module_t *m, int rank, struct ompi_communicator_t *comm)
{
	uint32_t world = mca_coll_pretend_world_rank(comm, rank);
	int other = m->stand_in[world % component.ranks];

	return other >= 0 ? other : m->existing[0];
}

static int copy_block(void *rbuf, int to, int from, int rcount, struct ompi_datatype_t *rtype)
{
	return ompi_datatype_copy_content_same_ddt(rtype, rcount, block(rbuf, to, rcount, rtype),
						   block(rbuf, from, rcount, rtype));
}

static int fill(const module_t *m, void *rbuf, int rcount, struct ompi_datatype_t *rtype,
		struct ompi_communicator_t *comm)
{
	int rank, other, err = OMPI_SUCCESS;

	for (rank = 0; rank < ompi_comm_size(comm) && !err; rank++) {
		other = stand_in_for(m, rank, comm);
		if (other != rank)
			err = copy_block(rbuf, rank, other, rcount, rtype);
	}
	return err;
}

int mca_coll_pretend_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			       void *rbuf, int rcount, struct ompi_datatype_t *rtype,
			       struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	const module_t *m = (const module_t *)module;
	int i, rank = ompi_comm_rank(comm), err = OMPI_SUCCESS;
	char *own = block(rbuf, rank, rcount, rtype);

	if (sbuf != MPI_IN_PLACE)
		err = ompi_datatype_sndrcv(sbuf, scount, stype, own, rcount, rtype);
	for (i = 0; i < m->nr && !err; i++)
		err = distribute(m, block(rbuf, m->existing[i], rcount, rtype), rcount, rtype,
				 m->existing[i], MCA_COLL_BASE_TAG_ALLGATHER, comm);
	return err ? err : fill(m, rbuf, rcount, rtype, comm);
}

/* ---- allreduce ---- */

/* In rank order, as operators that do not commute need it: ((x0 op x1) op x2) ... */
static int combine(const module_t *m, void *rbuf, int count, struct ompi_datatype_t *type,
		   struct ompi_op_t *op, struct ompi_communicator_t *comm)
{
	ptrdiff_t gap, span = opal_datatype_span(&type->super, count, &gap);
	char *room = malloc(span + !span);
	int i, err = room ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;

	for (i = 1; i < m->nr && !err; i++) {
		err = receive_from(room - gap, count, type, m->existing[i],
			      MCA_COLL_BASE_TAG_ALLREDUCE, comm);
		if (err)
			break;
		ompi_op_reduce(op, rbuf, room - gap, count, type);
		err = ompi_datatype_copy_content_same_ddt(type, count, rbuf, room - gap);
	}
	free(room);
	return err;
}

int mca_coll_pretend_allreduce(const void *sbuf, void *rbuf, int count,
			       struct ompi_datatype_t *type, struct ompi_op_t *op,
			       struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	const module_t *m = (const module_t *)module;
	int first = m->existing[0], err = OMPI_SUCCESS;

	if (sbuf != MPI_IN_PLACE)
		err = ompi_datatype_copy_content_same_ddt(type, count, rbuf, (char *)sbuf);
	if (err)
		return err;
	if (ompi_comm_rank(comm) == first)
		err = combine(m, rbuf, count, type, op, comm);
	else
		err = send_to(rbuf, count, type, first, MCA_COLL_BASE_TAG_ALLREDUCE, comm);
	return err ? err : distribute(m, rbuf, count, type, first, MCA_COLL_BASE_TAG_ALLREDUCE,
				      comm);
}

/*
 * Complete on return: Open MPI uses it to agree on a communicator's number, which all
 * ranks do in the same order.
 */
int mca_coll_pretend_iallreduce(const void *sbuf, void *rbuf, int count,
				struct ompi_datatype_t *type, struct ompi_op_t *op,
				struct ompi_communicator_t *comm, ompi_request_t **request,
				mca_coll_base_module_t *module)
{
	*request = &ompi_request_empty;
	return mca_coll_pretend_allreduce(sbuf, rbuf, count, type, op, comm, module);
}

/* ---- barrier, bcast ---- */

static bool exists(const module_t *m, int rank)
{
	int i;

	for (i = 0; i < m->nr; i++)
		if (m->existing[i] == rank)
			return true;
	return false;
}

int mca_coll_pretend_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	int none = 0;

	return mca_coll_pretend_allreduce(MPI_IN_PLACE, &none, 1, &ompi_mpi_int.dt,
					  &ompi_mpi_op_max.op, comm, module);
}

int mca_coll_pretend_ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request,
			      mca_coll_base_module_t *module)
{
	*request = &ompi_request_empty;
	return mca_coll_pretend_barrier(comm, module);
}

int mca_coll_pretend_bcast(void *buf, int count, struct ompi_datatype_t *type, int root,
			   struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	const module_t *m = (const module_t *)module;

	/* A receive from it would wait forever. */
	if (!exists(m, root)) {
		opal_output(0, "coll pretend: the root of a broadcast, rank %d, does not exist", root);
		return OMPI_ERR_UNREACH;
	}
	return distribute(m, buf, count, type, root, MCA_COLL_BASE_TAG_BCAST, comm);
}
