// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A blocking receive without a request. If nothing else can match the message that comes next
 * in its sender's ring, that goes from there into the user's buffer.
 */
#include "ring.h"

#include "../btl_glue/open_mpi.h"

#include "opal/runtime/opal_progress.h"

#define component mca_pml_pvas_component

/* Looks into the ring before the receive is posted; few if each rank in turn has the processor */
#define POLLS 100
#define POLLS_YIELDING 1

/* So often, all of Open MPI has its turn first. */
#define PROGRESS_INTERVAL 64

/* The ring that a rank's messages come through; NULL: we read none of its yet */
static struct mca_pml_pvas_in *find_in(struct mca_pml_pvas_peer *peer)
{
	unsigned int i;

	for (i = 0; i < component.nr_ins; i++)
		if (component.ins[i]->index == peer->index && peer != component.own_peer)
			peer->in = component.ins[i];
	return peer->in;
}

/* Nobody has asked before us for a message of that rank, and none of them is kept. */
static inline bool is_first(const struct mca_pml_pvas_comm *pc,
			    const struct mca_pml_pvas_source *source)
{
	return !opal_using_threads() && !source->posted.first && !pc->any.first &&
	       pc->unexpected.next == &pc->unexpected && !component.pending && !component.done;
}

/*
 * Some ten nanoseconds, with no load in flight. Loads without a pause take the line back from the
 * writer as soon as it has it, before it has stored the state, and those that were made ahead
 * have to be made again when the line changes. The instruction PAUSE takes too long.
 */
static inline void pause_polling(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * Until the state is known. Otherwise the processor, which guesses that the message is there,
 * fetches the lines of its data that are still to be written.
 */
static inline void wait_for_state(void)
{
	__builtin_ia32_lfence();
}

/* The state of the next record; 0: there was none for a while */
static inline uint32_t poll_state(const struct mca_pml_pvas_header *header)
{
	unsigned int polls = component.oversubscribed ? POLLS_YIELDING : POLLS;
	uint32_t state;

	while (!(state = __atomic_load_n(&header->state, __ATOMIC_ACQUIRE)) && --polls)
		pause_polling();
	return state;
}

static inline bool is_ours(const struct mca_pml_pvas_comm *pc,
			   const struct mca_pml_pvas_header *header, int src, int tag)
{
	return header->context == pc->comm->c_contextid && header->src == src &&
	       (header->tag == tag || (tag == OMPI_ANY_TAG && header->tag >= 0));
}

/* As much as there is room for */
static inline int take(struct mca_pml_pvas_in *in, const struct mca_pml_pvas_header *header,
		       size_t bytes, void *buf, size_t count, const struct ompi_datatype_t *type,
		       ompi_status_public_t *status)
{
	const size_t room = count * type->super.size, copied = bytes < room ? bytes : room;

	if (status != MPI_STATUS_IGNORE) {
		status->MPI_SOURCE = header->src;
		status->MPI_TAG = header->tag;
		status->_ucount = bytes;
		status->_cancelled = 0;
	}
	if (sizeof(*header) + bytes > MCA_PML_PVAS_LINES)
		wait_for_state();
	mca_pml_pvas_unpack_inline(buf, count, type, header->data, copied);
	mca_pml_pvas_pass_record(in, mca_pml_pvas_record_size(bytes));
	component.arrived++;
	return bytes > room ? MPI_ERR_TRUNCATE : OMPI_SUCCESS;
}

/* False: not possible, or the message has not come soon */
bool mca_pml_pvas_receive_direct(struct mca_pml_pvas_comm *pc, void *buf, size_t count,
				 const struct ompi_datatype_t *type, int src, int tag,
				 ompi_status_public_t *status, int *rc)
{
	const struct mca_pml_pvas_header *header;
	struct mca_pml_pvas_source *source;
	struct mca_pml_pvas_in *in;
	uint32_t state;

	if (src == OMPI_ANY_SOURCE)
		return false;
	if (!(++component.directs % PROGRESS_INTERVAL))
		opal_progress();
	source = mca_pml_pvas_source(pc, src);
	in = source->peer->in;
	if (!is_first(pc, source) || (!in && !(in = find_in(source->peer))))
		return false;
	header = mca_pml_pvas_next_record(in);
	state = poll_state(header);
	if (mca_pml_pvas_kind_of(state) != MCA_PML_PVAS_DATA || !is_ours(pc, header, src, tag))
		return false;
	*rc = take(in, header, state >> MCA_PML_PVAS_KIND_BITS, buf, count, type, status);
	return true;
}
