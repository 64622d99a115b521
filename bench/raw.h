/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mechanisms that bring a message to a neighbour: raw.c measures, raw_ways.c and
 * raw_xpmem.c have the ways.
 */
#ifndef RAW_H
#define RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RAW_CHUNKS	8
#define RAW_CHUNK	((size_t)32 << 10)

/**
 * struct raw_pair - shared by both sides
 * @flag:	counts the messages that side has sent
 * @met:	counts meetings
 * @base:	each side's buffer, in its own addresses
 * @segid:	for XPMEM
 * @chunk:	a ring for each direction; @full, @taken count its chunks
 */
struct raw_pair {
	_Alignas(64) uint64_t flag[2][8];
	_Alignas(64) uint64_t met[2];
	char *base[2];
	pid_t pid[2];
	int64_t segid[2];
	int pipe[2][2];
	_Alignas(64) uint64_t full[2][8];
	_Alignas(64) uint64_t taken[2][8];
	_Alignas(4096) char chunk[2][RAW_CHUNKS][RAW_CHUNK];
};

/**
 * struct raw_side - one side's own
 * @buf:	what it sends
 * @in:		where it receives: @landing, or pages of this piece alone
 * @at:		where in both the next message lies
 */
struct raw_side {
	int side;
	bool fresh;
	size_t len, at;
	char *buf, *in, *landing;
	uint64_t sent, received, meetings, put, got;
	struct raw_pair *pair;
	char *attached;
	int64_t apid;
};

/**
 * struct raw_way - one mechanism
 * @threads:	its two sides are threads
 * @open:	before there are two; -errno: not on this machine. @close: at the end
 * @begin:	of a piece whose buffers are @all bytes long
 * @join:	after both have begun
 * @leave:	after the piece; @end: after both have left
 */
struct raw_way {
	const char *name;
	bool threads;
	int (*open)(struct raw_pair *pair);
	void (*close)(struct raw_pair *pair);
	void (*begin)(struct raw_side *me, size_t all);
	void (*join)(struct raw_side *me);
	void (*send)(struct raw_side *me);
	void (*receive)(struct raw_side *me);
	void (*leave)(struct raw_side *me);
	void (*end)(struct raw_side *me);
};

extern const struct raw_way raw_same_mm, raw_cma, raw_pipe, raw_shm, raw_xpmem;

void raw_wait(uint64_t *flag, uint64_t value);
void raw_set(uint64_t *flag, uint64_t value);
/** raw_tell, raw_await - that a message lies in the sender's buffer */
void raw_tell(struct raw_side *me);
void raw_await(struct raw_side *me);

#endif /* RAW_H */
