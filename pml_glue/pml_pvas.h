/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The point-to-point layer "pvas" for Open MPI 4.1. It owns the communicators whose ranks all
 * are tasks of one PVAS space, and passes calls for all others on to ob1. README.md describes
 * the protocol: who owns which line, who writes where, and what happens when a peer ends.
 *
 *  shared.h      what ranks read and write in each other's memory
 *  fault_point.h where a test stops a rank
 *  component.c   parameters, counters, and how the component gets in front of ob1
 *  module.c      the module, and what is ob1's matter
 *  peers.c       which processes are in our space, and do they still run
 *  failure.c     peers that end before MPI_Finalize
 *  comm.c        communicators
 *  match.c       posted receives and unexpected messages
 *  ring.h        records in a ring
 *  ring.c        the port with its rings, and finding the writers
 *  request.c     requests: allocation, completion, free, cancel, start
 *  send.c        the sender
 *  receive.c     the receiver: calls that receive
 *  direct.c      blocking receives without a request
 *  probe.c       probe, mprobe, and receiving a message found so
 *  progress.c    reading the rings, completing sends
 *  fetch.c       fetching data that were left with their sender
 *  strided.c     copies between layouts of equal blocks
 *
 * Copies between datatypes are those of coll/pvas.
 *
 * One lock protects everything but what peers write. It is held neither in a callback nor
 * while data are fetched from a sender's buffer.
 */
#ifndef PML_PVAS_H
#define PML_PVAS_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/message/message.h"
#include "ompi/request/request.h"
#include "opal/threads/mutex.h"

#include <linux/pvas.h>

#include "../btl_glue/common.h"
#include "fault_point.h"
#include "shared.h"

#define MCA_PML_PVAS_NAME "pml pvas"

/* The largest context id is 65535. */
#define MCA_PML_PVAS_CONTEXTS 65536

/**
 * struct mca_pml_pvas_link - in a circular, doubly linked list
 */
struct mca_pml_pvas_link {
	struct mca_pml_pvas_link *next, *prev;
};

struct mca_pml_pvas_request;

/**
 * struct mca_pml_pvas_out - what we send to a peer
 * @gen_now:	of the peer's partition; not @gen: another program has its memory now
 * @pos:	in the ring's data, of the next record
 * @head:	bytes written; @limit bytes can be, as far as we know
 * @arrived:	the component's when a message of more than @burst_limit was last copied
 * @pending:	sends that have not got into the ring, in order
 * @next:	in the component's list of peers with such sends
 */
struct mca_pml_pvas_out {
	struct mca_pml_pvas_ring *ring;
	const uint32_t *gen_now;
	uint32_t gen;
	uint32_t size;
	uint32_t pos;
	uint64_t head;
	uint64_t limit;
	size_t inline_limit;
	uint64_t arrived;
	bool congested;
	bool listed;
	struct mca_pml_pvas_request *pending, **last_pending;
	struct mca_pml_pvas_out *next;
};

/**
 * struct mca_pml_pvas_in - a ring that we read
 * @pos:	in its data, of the next record
 * @read:	bytes read, of which the writer was told @told
 * @held:	bytes of unexpected messages from it that we have copied
 */
struct mca_pml_pvas_in {
	struct mca_pml_pvas_ring *ring;
	uint32_t size;
	uint32_t pos;
	uint64_t read;
	uint64_t told;
	size_t held;
	uint32_t index;
};

/**
 * struct mca_pml_pvas_peer - a process that we have a communicator with
 * @port:	NULL: not in our space, or not with this component
 * @in:		its ring, once a blocking receive has looked for it
 * @watched:	we own a communicator with it, so it knows us, too, and will say that it finalizes
 * @gone:	it has ended, or one of us has finalized
 */
struct mca_pml_pvas_peer {
	opal_process_name_t name;
	uint32_t index;
	uint32_t gen;
	struct mca_pml_pvas_port *port;
	struct mca_pml_pvas_out *out;
	struct mca_pml_pvas_in *in;
	bool watched;
	bool gone;
};

