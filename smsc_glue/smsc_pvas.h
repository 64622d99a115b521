/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The Open MPI component "smsc pvas", for Open MPI 5.0 and later.
 *
 * The framework smsc copies between two processes once, for any component that wants to:
 * btl/sm, and from 6.0 on collective components. In a space each address of a peer is
 * valid here, so a mapping of the peer's memory is the pointer itself.
 *
 * Open MPI uses one component of smsc for all peers. A peer outside the space has no
 * endpoint; btl/sm then copies twice, with all peers of this rank.
 */
#ifndef SMSC_PVAS_H
#define SMSC_PVAS_H

#include "../btl_glue/common.h"

#include "opal/mca/smsc/smsc.h"

#define MCA_SMSC_PVAS_NAME "smsc pvas"
#define MCA_SMSC_PVAS_MODEX_VERSION 1
#define MCA_SMSC_PVAS_PARTITIONS (PVAS_MAX_TASKS + 2)

/**
 * struct mca_smsc_pvas_modex - what a rank publishes to its peers
 * @space:	the id of its space
 * @index:	its partition
 * @gen:	of the partition, when this rank took it
 * @port:	the address of its struct mca_smsc_pvas_port
 */
struct mca_smsc_pvas_modex {
	uint32_t version;
	uint32_t space;
	uint32_t index;
	uint32_t gen;
	uint64_t port;
	int32_t pid;
	uint32_t reserved;
};

/**
 * struct mca_smsc_pvas_port - the part of a rank that its peers use
 * @modex:	for peers that find it by the rank's name in the space
 * @finalized:	bitmap by partition: peers that have returned their endpoint for this rank
 */
struct mca_smsc_pvas_port {
	struct mca_smsc_pvas_modex modex;
	uint64_t finalized[(MCA_SMSC_PVAS_PARTITIONS + 63) / 64];
};

/* Performance variables. Threads count without a lock: some additions may be lost. */
struct mca_smsc_pvas_counters {
	unsigned long long copies;
	unsigned long long bytes_copied;
	unsigned long long mapped;
};

struct mca_smsc_pvas_component {
	mca_smsc_component_t super;
	bool watch_peers;
	struct mca_btl_pvas_faults faults;
	struct mca_smsc_pvas_port port;
	struct mca_smsc_pvas_counters counters;
};

/* Open MPI does not export the class of mca_smsc_endpoint_t. */
typedef struct {
	mca_smsc_endpoint_t super;
	uint32_t index;
} mca_smsc_pvas_endpoint_t;

extern struct mca_smsc_pvas_component mca_smsc_pvas_component
	__attribute__((visibility("default")));
extern mca_smsc_module_t mca_smsc_pvas_module;

/* peers.c */
bool mca_smsc_pvas_find_self(void);
bool mca_smsc_pvas_look_up(const opal_proc_t *proc, struct mca_smsc_pvas_modex *modex);
void mca_smsc_pvas_watch(const opal_proc_t *proc, const struct mca_smsc_pvas_modex *modex);
void mca_smsc_pvas_unwatch(uint32_t index);
void mca_smsc_pvas_watch_begin(void);
void mca_smsc_pvas_watch_end(void);

#endif /* SMSC_PVAS_H */
