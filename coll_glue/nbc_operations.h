/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The non-blocking operations, as Open MPI calls them. */
#ifndef COLL_PVAS_NBC_OPERATIONS_H
#define COLL_PVAS_NBC_OPERATIONS_H

#include "nbc.h"

int mca_coll_pvas_ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request,
			   mca_coll_base_module_t *module);
int mca_coll_pvas_ibcast(void *buf, int count, struct ompi_datatype_t *type, int root,
			 struct ompi_communicator_t *comm, ompi_request_t **request,
			 mca_coll_base_module_t *module);
int mca_coll_pvas_igather(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
			  int rcount, struct ompi_datatype_t *rtype, int root,
			  struct ompi_communicator_t *comm, ompi_request_t **request,
			  mca_coll_base_module_t *module);
int mca_coll_pvas_igatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			   void *rbuf, const int *rcounts, const int *displs,
			   struct ompi_datatype_t *rtype, int root,
			   struct ompi_communicator_t *comm, ompi_request_t **request,
			   mca_coll_base_module_t *module);
int mca_coll_pvas_iscatter(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			   void *rbuf, int rcount, struct ompi_datatype_t *rtype, int root,
			   struct ompi_communicator_t *comm, ompi_request_t **request,
			   mca_coll_base_module_t *module);
int mca_coll_pvas_iscatterv(const void *sbuf, const int *scounts, const int *displs,
			    struct ompi_datatype_t *stype, void *rbuf, int rcount,
			    struct ompi_datatype_t *rtype, int root,
			    struct ompi_communicator_t *comm, ompi_request_t **request,
			    mca_coll_base_module_t *module);
int mca_coll_pvas_iallgather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			     void *rbuf, int rcount, struct ompi_datatype_t *rtype,
			     struct ompi_communicator_t *comm, ompi_request_t **request,
			     mca_coll_base_module_t *module);
int mca_coll_pvas_iallgatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			      void *rbuf, const int *rcounts, const int *displs,
			      struct ompi_datatype_t *rtype, struct ompi_communicator_t *comm,
			      ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_pvas_ialltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			    void *rbuf, int rcount, struct ompi_datatype_t *rtype,
			    struct ompi_communicator_t *comm, ompi_request_t **request,
			    mca_coll_base_module_t *module);
int mca_coll_pvas_ialltoallv(const void *sbuf, const int *scounts, const int *sdispls,
			     struct ompi_datatype_t *stype, void *rbuf, const int *rcounts,
			     const int *rdispls, struct ompi_datatype_t *rtype,
			     struct ompi_communicator_t *comm, ompi_request_t **request,
			     mca_coll_base_module_t *module);
int mca_coll_pvas_ialltoallw(const void *sbuf, const int *scounts, const int *sdispls,
			     struct ompi_datatype_t *const *stypes, void *rbuf,
			     const int *rcounts, const int *rdispls,
			     struct ompi_datatype_t *const *rtypes,
			     struct ompi_communicator_t *comm, ompi_request_t **request,
			     mca_coll_base_module_t *module);
int mca_coll_pvas_ineighbor_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				      void *rbuf, int rcount, struct ompi_datatype_t *rtype,
				      struct ompi_communicator_t *comm, ompi_request_t **request,
				      mca_coll_base_module_t *module);
int mca_coll_pvas_ineighbor_allgatherv(const void *sbuf, int scount,
				       struct ompi_datatype_t *stype, void *rbuf,
				       const int *rcounts, const int *displs,
				       struct ompi_datatype_t *rtype,
				       struct ompi_communicator_t *comm, ompi_request_t **request,
				       mca_coll_base_module_t *module);
int mca_coll_pvas_ineighbor_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				     void *rbuf, int rcount, struct ompi_datatype_t *rtype,
				     struct ompi_communicator_t *comm, ompi_request_t **request,
				     mca_coll_base_module_t *module);
int mca_coll_pvas_ineighbor_alltoallv(const void *sbuf, const int *scounts, const int *sdispls,
				      struct ompi_datatype_t *stype, void *rbuf,
				      const int *rcounts, const int *rdispls,
				      struct ompi_datatype_t *rtype,
				      struct ompi_communicator_t *comm, ompi_request_t **request,
				      mca_coll_base_module_t *module);
int mca_coll_pvas_ineighbor_alltoallw(const void *sbuf, const int *scounts,
				      const MPI_Aint *sdispls,
				      struct ompi_datatype_t *const *stypes, void *rbuf,
				      const int *rcounts, const MPI_Aint *rdispls,
				      struct ompi_datatype_t *const *rtypes,
				      struct ompi_communicator_t *comm, ompi_request_t **request,
				      mca_coll_base_module_t *module);
int mca_coll_pvas_ireduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			  struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
			  ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_pvas_iallreduce(const void *sbuf, void *rbuf, int count,
			     struct ompi_datatype_t *type, struct ompi_op_t *op,
			     struct ompi_communicator_t *comm, ompi_request_t **request,
			     mca_coll_base_module_t *module);
int mca_coll_pvas_ireduce_scatter(const void *sbuf, void *rbuf, const int *rcounts,
				  struct ompi_datatype_t *type, struct ompi_op_t *op,
				  struct ompi_communicator_t *comm, ompi_request_t **request,
				  mca_coll_base_module_t *module);
int mca_coll_pvas_ireduce_scatter_block(const void *sbuf, void *rbuf, int rcount,
					struct ompi_datatype_t *type, struct ompi_op_t *op,
					struct ompi_communicator_t *comm,
					ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_pvas_iscan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			struct ompi_op_t *op, struct ompi_communicator_t *comm,
			ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_pvas_iexscan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			  struct ompi_op_t *op, struct ompi_communicator_t *comm,
			  ompi_request_t **request, mca_coll_base_module_t *module);

/* Persistent ones, with the types that Open MPI gives them */
#define MCA_COLL_PVAS_DECLARE(name, type) \
	__typeof__(*(mca_coll_base_module_##type##_fn_t)NULL) mca_coll_pvas_##name;
MCA_COLL_PVAS_PERSISTENT(MCA_COLL_PVAS_DECLARE)
#undef MCA_COLL_PVAS_DECLARE

#endif /* COLL_PVAS_NBC_OPERATIONS_H */
