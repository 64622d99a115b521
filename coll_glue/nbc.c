// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Non-blocking operations: their requests, and progress without a thread. The non-blocking
 * operations of a communicator are numbered apart from the blocking ones, and use other
 * memory, so neither waits for the other. All ranks start them in one order, and complete
 * them in any.
 */
#include "nbc.h"

#include <sched.h>
#include <stdlib.h>

#include "opal/runtime/opal_progress.h"

#define component mca_coll_pvas_component

/*
 * Calls of the progress function that complete nothing, one after the other, after which a
 * processor is yielded: a millisecond or two. If others use the processors, too, it is theirs for
 * as long then, so that this must not happen while a peer copies what is long.
 */
#define PATIENCE 20000

/* ---- requests ---- */

void mca_coll_pvas_free_request(struct mca_coll_pvas_request *r)
{
	struct ompi_communicator_t *comm = r->m->comm;

	OMPI_REQUEST_FINI(&r->super.super);
	OBJ_DESTRUCT(&r->super);
	free(r->call.kept);
	free(r);
	/* This can be the end of @m, if the user has freed the communicator. */
	OBJ_RELEASE(comm);
}

static int free_request(ompi_request_t **request)
{
	mca_coll_pvas_free_request((struct mca_coll_pvas_request *)*request);
	*request = MPI_REQUEST_NULL;
	return OMPI_SUCCESS;
}

struct mca_coll_pvas_request *mca_coll_pvas_new_request(struct mca_coll_pvas_module *m,
							const struct mca_coll_pvas_call *call)
{
	const int nr = mca_coll_pvas_nr_sources(m, call->sources);
	struct mca_coll_pvas_request *r = calloc(1, sizeof(*r) + nr * sizeof(*r->fetched));

	if (!r)
		return NULL;
	OBJ_CONSTRUCT(&r->super, ompi_coll_base_nbc_request_t);
	OMPI_REQUEST_INIT(&r->super.super, m->initializing);
	r->super.super.req_type = OMPI_REQUEST_COLL;
	r->super.super.req_status = ompi_status_empty;
	r->super.super.req_free = free_request;
	r->super.super.req_cancel = NULL;
	r->super.super.req_mpi_object.comm = m->comm;
	OBJ_RETAIN(m->comm);
	r->m = m;
	r->nbc = mca_coll_pvas_nbc(m);
	r->call = *call;
	return r;
}

/* ---- starting ---- */

static bool step(struct mca_coll_pvas_request *r)
{
	bool complete;

	mca_coll_pvas_inside++;
	complete = mca_coll_pvas_step(r);
	mca_coll_pvas_inside--;
	return complete;
}

/* Begin at once, so that others can go on; true: it is complete already. */
bool mca_coll_pvas_begin_request(struct mca_coll_pvas_request *r)
{
	bool complete;

	mca_coll_pvas_count(operations, 1);
	r->super.super.req_state = OMPI_REQUEST_ACTIVE;
	r->state = MCA_COLL_PVAS_STARTED;
	r->nr_left = mca_coll_pvas_nr_sources(r->m, r->call.sources);
	OPAL_THREAD_LOCK(&component.nbc_lock);
	if (!r->super.super.req_persistent)
		r->op = r->line = ++r->nbc->op;
	complete = step(r);
	if (!complete) {
		opal_list_append(&component.requests, &r->super.super.super.super);
		component.nr_unfinished++;
	}
	OPAL_THREAD_UNLOCK(&component.nbc_lock);
	return complete;
}

/*
 * Start an operation, or initialize a persistent one, after mca_coll_pvas_nbc_begin().
 * @call->kept is freed in any case.
 */
int mca_coll_pvas_start(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_call *call,
			ompi_request_t **request)
{
	struct mca_coll_pvas_request *r;
	int rc;

	if (m->initializing)
		return mca_coll_pvas_init(m, call, request);
	r = mca_coll_pvas_new_request(m, call);
	if (!r) {
		free(call->kept);
		return OMPI_ERR_OUT_OF_RESOURCE;
	}
	if (!mca_coll_pvas_begin_request(r)) {
		*request = &r->super.super;
		return OMPI_SUCCESS;
	}
	*request = &ompi_request_empty;
	rc = r->rc;
	mca_coll_pvas_free_request(r);
	return rc;
}

/* ---- progress ---- */

/* The program waits, most likely: for a rank that has ended, or that needs this processor. */
static void idle(void)
{
	static __thread unsigned int calls;
	struct mca_coll_pvas_request *r;

	calls++;
	if (component.yield || ++component.in_vain % PATIENCE == 0)
		sched_yield();
	OPAL_LIST_FOREACH(r, &component.requests, struct mca_coll_pvas_request)
		mca_coll_pvas_watch(r->m, calls);
}

/* Go on with all operations; those that are complete are moved to @complete. */
static void step_all(opal_list_t *complete)
{
	struct mca_coll_pvas_request *r, *next;

	OPAL_LIST_FOREACH_SAFE(r, next, &component.requests, struct mca_coll_pvas_request) {
		if (!step(r))
			continue;
		opal_list_remove_item(&component.requests, &r->super.super.super.super);
		component.nr_unfinished--;
		opal_list_append(complete, &r->super.super.super.super);
	}
}

static void complete_requests(opal_list_t *complete)
{
	struct mca_coll_pvas_request *r, *next;

	OPAL_LIST_FOREACH_SAFE(r, next, complete, struct mca_coll_pvas_request) {
		opal_list_remove_item(complete, &r->super.super.super.super);
		r->super.super.req_status.MPI_ERROR = r->rc;
		ompi_request_complete(&r->super.super, true);
	}
}

/*
 * Called by opal_progress(). It may be called again in another thread, or by an operator of
 * the program, and does nothing then.
 */
static int progress(void)
{
	struct mca_coll_pvas_nbc *attached;
	opal_list_t complete;
	int nr;

	if (!component.nr_unfinished || component.in_progress)
		return 0;
	if (OPAL_THREAD_TRYLOCK(&component.nbc_lock))
		return 0;
	component.in_progress = true;
	OBJ_CONSTRUCT(&complete, opal_list_t);
	attached = mca_coll_pvas_nbc_take_attached();
	step_all(&complete);
	nr = opal_list_get_size(&complete);
	component.in_progress = false;
	if (nr)
		component.in_vain = 0;
	else if (opal_list_get_size(&component.requests))
		idle();
	OPAL_THREAD_UNLOCK(&component.nbc_lock);
	complete_requests(&complete);
	mca_coll_pvas_nbc_attached(attached);
	OBJ_DESTRUCT(&complete);
	return nr;
}

void mca_coll_pvas_progress_begin(void)
{
	opal_progress_register(progress);
}

void mca_coll_pvas_progress_end(void)
{
	opal_progress_unregister(progress);
}
