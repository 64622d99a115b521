/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The protocol between a store (store_ucx.c) and a memory server (tools/memd), version 1.
 *
 * Messages are UCX active messages. Each is one of these structs, as the message's header; put
 * and the answer to get also have pages, as its data. Numbers are little-endian.
 *
 *	store				server
 *	connection, with the token  -->	known token? else the connection is refused
 *	hello			   -->
 *				   <--	challenge, or challenge with a status; closes
 *	proof			   -->	wrong proof? else memory is reserved
 *				   <--	welcome
 *	put, get, discard	   -->
 *				   <--	reply, one for each, in any order
 *
 * The token is 64 bits made from the key, so that a server answers nobody who doesn't know a
 * key; as it is the same each time it admits to the challenge only. Both sides prove that
 * they know the key; neither sends it. Pages are not encrypted.
 *
 * A store is one connection. Its pages are in memory of their own, which ends with it.
 */
#ifndef PVAS_FAR_WIRE_H
#define PVAS_FAR_WIRE_H

#include <stdint.h>

#define FAR_WIRE_MAGIC		0x66767073u
#ifndef FAR_WIRE_VERSION	/* a test has another */
#define FAR_WIRE_VERSION	1
#endif

/* The number of our active messages */
#define FAR_AM			0

#define FAR_NONCE_BYTES		32
#define FAR_MAC_BYTES		32

#define FAR_PAGE_MIN		4096u
#define FAR_PAGE_MAX		(64u << 20)

/* Requests of a store under way at a time; the server ends a connection with more. */
#define FAR_SLOTS		64u
/* Bytes of one put or get, unless one page is more */
#define FAR_PIECE_BYTES		(1u << 20)
/* and of a discard: the server does nothing else meanwhile */
#define FAR_DISCARD_BYTES	(64u << 20)
/*
 * Messages with up to this many bytes of pages go at once, larger ones when the receiver has
 * said where to (UCX's rendezvous): that costs a round trip and saves a copy.
 */
#define FAR_EAGER_BYTES		(32u << 10)

enum far_op {
	FAR_OP_HELLO = 1,
	FAR_OP_CHALLENGE,
	FAR_OP_PROOF,
	FAR_OP_WELCOME,
	FAR_OP_PUT,
	FAR_OP_GET,
	FAR_OP_DISCARD,
	FAR_OP_REPLY,
};

/**
 * struct far_hello - the first message; @op, @magic and @version are so in all versions
 * @page_size:	a power of two, FAR_PAGE_MIN to FAR_PAGE_MAX
 * @pages:	pages to be reserved
 * @nonce:	random
 */
struct far_hello {
	uint32_t op;
	uint32_t magic;
	uint32_t version;
	uint32_t reserved;
	uint64_t page_size;
	uint64_t pages;
	uint8_t nonce[FAR_NONCE_BYTES];
};

/**
 * struct far_challenge - @op, @magic, @version and @status are so in all versions
 * @version:	the server's
 * @status:	0; EPROTONOSUPPORT: the versions differ
 * @conn:	to be sent with each request
 */
struct far_challenge {
	uint32_t op;
	uint32_t magic;
	uint32_t version;
	uint32_t status;
	uint32_t conn;
	uint32_t reserved;
	uint8_t nonce[FAR_NONCE_BYTES];
};

struct far_proof {
	uint32_t op;
	uint32_t conn;
	uint8_t mac[FAR_MAC_BYTES];
};

/**
 * struct far_welcome - the server's proof, which covers @status and @free
 * @status:	0; EACCES: wrong proof, then there is no MAC; ENOSPC; EINVAL: bad sizes
 * @free:	bytes that this job may reserve
 */
struct far_welcome {
	uint32_t op;
	uint32_t status;
	uint64_t free;
	uint8_t mac[FAR_MAC_BYTES];
};

/**
 * struct far_request - put, get or discard
 * @slot:	below FAR_SLOTS; comes back in the reply
 */
struct far_request {
	uint32_t op;
	uint32_t conn;
	uint32_t slot;
	uint32_t count;
	uint64_t first;
};

/**
 * struct far_reply - the answer to a request
 * @status:	0 or an errno value
 * @held:	bytes of this store's pages that the server has now
 */
struct far_reply {
	uint32_t op;
	uint32_t slot;
	uint32_t status;
	uint32_t reserved;
	uint64_t held;
};

_Static_assert(sizeof(struct far_hello) == 64, "wire");
_Static_assert(sizeof(struct far_challenge) == 56, "wire");
_Static_assert(sizeof(struct far_proof) == 40, "wire");
_Static_assert(sizeof(struct far_welcome) == 48, "wire");
_Static_assert(sizeof(struct far_request) == 24, "wire");
_Static_assert(sizeof(struct far_reply) == 24, "wire");

#endif