/**
 * struct mca_pml_pvas_queue - receives, in the order in which they were posted
 */
struct mca_pml_pvas_queue {
	struct mca_pml_pvas_request *first, **last;
};

/**
 * struct mca_pml_pvas_source - a rank of a communicator that we send to or receive from
 * @unexpected:	its messages, in order
 */
struct mca_pml_pvas_source {
	struct mca_pml_pvas_peer *peer;
	struct mca_pml_pvas_queue posted;
	struct mca_pml_pvas_link unexpected;
};

/**
 * struct mca_pml_pvas_comm - a communicator whose ranks all are in our space
 * @posted:	number of the receive posted last
 * @any:	posted receives from any source
 * @unexpected:	of all sources, as they came
 * @sources:	by rank, in the remote group of an intercommunicator
 */
struct mca_pml_pvas_comm {
	struct ompi_communicator_t *comm;
	uint64_t posted;
	struct mca_pml_pvas_queue any;
	struct mca_pml_pvas_link unexpected;
	int size;
	struct mca_pml_pvas_source *sources[];
};

/**
 * struct mca_pml_pvas_message - an unexpected one
 * @of_source, @of_comm:	in lists of its source and of its communicator
 * @in:		where it came from, if we have copied it
 * @offer:	its data are left with the sender @from; NULL: they are in @data
 * @context:	of its communicator, in case we have none yet
 */
struct mca_pml_pvas_message {
	struct mca_pml_pvas_link of_source, of_comm;
	struct mca_pml_pvas_in *in;
	struct mca_pml_pvas_offer *offer;
	struct mca_pml_pvas_peer *from;
	size_t bytes;
	int src;
	int tag;
	uint32_t context;
	_Alignas(16) char data[];
};

/**
 * struct mca_pml_pvas_request - a send or a receive
 * @next:	in the list of posted receives, pending or done sends, or unused requests
 * @peer, @tag:	of the call
 * @number:	of a posted receive
 * @bytes:	packed size
 * @done:	completed, but for telling the user
 * @freed:	by the user, before it was done or while the user is told
 * @telling:	how many threads tell the user; a persistent one may have been started again
 * @posted:	in a list, waiting for a message
 * @left:	to be left in place, although it is short
 * @buffer:	of MPI_Bsend, to be freed
 * @offer:	of a send
 * @fetch:	of a receive: the offer whose data come next, of the peer @from
 * @direct:	they are contiguous, and here; NULL: see the offer
 */
struct mca_pml_pvas_request {
	ompi_request_t super;
	struct mca_pml_pvas_request *next;
	struct mca_pml_pvas_comm *pc;
	void *buf;
	size_t count;
	struct ompi_datatype_t *type;
	size_t bytes;
	int peer;
	int tag;
	uint64_t number;
	mca_pml_base_send_mode_t mode;
	bool send;
	bool done;
	bool freed;
	bool posted;
	bool left;
	unsigned int telling;
	void *buffer;
	struct mca_pml_pvas_offer offer;
	struct mca_pml_pvas_offer *fetch;
	const void *direct;
	struct mca_pml_pvas_peer *from;
};
typedef struct mca_pml_pvas_request mca_pml_pvas_request_t;
OBJ_CLASS_DECLARATION(mca_pml_pvas_request_t);

/* MPI_T performance variables; approximate with threads */
struct mca_pml_pvas_counters {
	unsigned long long eager;
	unsigned long long references;
	unsigned long long local;
	unsigned long long fetched;
	unsigned long long bytes_fetched;
	unsigned long long pieces_helped;
	unsigned long long unexpected;
	unsigned long long unexpected_bytes;
	unsigned long long unexpected_most;
	unsigned long long waits;
	unsigned long long communicators;
};

