// SPDX-License-Identifier: GPL-2.0-only
/* The handshake: see wire.h */
#include <errno.h>
#include <string.h>
#include "key.h"
#include "memd.h"

static void challenge(struct conn *conn, uint32_t status)
{
	struct answer *answer = conn_answer(conn);
	struct far_challenge *message = &conn->challenge;

	if (!answer)
		return;
	message->op = FAR_OP_CHALLENGE;
	message->magic = FAR_WIRE_MAGIC;
	message->version = FAR_WIRE_VERSION;
	message->status = status;
	message->conn = conn->index;
	if (far_random(message->nonce, sizeof(message->nonce)) < 0) {
		conn_fail(conn, "no random numbers");
		return;
	}
	conn->state = status ? CONN_REFUSED : CONN_CHALLENGED;
	answer->challenge = *message;
	conn_send(conn, answer, sizeof(*message), NULL, 0);
}

void hello_receive(struct conn *conn, const void *header, size_t bytes)
{
	struct far_hello *hello = &conn->hello;

	if (bytes < offsetof(struct far_hello, reserved)) {
		conn_fail(conn, "a malformed hello");
		return;
	}
	memcpy(hello, header, bytes < sizeof(*hello) ? bytes : sizeof(*hello));
	if (hello->op != FAR_OP_HELLO || hello->magic != FAR_WIRE_MAGIC) {
		conn_fail(conn, "a malformed hello");
	} else if (hello->version != FAR_WIRE_VERSION) {
		notice(conn->memd, "job %s: refused, it has version %u of the protocol, not %u",
		       conn->job->name, hello->version, FAR_WIRE_VERSION);
		challenge(conn, EPROTONOSUPPORT);
	} else if (bytes != sizeof(*hello)) {
		conn_fail(conn, "a malformed hello");
	} else {
		challenge(conn, 0);
	}
}

static bool sizes_fit(const struct far_hello *hello)
{
	uint64_t size = hello->page_size;

	return size >= FAR_PAGE_MIN && size <= FAR_PAGE_MAX && !(size & (size - 1)) &&
	       hello->pages && hello->pages <= INT64_MAX / size;
}

static uint32_t reserve(struct conn *conn)
{
	const struct far_hello *hello = &conn->hello;
	uint64_t bytes = hello->page_size * hello->pages;

	if (!sizes_fit(hello))
		return EINVAL;
	if (bytes > job_free(conn->memd, conn->job) ||
	    pages_make(&conn->pages, conn->memd->reserved, hello->page_size,
		       hello->pages) < 0)
		return ENOSPC;
	conn->memd->reserved += bytes;
	conn->job->reserved += bytes;
	conn->job->stores++;
	silence_limit(conn->memd);
	return 0;
}

static void welcome(struct conn *conn, uint32_t status)
{
	struct answer *answer = conn_answer(conn);
	struct far_welcome *message;

	if (!answer)
		return;
	message = &answer->welcome;
	memset(message, 0, sizeof(*message));
	message->op = FAR_OP_WELCOME;
	message->status = status;
	if (status != EACCES) {
		message->free = job_free(conn->memd, conn->job);
		far_prove_server(conn->job->key, &conn->hello, &conn->challenge, message,
				 message->mac);
	}
	conn->state = status ? CONN_REFUSED : CONN_OPEN;
	conn_send(conn, answer, sizeof(*message), NULL, 0);
}

void proof_receive(struct conn *conn, const void *header, size_t bytes)
{
	uint8_t mac[FAR_MAC_BYTES];
	struct far_proof proof;
	uint32_t status;

	memcpy(&proof, header, bytes < sizeof(proof) ? bytes : sizeof(proof));
	if (bytes != sizeof(proof) || proof.op != FAR_OP_PROOF || proof.conn != conn->index) {
		conn_fail(conn, "a malformed proof");
		return;
	}
	far_prove_store(conn->job->key, &conn->hello, &conn->challenge, mac);
	status = far_mac_equal(mac, proof.mac) ? reserve(conn) : EACCES;
	if (status == EACCES)
		notice(conn->memd, "job %s: refused, wrong proof of its key", conn->job->name);
	else
		say(conn->memd, "job %s: a store of %.1f MiB: %s", conn->job->name,
		    conn->hello.page_size * conn->hello.pages / 1048576.0,
		    status == ENOSPC ? "no room" : status ? "refused" : "opened");
	welcome(conn, status);
}
