/* SPDX-License-Identifier: GPL-2.0-only */
/* Check the first message of a client to its PMIx server: is it a rank of this job? */
#ifndef PVASRUN_HANDSHAKE_H
#define PVASRUN_HANDSHAKE_H

#include <stddef.h>
#include <sys/types.h>

/* Limit of its length; ranks send about 110 bytes. */
#define HANDSHAKE_MAX 4096

/* The values that ranks of this job send */
struct handshake {
	const char *nspace;	/* the job's name, a secret */
	unsigned int tasks;
	uid_t uid;
	gid_t gid;
};

/* Of a rank of this job: who it is, and the version of its libpmix, as far as it is a text */
struct handshake_rank {
	unsigned int rank;
	char version[16];
};

/*
 * How many of the @len bytes received are a rank's handshake; 0 if it is incomplete,
 * -EPROTO if they are not the beginning of one; -EPROTONOSUPPORT if they are one of this
 * job's, and in formats that are not known here. In the first and the last case, *@rank is set.
 */
ssize_t handshake_check(const struct handshake *expected, const char *bytes, size_t len,
			struct handshake_rank *rank);

#endif
