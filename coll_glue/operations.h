/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The operations, as Open MPI calls them. */
#ifndef COLL_PVAS_OPERATIONS_H
#define COLL_PVAS_OPERATIONS_H

#include "post.h"

int mca_coll_pvas_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_bcast(void *buf, int count, struct ompi_datatype_t *type, int root,
			struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_scatter(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
			  int rcount, struct ompi_datatype_t *rtype, int root,
			  struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_scatterv(const void *sbuf, const int *scounts, const int *displs,
			   struct ompi_datatype_t *stype, void *rbuf, int rcount,
			   struct ompi_datatype_t *rtype, int root,
			   struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_gather(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
			 int rcount, struct ompi_datatype_t *rtype, int root,
			 struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_gatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
			  const int *rcounts, const int *displs, struct ompi_datatype_t *rtype,
			  int root, struct ompi_communicator_t *comm,
			  mca_coll_base_module_t *module);
int mca_coll_pvas_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
			    int rcount, struct ompi_datatype_t *rtype,
			    struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_allgatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			     void *rbuf, const int *rcounts, const int *displs,
			     struct ompi_datatype_t *rtype, struct ompi_communicator_t *comm,
			     mca_coll_base_module_t *module);
int mca_coll_pvas_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
			   int rcount, struct ompi_datatype_t *rtype,
			   struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_alltoallv(const void *sbuf, const int *scounts, const int *sdispls,
			    struct ompi_datatype_t *stype, void *rbuf, const int *rcounts,
			    const int *rdispls, struct ompi_datatype_t *rtype,
			    struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_alltoallw(const void *sbuf, const int *scounts, const int *sdispls,
			    struct ompi_datatype_t *const *stypes, void *rbuf, const int *rcounts,
			    const int *rdispls, struct ompi_datatype_t *const *rtypes,
			    struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_reduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			 struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
			 mca_coll_base_module_t *module);
int mca_coll_pvas_allreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			    struct ompi_op_t *op, struct ompi_communicator_t *comm,
			    mca_coll_base_module_t *module);
int mca_coll_pvas_reduce_scatter(const void *sbuf, void *rbuf, const int *rcounts,
				 struct ompi_datatype_t *type, struct ompi_op_t *op,
				 struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_pvas_reduce_scatter_block(const void *sbuf, void *rbuf, int rcount,
				       struct ompi_datatype_t *type, struct ompi_op_t *op,
				       struct ompi_communicator_t *comm,
				       mca_coll_base_module_t *module);
int mca_coll_pvas_scan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
		       struct ompi_op_t *op, struct ompi_communicator_t *comm,
		       mca_coll_base_module_t *module);
int mca_coll_pvas_exscan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			 struct ompi_op_t *op, struct ompi_communicator_t *comm,
			 mca_coll_base_module_t *module);
int mca_coll_pvas_neighbor_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				     void *rbuf, int rcount, struct ompi_datatype_t *rtype,
				     struct ompi_communicator_t *comm,
				     mca_coll_base_module_t *module);
int mca_coll_pvas_neighbor_allgatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				      void *rbuf, const int *rcounts, const int *displs,
				      struct ompi_datatype_t *rtype,
				      struct ompi_communicator_t *comm,
				      mca_coll_base_module_t *module);
int mca_coll_pvas_neighbor_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				    void *rbuf, int rcount, struct ompi_datatype_t *rtype,
				    struct ompi_communicator_t *comm,
				    mca_coll_base_module_t *module);
int mca_coll_pvas_neighbor_alltoallv(const void *sbuf, const int *scounts, const int *sdispls,
				     struct ompi_datatype_t *stype, void *rbuf, const int *rcounts,
				     const int *rdispls, struct ompi_datatype_t *rtype,
				     struct ompi_communicator_t *comm,
				     mca_coll_base_module_t *module);
int mca_coll_pvas_neighbor_alltoallw(const void *sbuf, const int *scounts, const MPI_Aint *sdispls,
				     struct ompi_datatype_t *const *stypes, void *rbuf,
				     const int *rcounts, const MPI_Aint *rdispls,
				     struct ompi_datatype_t *const *rtypes,
				     struct ompi_communicator_t *comm,
				     mca_coll_base_module_t *module);

#endif /* COLL_PVAS_OPERATIONS_H */
