/* SPDX-License-Identifier: GPL-2.0-only */
/* The first message of a rank to its PMIx server: is it one of this job's? */
#ifndef PVASRUN_HANDSHAKE_H
#define PVASRUN_HANDSHAKE_H

#include <stddef.h>
#include <sys/types.h>

/* Ranks send about 110 bytes. */
#define HANDSHAKE_MAX 4096

/* How ranks introduce themselves */
struct handshake {
	const char *nspace;	/* the job's name, which is secret */
	unsigned int tasks;
	uid_t uid;
	gid_t gid;
};

/*
 * Of @len bytes that a caller has said: how many of them are the handshake of a
 * rank, 0 if there is more to come, -EPROTO if it can't become one.
 */
ssize_t handshake_check(const struct handshake *wanted, const char *said, size_t len);

#endif
