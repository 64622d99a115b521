/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exchange with the neighbors of a topology, on other nodes, over several network devices, by
 * the schedule of schedule.h. Open MPI's ob1 sends a message of up to the eager limit over one
 * device, and cuts a longer one into pieces for all. Here the schedule decides which device, that
 * is, which module of a BTL, carries which segment. A segment is put into the receiver's buffer
 * by that BTL, and a message behind it, on the same connection, says so.
 *
 * A device's segments go in the schedule's order, but the next one does not wait for the one
 * before to be complete (device_ahead): tcp's acknowledgements are behind the data of the other
 * direction, and meanwhile a single connection would leave its device idle.
 *
 * A receiver says where a segment may be put, by a grant. Whose schedule counts? The sender's,
 * if that gains: then a grant is for all of a message. Otherwise the receiver's: it grants one
 * segment after another, on the device that is to carry it, because then senders that do not
 * know of each other share its devices.
 */
#ifndef COLL_PVAS_DEVICES_H
#define COLL_PVAS_DEVICES_H

#include "nodes.h"
#include "schedule.h"

#include "ompi/mca/bml/base/base.h"

#define MCA_COLL_PVAS_DEVICES_MOST 16

enum mca_coll_pvas_message_kind { MCA_COLL_PVAS_GRANT = 1, MCA_COLL_PVAS_DONE };

/**
 * struct mca_coll_pvas_message - from receiver to sender: a grant; back: a segment is there
 * @edge:	the message's number at the rank that this is sent to
 * @back:	grant: its number at the receiver
 * @device:	that carries the segment; grant of a whole message: not used
 * @address:	grant: of the segment's first byte
 * @offset:	of the segment; @bytes: its length
 * @total:	length of the whole message at the rank that tells
 */
struct mca_coll_pvas_message {
	uint32_t kind;
	uint32_t communicator;
	uint32_t edge;
	uint32_t back;
	uint32_t device;
	uint32_t op;
	uint64_t address;
	uint64_t offset;
	uint64_t bytes;
	uint64_t total;
};

/**
 * struct mca_coll_pvas_edge - a message of each operation, to or from a neighbor
 * @rank:	the neighbor, or MPI_PROC_NULL
 * @number:	of a source: the edge's number at the sender
 * @ways:	by device; without, the message is left to the PML
 * @scheduled:	the sender's schedule counts
 * @grants:	of a destination: not yet used, for the operation in progress or the next one
 * @moved:	so many bytes have arrived, or been put as the receiver has asked, of @total
 * @length:	of a source: of the message at the sender, 0: not known yet
 */
struct mca_coll_pvas_edge {
	int rank;
	int number;
	mca_bml_base_btl_t *ways[MCA_COLL_PVAS_DEVICES_MOST];
	bool on_devices;
	bool scheduled;
	unsigned int nr_grants;
	struct mca_coll_pvas_message grants[MCA_COLL_PVAS_DEVICES_MOST];
	uint64_t moved;
	uint64_t total;
	uint64_t length;
};

/**
 * struct mca_coll_pvas_side - the messages that a rank sends, or those that it receives
 * @schedule:	of those that are scheduled at this end, whose edges are @scheduled
 * @used:	by step and device: the segment was put, or granted
 * @in_use:	by device: segments that are being put, or that have been granted
 */
struct mca_coll_pvas_side {
	int nr;
	struct mca_coll_pvas_edge *edges;
	struct mca_coll_pvas_schedule schedule;
	struct mca_coll_pvas_edge **scheduled;
	bool *used;
	atomic_uint in_use[MCA_COLL_PVAS_DEVICES_MOST];
};

/**
 * struct mca_coll_pvas_devices - the exchange of a communicator
 * @least:	shortest message that is cut
 * @op:		number of the operation in progress, or of the last one
 * @putting:	segments that are being put
 */
struct mca_coll_pvas_devices {
	struct mca_coll_pvas_devices *next;
	struct ompi_communicator_t *comm;
	enum mca_coll_pvas_state state;
	uint64_t least;
	uint32_t op;
	unsigned int nr;
	mca_btl_base_module_t *modules[MCA_COLL_PVAS_DEVICES_MOST];
	struct mca_coll_pvas_side out;
	struct mca_coll_pvas_side in;
	atomic_uint putting;
	int error;
};

/**
 * struct mca_coll_pvas_exchange - buffers of an operation, without gaps
 * @stride:	from one block to send to the next one; 0: all are the same
 */
struct mca_coll_pvas_exchange {
	const char *from;
	char *to;
	size_t stride;
	uint64_t sent;
	uint64_t received;
};

/* devices.c */
struct mca_coll_pvas_devices *mca_coll_pvas_devices_begin(struct mca_coll_pvas_nodes *m,
							  uint64_t sent, uint64_t received);
void mca_coll_pvas_devices_free(struct mca_coll_pvas_devices *d);

/* devices_message.c */
bool mca_coll_pvas_devices_listen(void);
void mca_coll_pvas_devices_add(struct mca_coll_pvas_devices *d);
void mca_coll_pvas_devices_remove(struct mca_coll_pvas_devices *d);
bool mca_coll_pvas_take_grant(struct mca_coll_pvas_devices *d, struct mca_coll_pvas_edge *edge,
			      struct mca_coll_pvas_message *grant);
void mca_coll_pvas_drop_grants(struct mca_coll_pvas_devices *d);
bool mca_coll_pvas_all_arrived(struct mca_coll_pvas_devices *d);
int mca_coll_pvas_tell(mca_bml_base_btl_t *way, const struct mca_coll_pvas_message *message);

/* devices_move.c */
int mca_coll_pvas_devices_exchange(struct mca_coll_pvas_devices *d,
				   const struct mca_coll_pvas_exchange *x);

#endif /* COLL_PVAS_DEVICES_H */
