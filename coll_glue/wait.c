// SPDX-License-Identifier: LGPL-2.1-or-later
/* Waiting for peers. A peer that has ended is reported: otherwise the wait would never end. */
#include "post.h"

#include <sched.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

#define component mca_coll_pvas_component

/* Calls of opal_progress() between two looks at the clock; one that yields can take long */
#define CLOCK_INTERVAL 16

/*
 * Calls after which a peer has probably lost its processor, even if there is one for each: a
 * millisecond or two. Earlier, it may just be copying what is long, and a busy machine would not
 * return ours for as long as that.
 */
#define PATIENCE 10000

/* As in btl/pvas, Open MPI ends the job. */
static void end_job(struct mca_coll_pvas_module *m, int rank)
{
	const opal_process_name_t name = ompi_group_get_proc_name(m->comm->c_local_group, rank);

	opal_output(0, "coll pvas: rank %u on this node ended before MPI_Finalize",
		    (unsigned int)name.vpid);
	ompi_mpi_abort(m->comm, 1);
}

/*
 * It has passed on, for its length, the operation that this rank is in. Ranks that have may be
 * waiting for messages of this one in the component below, which no error ends.
 */
void mca_coll_pvas_differs(struct mca_coll_pvas_module *m, int rank)
{
	const opal_process_name_t name = ompi_group_get_proc_name(m->comm->c_local_group, rank);

	opal_output(0, "coll pvas: rank %u called a collective operation with another count or "
		    "datatype than rank %u", (unsigned int)name.vpid,
		    (unsigned int)OMPI_PROC_MY_NAME->vpid);
	ompi_mpi_abort(m->comm, MPI_ERR_TRUNCATE);
}

static void check_members(struct mca_coll_pvas_module *m)
{
	struct mca_coll_pvas_member member;
	int i;

	for (i = 0; i < m->size; i++) {
		member = mca_coll_pvas_member(m->comm, i);
		if (!mca_coll_pvas_member_alive(&member))
			end_job(m, i);
	}
}

/* @calls: of opal_progress() that found nothing */
void mca_coll_pvas_watch(struct mca_coll_pvas_module *m, unsigned int calls)
{
	if ((component.yield || calls % CLOCK_INTERVAL == 0) &&
	    mca_btl_pvas_check_is_due(&m->next_check)) {
		check_members(m);
		mca_coll_pvas_look_at_processors();
	}
}

/*
 * Poll a few times, then let others work: the peer that we wait for may need Open MPI's
 * progress in this rank, or this processor.
 */
void mca_coll_pvas_pause(struct mca_coll_pvas_module *m, unsigned int *polls)
{
	const unsigned int spin = component.yield ? 1 : component.spin;

	if (++*polls % spin)
		return;
	__builtin_ia32_pause();
	mca_coll_pvas_count(waits, 1);
	/* Faults in there are not ours. */
	mca_coll_pvas_inside--;
	opal_progress();
	mca_coll_pvas_inside++;
	if (component.yield || *polls / spin > PATIENCE)
		sched_yield();
	mca_coll_pvas_watch(m, *polls / spin);
}

/* A rank that has posted in an operation has finished the one before. */
static uint64_t finished_by(const struct mca_coll_pvas_line *line)
{
	const uint64_t finished = atomic_load_explicit(&line->finished, memory_order_acquire);
	const uint64_t posted = atomic_load_explicit(&line->word, memory_order_acquire) >> 8;

	return posted && posted - 1 > finished ? posted - 1 : finished;
}

static const struct mca_coll_pvas_line *line_of(const struct mca_coll_pvas_module *m, int rank,
						uint64_t op)
{
	return &m->lines[rank * m->nr_lines + (op & (m->nr_lines - 1))];
}

/*
 * An operation that a rank is known to have finished; it can have finished more. Each line is one
 * that another processor has written: few of them are looked at, the newest ones first.
 */
static uint64_t known_finished(const struct mca_coll_pvas_module *m, int rank)
{
	uint64_t last = 0, op;
	unsigned int back;

	for (back = 1; back < m->nr_lines; back *= 2) {
		op = finished_by(line_of(m, rank, m->op - back));
		if (op > last)
			last = op;
		/* Those before it can't tell of more. */
		if (last + back >= m->op)
			break;
	}
	return last;
}

/*
 * In each operation a rank posts or finishes in its line, so that either the line of @op or the
 * next one tells. Returns an operation that it has finished, at least @op.
 */
uint64_t mca_coll_pvas_wait_finished(struct mca_coll_pvas_module *m, int rank, uint64_t op)
{
	const struct mca_coll_pvas_line *line = line_of(m, rank, op);
	const struct mca_coll_pvas_line *next = line_of(m, rank, op + 1);
	const uint64_t last = op < m->op ? known_finished(m, rank) : 0;

	if (last >= op)
		return last;
	mca_coll_pvas_wait_until(m, finished_by(line) >= op || finished_by(next) >= op);
	if (op == m->op && mca_coll_pvas_has_passed(line, op))
		mca_coll_pvas_differs(m, rank);
	return op;
}

void mca_coll_pvas_wait_all_finished(struct mca_coll_pvas_module *m, uint64_t op)
{
	uint64_t least = m->op, last;
	int i;

	if (op <= m->all_finished)
		return;
	for (i = 0; i < m->size; i++) {
		if (i == m->rank)
			continue;
		last = mca_coll_pvas_wait_finished(m, i, op);
		if (last < least)
			least = last;
	}
	m->all_finished = least;
}