/**
 * struct mca_pml_pvas_component - the component and its state
 * @requested:	by MCA parameter pml
 * @active:	in front of ob1
 * @ob1, @ob1_component:	copies of what was selected
 * @comms:	by context id: those that we own; the others are ob1's
 * @early:	messages of communicators that we do not have yet
 * @own_peer:	this process
 * @own_in:	counts unexpected messages to ourselves
 * @ins:	the rings that we read
 * @seen:	@port->nr_announced when they were last looked for
 * @arrived:	messages read so far, from 1
 * @directs:	receives that were tried without a request
 * @nr_posted:	receives that wait for a message
 * @pending:	peers with sends that have not got into the ring
 * @done:	sends to complete, without the lock: in a list that all threads see, and calls from
 *		within the user's callbacks
 * @touching:	a thread that has the lock writes to a peer's memory
 * @fetching:	threads that read or write a peer's memory without the lock
 * @next_check:	when peers are to be checked again
 */
struct mca_pml_pvas_component {
	mca_pml_base_component_t super;

	unsigned int ring_size;
	unsigned int copy_limit;
	unsigned int burst_limit;
	unsigned int unexpected_limit;
	unsigned int unexpected_max;
	unsigned int share_limit;
	unsigned int share_piece;
	unsigned int first_touch;
	unsigned int spin;
	bool watch_peers;

	bool requested;
	bool active;
	mca_pml_base_module_t ob1;
	mca_pml_base_component_t ob1_component;

	struct mca_btl_pvas_faults faults;
	struct mca_pml_pvas_port *port;
	size_t port_bytes;
	struct mca_pml_pvas_comm **comms;
	struct mca_pml_pvas_link early;
	struct mca_pml_pvas_peer **peers;
	unsigned int nr_peers;
	unsigned int last_peer;
	uint64_t next_check;
	struct mca_pml_pvas_peer *own_peer;
	struct mca_pml_pvas_in own_in;
	struct mca_pml_pvas_in **ins;
	unsigned int nr_ins;
	uint64_t seen;
	uint64_t arrived;
	unsigned int directs;
	unsigned int nr_posted;
	struct mca_pml_pvas_out *pending;
	struct mca_pml_pvas_request *done;
	struct mca_pml_pvas_request *unused;
	volatile bool touching;
	volatile int32_t fetching;
	unsigned int idle;
	bool oversubscribed;
	opal_mutex_t lock;

	struct mca_pml_pvas_counters counters;
};

/* The symbol that Open MPI looks up */
extern struct mca_pml_pvas_component mca_pml_pvas_component __attribute__((visibility("default")));

#define mca_pml_pvas_count(counter, n) (mca_pml_pvas_component.counters.counter += (n))

static inline void mca_pml_pvas_lock(void)
{
	OPAL_THREAD_LOCK(&mca_pml_pvas_component.lock);
}

static inline void mca_pml_pvas_unlock(void)
{
	OPAL_THREAD_UNLOCK(&mca_pml_pvas_component.lock);
}

/* The communicator's state if we own it; NULL: it is ob1's */
static inline struct mca_pml_pvas_comm *mca_pml_pvas_owned(const struct ompi_communicator_t *comm)
{
	return mca_pml_pvas_component.comms[comm->c_contextid];
}

static inline bool mca_pml_pvas_contiguous(const struct ompi_datatype_t *type, size_t count)
{
	return type->super.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS &&
	       (count == 1 || type->super.flags & OPAL_DATATYPE_FLAG_NO_GAPS);
}

/* Does the peer still run? Two plain loads. */
static inline bool mca_pml_pvas_runs(uint32_t index, uint32_t gen)
{
	const struct pvas_part *part = &mca_pml_pvas_component.faults.table[index];

	return __atomic_load_n(&part->state, __ATOMIC_ACQUIRE) == PVAS_PART_RUNNING &&
	       __atomic_load_n(&part->gen, __ATOMIC_RELAXED) == gen;
}

static inline void mca_pml_pvas_list_init(struct mca_pml_pvas_link *list)
{
	list->next = list->prev = list;
}

