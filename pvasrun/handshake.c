// SPDX-License-Identifier: GPL-2.0-only
/*
 * libpmix reads a handshake with blocking calls in its only thread, trusts the lengths
 * in it, and after an error releases a rank's record once too often. So it only gets
 * handshakes that are complete and valid. A handshake begins with two 32-bit words of
 * ones and the 64-bit length of the rest, in this machine's byte order. The rest:
 *
 *	string	the security module, "native"
 *	u32	length of the credential, in network order
 *	bytes	the credential: uid and gid, in this machine's order
 *	u8	0: a rank, not a tool
 *	string	name of the job
 *	u32	rank, in network order
 *	string	version of the library; with version 2.0 the last field
 *	string	version of its data types
 *	u8	format of its messages
 *	string	the data store, "hash"
 *	bytes	any more, which the server ignores
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

/* Bytes not yet parsed; text is NULL after an error. */
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

static bool take_bytes(struct rest *rest, const void *expected, size_t len)
{
	const char *bytes = take(rest, len);

	return bytes && !memcmp(bytes, expected, len);
}

static bool take_word(struct rest *rest, const char *expected)
{
	const char *word = take_string(rest);

	return word && !strcmp(word, expected);
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

static bool take_credential(struct rest *rest, const struct handshake *expected)
{
	uint32_t len;

	return take_u32(rest, &len) && len == sizeof(expected->uid) + sizeof(expected->gid) &&
	       take_bytes(rest, &expected->uid, sizeof(expected->uid)) &&
	       take_bytes(rest, &expected->gid, sizeof(expected->gid));
}

static const char *skip_digits(const char *text)
{
	if (!text || !isdigit((unsigned char)*text))
		return NULL;
	while (isdigit((unsigned char)*text))
		text++;
	return text;
}

/* libpmix reads on after each number without a check: require three, with dots. */
static bool is_version(const char *text)
{
	int i;

	for (i = 0; i < 3; i++) {
		if (i && *text++ != '.')
			return false;
		text = skip_digits(text);
		if (!text)
			return false;
	}
	return true;
}

/* One for each PMIX_SERVER_URI* of mpi_env.c */
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

/* Printable: it comes from outside. */
static void keep_version(struct handshake_rank *rank, const char *version)
{
	size_t i;

	for (i = 0; i < sizeof(rank->version) - 1 && isgraph((unsigned char)*version); i++)
		rank->version[i] = *version++;
	rank->version[i] = '\0';
}

static bool take_formats(struct rest *rest, struct handshake_rank *rank)
{
	const char *version = take_string(rest);

	keep_version(rank, version ? version : "");
	if (!version || !is_version(version))
		return false;
	if (!strncmp(version, "2.0.", 4))
		return !rest->len;
	return is_data_version(take_string(rest)) && is_form(take(rest, 1)) &&
	       take_word(rest, "hash");
}

/* Up to the number of the rank, which only ranks of this job can send with its name */
static bool take_rank(struct rest *rest, const struct handshake *expected,
		      struct handshake_rank *rank)
{
	const char rank_type = 0;
	uint32_t number;

	if (!take_word(rest, "native") || !take_credential(rest, expected) ||
	    !take_bytes(rest, &rank_type, 1) || !take_word(rest, expected->nspace) ||
	    !take_u32(rest, &number) || number >= expected->tasks)
		return false;
	rank->rank = number;
	return true;
}

ssize_t handshake_check(const struct handshake *expected, const char *bytes, size_t len,
			struct handshake_rank *rank)
{
	struct rest rest;
	struct head head;

	if (len < sizeof(head))
		return 0;
	memcpy(&head, bytes, sizeof(head));
	if (head.ones[0] != UINT32_MAX || head.ones[1] != UINT32_MAX ||
	    head.len > HANDSHAKE_MAX - sizeof(head))
		return -EPROTO;
	if (len - sizeof(head) < head.len)
		return 0;
	rest = (struct rest){ bytes + sizeof(head), head.len };
	if (!take_rank(&rest, expected, rank))
		return -EPROTO;
	return take_formats(&rest, rank) ? (ssize_t)(sizeof(head) + head.len) : -EPROTONOSUPPORT;
}
