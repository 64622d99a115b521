// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Over several nodes: neighbor_allgather, neighbor_alltoall, if several network devices are
 * better used by cutting messages. Bytes are cut, so data with gaps are packed first.
 */
#include "nodes.h"
#include "post.h"

#if OMPI_MAJOR_VERSION < 5

#include "devices.h"

#include <stdlib.h>

#define BYTE (&ompi_mpi_byte.dt)

/* Blocks to send or to receive, as the user has them */
struct blocks {
	void *buf;
	size_t count;
	const struct ompi_datatype_t *type;
	size_t bytes;
	char *packed;
};

static struct blocks blocks(const void *buf, int count, const struct ompi_datatype_t *type)
{
	return (struct blocks) {
		.buf = (void *)buf, .count = count, .type = type,
		.bytes = mca_coll_pvas_bytes(count, type),
	};
}

/* Memory for @nr of them, if they have gaps */
static bool make_room(struct blocks *b, int nr)
{
	if (mca_coll_pvas_is_plain(b->type))
		return true;
	b->packed = malloc(nr * b->bytes + 1);
	return b->packed;
}

static int pack(const struct blocks *b, int nr)
{
	int i, rc = OMPI_SUCCESS;

	for (i = 0; b->packed && i < nr && rc == OMPI_SUCCESS; i++)
		rc = mca_coll_pvas_copy(b->packed + i * b->bytes, b->bytes, BYTE,
					mca_coll_pvas_block_at(b->buf, b->count, b->type, i),
					b->count, b->type);
	return rc;
}

static int unpack(const struct blocks *b, const struct mca_coll_pvas_side *in)
{
	int i, rc = OMPI_SUCCESS;
	char *to;

	for (i = 0; b->packed && i < in->nr && rc == OMPI_SUCCESS; i++) {
		to = mca_coll_pvas_block_at(b->buf, b->count, b->type, i);
		if (in->edges[i].rank != MPI_PROC_NULL)
			rc = mca_coll_pvas_copy(to, b->count, b->type, b->packed + i * b->bytes,
						b->bytes, BYTE);
	}
	return rc;
}

static const char *data_of(const struct blocks *b)
{
	return b->packed ? b->packed : b->buf;
}

/* @nr_from: blocks to send, 1 if they are all the same */
static int exchange(struct mca_coll_pvas_devices *d, struct blocks *from, int nr_from,
		    struct blocks *to)
{
	int rc = OMPI_ERR_OUT_OF_RESOURCE;

	if (make_room(from, nr_from) && make_room(to, d->in.nr))
		rc = pack(from, nr_from);
	if (rc == OMPI_SUCCESS)
		rc = mca_coll_pvas_devices_exchange(d, &(struct mca_coll_pvas_exchange) {
			.from = data_of(from), .to = (char *)data_of(to),
			.stride = nr_from == 1 ? 0 : from->bytes,
			.sent = from->bytes, .received = to->bytes,
		});
	if (rc == OMPI_SUCCESS)
		rc = unpack(to, &d->in);
	free(from->packed);
	free(to->packed);
	return rc;
}

int mca_coll_pvas_nodes_neighbor_allgather(const void *sbuf, int scount,
					   struct ompi_datatype_t *stype, void *rbuf, int rcount,
					   struct ompi_datatype_t *rtype,
					   struct ompi_communicator_t *comm,
					   mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct blocks from = blocks(sbuf, scount, stype), to = blocks(rbuf, rcount, rtype);
	struct mca_coll_pvas_devices *d = mca_coll_pvas_devices_begin(m, from.bytes, to.bytes);

	if (!mca_coll_pvas_count_call(d, mca_coll_pvas_calls(neighbor_allgather)))
		return m->previous.neighbor_allgather(sbuf, scount, stype, rbuf, rcount, rtype,
						      comm, m->previous.neighbor_allgather_module);
	return exchange(d, &from, 1, &to);
}

int mca_coll_pvas_nodes_neighbor_alltoall(const void *sbuf, int scount,
					  struct ompi_datatype_t *stype, void *rbuf, int rcount,
					  struct ompi_datatype_t *rtype,
					  struct ompi_communicator_t *comm,
					  mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct blocks from = blocks(sbuf, scount, stype), to = blocks(rbuf, rcount, rtype);
	struct mca_coll_pvas_devices *d = mca_coll_pvas_devices_begin(m, from.bytes, to.bytes);

	if (!mca_coll_pvas_count_call(d, mca_coll_pvas_calls(neighbor_alltoall)))
		return m->previous.neighbor_alltoall(sbuf, scount, stype, rbuf, rcount, rtype,
						     comm, m->previous.neighbor_alltoall_module);
	return exchange(d, &from, d->out.nr, &to);
}

void mca_coll_pvas_nodes_leave_devices(struct mca_coll_pvas_nodes *m)
{
	if (m->devices)
		mca_coll_pvas_devices_free(m->devices);
}

#else

void mca_coll_pvas_nodes_leave_devices(struct mca_coll_pvas_nodes *m)
{
	(void)m;
}

#endif