static inline void mca_pml_pvas_list_append(struct mca_pml_pvas_link *list,
					    struct mca_pml_pvas_link *link)
{
	link->next = list;
	link->prev = list->prev;
	list->prev->next = link;
	list->prev = link;
}

static inline void mca_pml_pvas_list_remove(struct mca_pml_pvas_link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
}

#define mca_pml_pvas_entry(link, type, member) \
	((type *)((char *)(link) - offsetof(type, member)))

/* component.c */
void mca_pml_pvas_register_again(void);

/* module.c */
extern mca_pml_base_module_t mca_pml_pvas_module;

/* peers.c */
bool mca_pml_pvas_find_self(void);
bool mca_pml_pvas_publish(void);
struct mca_pml_pvas_peer *mca_pml_pvas_peer_of(const struct ompi_group_t *group, int rank);
bool mca_pml_pvas_same_space(struct ompi_communicator_t *comm);
void mca_pml_pvas_free_peers(void);

/* failure.c */
void mca_pml_pvas_check_peers(void);
void mca_pml_pvas_notify_start(struct mca_pml_pvas_peer *peer);
void mca_pml_pvas_notify_finalize(void);
void mca_pml_pvas_lost(uint32_t index);
void mca_pml_pvas_begin_fetch(void);
void mca_pml_pvas_end_fetch(void);

/* comm.c */
int mca_pml_pvas_add_comm(struct ompi_communicator_t *comm);
int mca_pml_pvas_del_comm(struct ompi_communicator_t *comm);
struct mca_pml_pvas_source *mca_pml_pvas_new_source(struct mca_pml_pvas_comm *pc, int rank);

static inline struct mca_pml_pvas_source *mca_pml_pvas_source(struct mca_pml_pvas_comm *pc,
							      int rank)
{
	struct mca_pml_pvas_source *source = pc->sources[rank];

	return source ? source : mca_pml_pvas_new_source(pc, rank);
}

/* match.c */
struct mca_pml_pvas_request *mca_pml_pvas_match(struct mca_pml_pvas_comm *pc,
						struct mca_pml_pvas_source *source, int tag);
void mca_pml_pvas_post(struct mca_pml_pvas_request *req);
bool mca_pml_pvas_unpost(struct mca_pml_pvas_request *req);
struct mca_pml_pvas_message *mca_pml_pvas_find(struct mca_pml_pvas_comm *pc, int src, int tag);
void mca_pml_pvas_take(struct mca_pml_pvas_message *message);
void mca_pml_pvas_file(struct mca_pml_pvas_comm *pc, struct mca_pml_pvas_message *message);
struct mca_pml_pvas_message *mca_pml_pvas_new_message(struct mca_pml_pvas_in *in, size_t copied);
void mca_pml_pvas_free_message(struct mca_pml_pvas_message *message);

/* ring.c */
bool mca_pml_pvas_make_port(void);
void mca_pml_pvas_find_writers(void);
void mca_pml_pvas_free_readers(void);
struct mca_pml_pvas_out *mca_pml_pvas_new_out(struct mca_pml_pvas_peer *peer);

/* request.c */
struct mca_pml_pvas_request *mca_pml_pvas_new_request(struct mca_pml_pvas_comm *pc,
						      const void *buf, size_t count,
						      struct ompi_datatype_t *type, int peer,
						      int tag, bool persistent);
void mca_pml_pvas_complete(struct mca_pml_pvas_request *req);
void mca_pml_pvas_recycle(struct mca_pml_pvas_request *req);
void mca_pml_pvas_wait(struct mca_pml_pvas_request *req);
int mca_pml_pvas_start(size_t count, ompi_request_t **requests);
void mca_pml_pvas_free_requests(void);

/* send.c */
int mca_pml_pvas_isend_init(const void *buf, size_t count, struct ompi_datatype_t *type, int dst,
			    int tag, mca_pml_base_send_mode_t mode,
			    struct ompi_communicator_t *comm, struct ompi_request_t **request);
