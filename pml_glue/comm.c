// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Communicators. ob1 knows all of them, too: its performance variables look into its own part
 * of a communicator, which stays empty for those that we own.
 */
#include "pml_pvas.h"

#include <stdlib.h>

#include "ompi/runtime/mpiruntime.h"

#define component mca_pml_pvas_component

/* ---- ranks of a communicator ---- */

static struct mca_pml_pvas_source *no_memory(struct mca_pml_pvas_comm *pc)
{
	ompi_mpi_abort(pc->comm, MPI_ERR_NO_MEM);
	return NULL;
}

/* The caller holds the lock. It never returns without one. */
struct mca_pml_pvas_source *mca_pml_pvas_new_source(struct mca_pml_pvas_comm *pc, int rank)
{
	struct mca_pml_pvas_source *source = calloc(1, sizeof(*source));

	if (!source)
		return no_memory(pc);
	source->peer = mca_pml_pvas_peer_of(pc->comm->c_remote_group, rank);
	if (!source->peer)
		return no_memory(pc);
	if (!source->peer->out && source->peer->port != component.port &&
	    !mca_pml_pvas_new_out(source->peer))
		return no_memory(pc);
	source->posted.last = &source->posted.first;
	mca_pml_pvas_list_init(&source->unexpected);
	pc->sources[rank] = source;
	return source;
}

/* ---- adding ---- */

/* Messages that were here before the communicator: no receive can be posted yet. */
static void file_early(struct mca_pml_pvas_comm *pc)
{
	struct mca_pml_pvas_message *message;
	struct mca_pml_pvas_link *link, *next;

	for (link = component.early.next; link != &component.early; link = next) {
		next = link->next;
		message = mca_pml_pvas_entry(link, struct mca_pml_pvas_message, of_comm);
		/* A wrong program's may be of an earlier communicator, which was larger. */
		if (message->context != pc->comm->c_contextid || message->src >= pc->size)
			continue;
		mca_pml_pvas_list_remove(link);
		message->from = mca_pml_pvas_source(pc, message->src)->peer;
		mca_pml_pvas_file(pc, message);
	}
}

static void watch_all(const struct ompi_group_t *group)
{
	struct mca_pml_pvas_peer *peer;
	int i;

	for (i = 0; i < group->grp_proc_count; i++) {
		peer = mca_pml_pvas_peer_of(group, i);
		if (peer)
			peer->watched = true;
	}
}

static int own(struct ompi_communicator_t *comm)
{
	const int size = comm->c_remote_group->grp_proc_count;
	struct mca_pml_pvas_comm *pc = calloc(1, sizeof(*pc) + size * sizeof(pc->sources[0]));

	if (!pc)
		return OMPI_ERR_OUT_OF_RESOURCE;
	pc->comm = comm;
	pc->size = size;
	pc->any.last = &pc->any.first;
	mca_pml_pvas_list_init(&pc->unexpected);
	component.comms[comm->c_contextid] = pc;
	mca_pml_pvas_count(communicators, 1);
	watch_all(comm->c_local_group);
	if (comm->c_remote_group != comm->c_local_group)
		watch_all(comm->c_remote_group);
	file_early(pc);
	return OMPI_SUCCESS;
}

int mca_pml_pvas_add_comm(struct ompi_communicator_t *comm)
{
	int rc = component.ob1.pml_add_comm(comm);

	if (rc != OMPI_SUCCESS)
		return rc;
	mca_pml_pvas_lock();
	if (mca_pml_pvas_same_space(comm))
		rc = own(comm);
	mca_pml_pvas_unlock();
	if (rc != OMPI_SUCCESS)
		component.ob1.pml_del_comm(comm);
	return rc;
}

/* ---- deleting ---- */

/* Messages that nobody has received: their senders need not wait any longer. */
static void drop_messages(struct mca_pml_pvas_comm *pc)
{
	struct mca_pml_pvas_message *message;

	while (pc->unexpected.next != &pc->unexpected) {
		message = mca_pml_pvas_entry(pc->unexpected.next, struct mca_pml_pvas_message,
					     of_comm);
		mca_pml_pvas_take(message);
		if (message->offer && mca_pml_pvas_runs(message->from->index, message->from->gen))
			mca_pml_pvas_give_back(message->from, message->offer);
		mca_pml_pvas_free_message(message);
	}
}

int mca_pml_pvas_del_comm(struct ompi_communicator_t *comm)
{
	struct mca_pml_pvas_comm *pc = mca_pml_pvas_owned(comm);
	int i;

	if (!pc || pc->comm != comm)
		return component.ob1.pml_del_comm(comm);
	mca_pml_pvas_lock();
	component.comms[comm->c_contextid] = NULL;
	mca_pml_pvas_count(communicators, -1);
	drop_messages(pc);
	mca_pml_pvas_unlock();
	for (i = 0; i < pc->size; i++)
		free(pc->sources[i]);
	free(pc);
	return component.ob1.pml_del_comm(comm);
}
