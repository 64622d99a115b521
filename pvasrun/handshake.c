// SPDX-License-Identifier: GPL-2.0-only
/*
 * libpmix waits for all of a handshake in its one thread, believes the lengths in
 * it, and after an error lets go of a rank's record once too often. So it is given
 * only one that it will find no fault with. In front: two words of ones, and the
 * length of the rest, all in this machine's byte order. The rest:
 *
 *	string	the security module, "native"
 *	u32	length of the credential, in network order
 *	bytes	the credential: uid and gid, in this machine's order
 *	u8	0: a rank, and no tool
 *	string	name of the job
 *	u32	rank, in network order
 *	string	version of the library, which is the end in 2.0
 *	string	version of its data types
 *	u8	form of its messages
 *	string	the store for others' data, "hash"
 *	bytes	any, not looked at by the server
 */
#include "handshake.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct head {
	uint32_t ones[2];
	uint64_t len;
};

/* The rest of it; with no text if it was malformed. */
struct rest {
	const char *text;
	size_t len;
};

static const char *take(struct rest *rest, size_t len)
{
	const char *taken = rest->text;

	if (!taken || len > rest->len) {
		rest->text = NULL;
		return NULL;
	}
	rest->text += len;
	rest->len -= len;
	return taken;
}

static const char *take_string(struct rest *rest)
{
	const char *end = rest->text ? memchr(rest->text, '\0', rest->len) : NULL;

	return take(rest, end ? (size_t)(end - rest->text) + 1 : SIZE_MAX);
}

static bool take_bytes(struct rest *rest, const void *wanted, size_t len)
{
	const char *bytes = take(rest, len);

	return bytes && !memcmp(bytes, wanted, len);
}

static bool take_word(struct rest *rest, const char *wanted)
{
	const char *word = take_string(rest);

	return word && !strcmp(word, wanted);
}

static bool take_u32(struct rest *rest, uint32_t *number)
{
	const char *bytes = take(rest, sizeof(*number));

	if (!bytes)
		return false;
	memcpy(number, bytes, sizeof(*number));
	*number = ntohl(*number);
	return true;
}

static bool take_credential(struct rest *rest, const struct handshake *wanted)
{
	uint32_t len;

	return take_u32(rest, &len) && len == sizeof(wanted->uid) + sizeof(wanted->gid) &&
	       take_bytes(rest, &wanted->uid, sizeof(wanted->uid)) &&
	       take_bytes(rest, &wanted->gid, sizeof(wanted->gid));
}

static const char *pass_digits(const char *text)
{
	if (!text || !isdigit((unsigned char)*text))
		return NULL;
	while (isdigit((unsigned char)*text))
		text++;
	return text;
}

/* The server reads on behind each number: three of them must be there, with dots. */
static bool is_version(const char *text)
{
	int i;

	for (i = 0; i < 3; i++) {
		if (i && *text++ != '.')
			return false;
		text = pass_digits(text);
		if (!text)
			return false;
	}
	return true;
}

/* As the names of the port's variables say, see mpi_env.c */
static bool is_data_version(const char *text)
{
	static const char *const known[] = { "v20", "v21", "v3", "v4", "v41" };
	size_t i;

	for (i = 0; text && i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(text, known[i]))
			return true;
	return false;
}

static bool is_form(const char *form)
{
	return form && *form >= 0 && *form <= 2;
}

static bool take_formats(struct rest *rest)
{
	const char *version = take_string(rest);

	if (!version || !is_version(version))
		return false;
	if (!strncmp(version, "2.0.", 4))
		return !rest->len;
	return is_data_version(take_string(rest)) && is_form(take(rest, 1)) &&
	       take_word(rest, "hash");
}

static bool is_ranks(const struct handshake *wanted, struct rest rest)
{
	const char rank_type = 0;
	uint32_t rank;

	return take_word(&rest, "native") && take_credential(&rest, wanted) &&
	       take_bytes(&rest, &rank_type, 1) && take_word(&rest, wanted->nspace) &&
	       take_u32(&rest, &rank) && rank < wanted->tasks && take_formats(&rest);
}

ssize_t handshake_check(const struct handshake *wanted, const char *said, size_t len)
{
	struct head head;

	if (len < sizeof(head))
		return 0;
	memcpy(&head, said, sizeof(head));
	if (head.ones[0] != UINT32_MAX || head.ones[1] != UINT32_MAX ||
	    head.len > HANDSHAKE_MAX - sizeof(head))
		return -EPROTO;
	if (len - sizeof(head) < head.len)
		return 0;
	if (!is_ranks(wanted, (struct rest){ said + sizeof(head), head.len }))
		return -EPROTO;
	return sizeof(head) + head.len;
}