int mca_pml_pvas_isend(const void *buf, size_t count, struct ompi_datatype_t *type, int dst,
		       int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
		       struct ompi_request_t **request);
int mca_pml_pvas_send(const void *buf, size_t count, struct ompi_datatype_t *type, int dst,
		      int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm);
int mca_pml_pvas_start_send(struct mca_pml_pvas_request *req);
void mca_pml_pvas_send_pending(void);

/* receive.c */
int mca_pml_pvas_irecv_init(void *buf, size_t count, struct ompi_datatype_t *type, int src,
			    int tag, struct ompi_communicator_t *comm,
			    struct ompi_request_t **request);
int mca_pml_pvas_irecv(void *buf, size_t count, struct ompi_datatype_t *type, int src, int tag,
		       struct ompi_communicator_t *comm, struct ompi_request_t **request);
int mca_pml_pvas_recv(void *buf, size_t count, struct ompi_datatype_t *type, int src, int tag,
		      struct ompi_communicator_t *comm, ompi_status_public_t *status);
void mca_pml_pvas_start_receive(struct mca_pml_pvas_request *req);
int mca_pml_pvas_wait_and_free(struct mca_pml_pvas_request *req, ompi_status_public_t *status);
void mca_pml_pvas_matched(struct mca_pml_pvas_request *req, int src, int tag, size_t bytes);
void mca_pml_pvas_unpack_request(struct mca_pml_pvas_request *req, const void *data, size_t bytes);
void mca_pml_pvas_receive_message(struct mca_pml_pvas_request *req,
				  struct mca_pml_pvas_message *message);
void mca_pml_pvas_finish(struct mca_pml_pvas_request *req);

/* direct.c */
bool mca_pml_pvas_receive_direct(struct mca_pml_pvas_comm *pc, void *buf, size_t count,
				 const struct ompi_datatype_t *type, int src, int tag,
				 ompi_status_public_t *status, int *rc);

/* probe.c */
int mca_pml_pvas_iprobe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
			ompi_status_public_t *status);
int mca_pml_pvas_probe(int src, int tag, struct ompi_communicator_t *comm,
		       ompi_status_public_t *status);
int mca_pml_pvas_improbe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
			 struct ompi_message_t **message, ompi_status_public_t *status);
int mca_pml_pvas_mprobe(int src, int tag, struct ompi_communicator_t *comm,
			struct ompi_message_t **message, ompi_status_public_t *status);
int mca_pml_pvas_imrecv(void *buf, size_t count, struct ompi_datatype_t *type,
			struct ompi_message_t **message, struct ompi_request_t **request);
int mca_pml_pvas_mrecv(void *buf, size_t count, struct ompi_datatype_t *type,
		       struct ompi_message_t **message, ompi_status_public_t *status);

/* progress.c */
int mca_pml_pvas_progress(void);
struct mca_pml_pvas_request *mca_pml_pvas_deliver_local(struct mca_pml_pvas_request *send);

/* fetch.c */
void mca_pml_pvas_expect_same(const struct mca_pml_pvas_peer *peer);
void mca_pml_pvas_fetch(struct mca_pml_pvas_request *req);
void mca_pml_pvas_give_back(struct mca_pml_pvas_peer *peer, struct mca_pml_pvas_offer *offer);
void mca_pml_pvas_help(void);

/* coll_glue/copy.c */
int mca_coll_pvas_copy_data(void *to, size_t to_count, const struct ompi_datatype_t *to_type,
			    const void *from, size_t from_count,
			    const struct ompi_datatype_t *from_type);

/* strided.c */
void mca_pml_pvas_pack(void *to, size_t bytes, const void *buf, size_t count,
		       const struct ompi_datatype_t *type);
void mca_pml_pvas_unpack(const void *from, size_t bytes, void *buf, size_t count,
			 const struct ompi_datatype_t *type);

#endif /* PML_PVAS_H */
