// SPDX-License-Identifier: LGPL-2.1-or-later
/* Communicators over several nodes: selection, and the communicators inside and between them. */
#include "nodes.h"
#include "post.h"

#include <stdlib.h>
#include <string.h>

#define component mca_coll_pvas_component

static void construct(mca_coll_pvas_nodes_t *m)
{
	memset(&m->previous, 0, sizeof(*m) - offsetof(mca_coll_pvas_nodes_t, previous));
}

static void destruct(mca_coll_pvas_nodes_t *m)
{
	if (m->node)
		ompi_comm_free(&m->node);
	if (m->leaders)
		ompi_comm_free(&m->leaders);
	free(m->node_of);
	mca_coll_pvas_nodes_leave_devices(m);
#define RELEASE(name, type)					\
	if (m->previous.name##_module)				\
		OBJ_RELEASE(m->previous.name##_module);
	MCA_COLL_PVAS_NODES_OPERATIONS(RELEASE)
#undef RELEASE
}

OBJ_CLASS_INSTANCE(mca_coll_pvas_nodes_t, mca_coll_base_module_t, construct, destruct);

/* Without one of the operations below ours nothing can be passed on, so leave that one alone. */
static int enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;

	m->comm = comm;
#define SAVE(name, type) MCA_COLL_PVAS_SAVE(m, comm, name)
	MCA_COLL_PVAS_NODES_OPERATIONS(SAVE)
#undef SAVE
	return OMPI_SUCCESS;
}

/* Two ranks of one node, and others: what all ranks find alike, from what all have published */
static bool has_nodes(struct ompi_communicator_t *comm)
{
	const int size = ompi_comm_size(comm);
	const uint64_t first = mca_coll_pvas_home(comm, 0);
	bool several = false;
	uint64_t home;
	int i;

	for (i = 0; i < size; i++) {
		home = mca_coll_pvas_home(comm, i);
		if (!home)
			return false;
		several |= home != first;
	}
	return several;
}

/* Homes are numbers without order, but equal ones become neighbors. */
static int compare_homes(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool has_peers(struct ompi_communicator_t *comm)
{
	const int size = ompi_comm_size(comm);
	uint64_t *homes = malloc(size * sizeof(*homes));
	bool found = false;
	int i;

	if (!homes)
		return false;
	for (i = 0; i < size; i++)
		homes[i] = mca_coll_pvas_home(comm, i);
	qsort(homes, size, sizeof(*homes), compare_homes);
	for (i = 1; i < size; i++)
		found |= homes[i] == homes[i - 1];
	free(homes);
	return found;
}

mca_coll_base_module_t *mca_coll_pvas_nodes_query(struct ompi_communicator_t *comm, int *priority)
{
	mca_coll_pvas_nodes_t *m;

	if (!component.modex.home || ompi_comm_size(comm) > (int)component.most_ranks ||
	    !has_nodes(comm) || !has_peers(comm))
		return NULL;
	m = OBJ_NEW(mca_coll_pvas_nodes_t);
	if (!m)
		return NULL;
	*priority = component.priority;
	m->super.coll_module_enable = enable;
#define SET(name, type) m->super.coll_##name = mca_coll_pvas_nodes_##name;
	MCA_COLL_PVAS_NODES_OPERATIONS(SET)
#undef SET
	return &m->super;
}

/* ---- the first operation ---- */

/* Number the nodes by their first ranks, as @leaders will be numbered. */
static void number_nodes(struct mca_coll_pvas_nodes *m, uint64_t *homes)
{
	const int size = ompi_comm_size(m->comm);
	uint64_t home;
	int i, k;

	for (i = 0; i < size; i++) {
		home = mca_coll_pvas_home(m->comm, i);
		for (k = 0; k < m->nr && homes[k] != home; k++)
			;
		homes[k] = home;
		m->nr += k == m->nr;
		m->node_of[i] = k;
		m->first[k + 1]++;
	}
	m->me = m->node_of[ompi_comm_rank(m->comm)];
}

static void sort_ranks(struct mca_coll_pvas_nodes *m, int *next)
{
	const int size = ompi_comm_size(m->comm);
	int i;

	for (i = 0; i < m->nr; i++)
		m->first[i + 1] += m->first[i];
	memcpy(next, m->first, m->nr * sizeof(*next));
	for (i = 0; i < size; i++)
		m->ranks[next[m->node_of[i]]++] = i;
}

/* Are ranks sorted by node as they are, and do all nodes have as many? */
static void find_order(struct mca_coll_pvas_nodes *m)
{
	const int size = ompi_comm_size(m->comm);
	int i;

	m->sorted = m->even = true;
	for (i = 0; i < size; i++)
		m->sorted &= m->ranks[i] == i;
	for (i = 0; i < m->nr; i++)
		m->even &= mca_coll_pvas_nodes_ranks(m, i) == m->first[1];
}

static bool find_nodes(struct mca_coll_pvas_nodes *m)
{
	const int size = ompi_comm_size(m->comm);
	uint64_t *homes = malloc(size * sizeof(*homes));

	m->node_of = calloc(3 * size + 1, sizeof(*m->node_of));
	if (!homes || !m->node_of) {
		free(homes);
		return false;
	}
	m->ranks = m->node_of + size;
	m->first = m->ranks + size;
	number_nodes(m, homes);
	sort_ranks(m, (int *)homes);
	find_order(m);
	free(homes);
	return true;
}

/*
 * Open MPI splits communicators by operations on them, which are passed on meanwhile. A rank
 * without memory takes part, too: all ranks then see that not all have both communicators.
 */
static int attach(struct mca_coll_pvas_nodes *m)
{
	const int rank = ompi_comm_rank(m->comm);
	const bool found = find_nodes(m);
	const bool leads = found && m->ranks[m->first[m->me]] == rank;
	struct ompi_communicator_t *leaders = NULL;
	int rc, all_found = found;

	m->state = MCA_COLL_PVAS_ATTACHING;
	rc = m->previous.allreduce(MPI_IN_PLACE, &all_found, 1, &ompi_mpi_int.dt,
				   &ompi_mpi_op_min.op, m->comm, m->previous.allreduce_module);
	if (rc == OMPI_SUCCESS && all_found)
		rc = ompi_comm_split(m->comm, m->me, rank, &m->node, false);
	if (rc == OMPI_SUCCESS && all_found)
		rc = ompi_comm_split(m->comm, leads ? 0 : MPI_UNDEFINED, rank, &leaders, false);
	if (leads && rc == OMPI_SUCCESS)
		m->leaders = leaders;
	m->state = rc == OMPI_SUCCESS && all_found ? MCA_COLL_PVAS_READY : MCA_COLL_PVAS_PASSING;
	return rc;
}

/* Are both communicators there? If not yet, they are made. */
bool mca_coll_pvas_nodes_ready(struct mca_coll_pvas_nodes *m)
{
	if (OPAL_UNLIKELY(m->state == MCA_COLL_PVAS_NEW) && attach(m) != OMPI_SUCCESS)
		m->state = MCA_COLL_PVAS_PASSING;
	return m->state == MCA_COLL_PVAS_READY;
}

/* All ranks must find alike whether an operation is @possible. */
bool mca_coll_pvas_nodes_begin_next(struct mca_coll_pvas_nodes *m, bool possible)
{
	if (possible && mca_coll_pvas_nodes_ready(m)) {
		mca_coll_pvas_count(operations, 1);
		return true;
	}
	if (m->state != MCA_COLL_PVAS_ATTACHING)
		mca_coll_pvas_count(passed_on, 1);
	return false;
}

/* The number of a rank in the communicator of its node */
int mca_coll_pvas_nodes_rank_in_node(const struct mca_coll_pvas_nodes *m, int rank)
{
	const int *first = &m->ranks[m->first[m->node_of[rank]]];
	int i = 0;

	while (first[i] != rank)
		i++;
	return i;
}

/* ---- blocks ---- */

/*
 * Copy blocks of @count elements from where they belong by rank to @packed, sorted by node. There
 * they have @bytes, and no more, although that is how long they are if counts match.
 */
int mca_coll_pvas_nodes_sort(const struct mca_coll_pvas_nodes *m, char *packed, size_t bytes,
			     const void *buf, size_t count, const struct ompi_datatype_t *type)
{
	const int size = ompi_comm_size(m->comm);
	int i, rc = OMPI_SUCCESS;

	for (i = 0; i < size && rc == OMPI_SUCCESS; i++)
		rc = mca_coll_pvas_copy(packed + i * bytes, bytes, &ompi_mpi_byte.dt,
					mca_coll_pvas_block_at(buf, count, type, m->ranks[i]),
					count, type);
	return rc;
}

/* And back */
int mca_coll_pvas_nodes_unsort(const struct mca_coll_pvas_nodes *m, void *buf, size_t count,
			       const struct ompi_datatype_t *type, const char *packed,
			       size_t bytes)
{
	const int size = ompi_comm_size(m->comm);
	int i, rc = OMPI_SUCCESS;

	for (i = 0; i < size && rc == OMPI_SUCCESS; i++)
		rc = mca_coll_pvas_copy(mca_coll_pvas_block_at(buf, count, type, m->ranks[i]),
					count, type, packed + i * bytes, bytes,
					&ompi_mpi_byte.dt);
	return rc;
}

/* For leaders: the length of each node's blocks, and, behind all lengths, where they are */
int *mca_coll_pvas_nodes_counts(const struct mca_coll_pvas_nodes *m, size_t bytes)
{
	int *counts = malloc(2 * m->nr * sizeof(*counts)), k;

	for (k = 0; counts && k < m->nr; k++) {
		counts[k] = mca_coll_pvas_nodes_ranks(m, k) * bytes;
		counts[m->nr + k] = m->first[k] * bytes;
	}
	return counts;
}

/* ---- segments ---- */

struct mca_coll_pvas_segments mca_coll_pvas_cut(size_t count, const struct ompi_datatype_t *type)
{
	struct mca_coll_pvas_segments s = { .type = type, .count = count, .each = 1, .nr = 0 };

	if (type->super.size && type->super.size < component.segment)
		s.each = component.segment / type->super.size;
	if (count && type->super.size)
		s.nr = (count - 1) / s.each + 1;
	return s;
}

/* Wait for the segment that used this place in the window. */
int mca_coll_pvas_wait_request(struct mca_coll_pvas_window *w, int segment)
{
	ompi_request_t **request = mca_coll_pvas_request_of(w, segment);
	int rc = OMPI_SUCCESS;

	if (*request)
		rc = ompi_request_wait(request, MPI_STATUS_IGNORE);
	*request = NULL;
	return rc;
}

/* Wait for all; the first error counts. */
int mca_coll_pvas_wait_window(struct mca_coll_pvas_window *w, int rc)
{
	int i, now;

	for (i = 0; i < MCA_COLL_PVAS_WINDOW; i++) {
		now = mca_coll_pvas_wait_request(w, i);
		if (rc == OMPI_SUCCESS)
			rc = now;
	}
	return rc;
}
