// SPDX-License-Identifier: GPL-2.0-only
/*
 * The handshake of a rank: that of libpmix 4.2.2 is accepted, and each change of it is
 * either harmless for the server or refused.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../handshake.h"
#include "unit.h"

static const struct handshake wanted = {
	.nspace = "pvasrun-1-00ff", .tasks = 300, .uid = 0x01020304, .gid = 0x05060708,
};

static struct handshake_rank told;

struct message {
	char text[2 * HANDSHAKE_MAX];
	size_t len;
};

static void add(struct message *m, const void *bytes, size_t len)
{
	memcpy(m->text + m->len, bytes, len);
	m->len += len;
}

static void add_string(struct message *m, const char *text)
{
	add(m, text, strlen(text) + 1);
}

static void add_u32(struct message *m, uint32_t number)
{
	number = htonl(number);
	add(m, &number, sizeof(number));
}

/* With the right length */
static void set_len(struct message *m, uint64_t len)
{
	memset(m->text, 0xff, 8);
	memcpy(m->text + 8, &len, sizeof(len));
}

struct parts {
	const char *security;
	uint32_t cred_len;
	char type;
	const char *nspace;
	uint32_t rank;
	const char *version, *data;
	char form;
	const char *store;
	size_t more;
};

#define GOOD .security = "native", .cred_len = 8, .nspace = "pvasrun-1-00ff", .rank = 299, \
	.version = "4.2.2rc2", .data = "v41", .form = 1, .store = "hash", .more = 1

static struct message compose(const struct parts *parts)
{
	static const char more[2 * HANDSHAKE_MAX];
	struct message m = { .len = 16 };

	add_string(&m, parts->security);
	add_u32(&m, parts->cred_len);
	add(&m, &wanted.uid, 4);
	add(&m, &wanted.gid, 4);
	add(&m, &parts->type, 1);
	add_string(&m, parts->nspace);
	add_u32(&m, parts->rank);
	add_string(&m, parts->version);
	if (parts->data) {
		add_string(&m, parts->data);
		add(&m, &parts->form, 1);
		add_string(&m, parts->store);
	}
	add(&m, more, parts->more);
	set_len(&m, m.len - 16);
	return m;
}

/* Allocated with its exact size, so that valgrind and ASan see reads beyond its end. */
static ssize_t ask(const struct message *m, size_t len)
{
	char *copy = malloc(len ? len : 1);
	ssize_t said;

	memcpy(copy, m->text, len);
	said = handshake_check(&wanted, copy, len, &told);
	free(copy);
	return said;
}

enum expected { GOOD_ONE, BAD, UNKNOWN };

static void one(const char *name, const struct parts *parts, enum expected expected)
{
	struct message m = compose(parts);
	const ssize_t results[] = {
		[GOOD_ONE] = m.len, [BAD] = -EPROTO, [UNKNOWN] = -EPROTONOSUPPORT,
	};

	check_case(ask(&m, m.len) == results[expected], name);
	if (expected != BAD)
		check_case(told.rank == parts->rank &&
			   !strncmp(told.version, parts->version, sizeof(told.version) - 1), name);
}

/* A later initializer of a member overrides an earlier one. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"

static void test_parts(void)
{
	static const struct {
		const char *name;
		struct parts parts;
		enum expected expected;
	} cases[] = {
		{ "4.2.2", { GOOD }, GOOD_ONE },
		{ "rank 0", { GOOD, .rank = 0 }, GOOD_ONE },
		{ "2.0", { GOOD, .version = "2.0.3", .data = NULL, .more = 0 }, GOOD_ONE },
		{ "2.0 and more", { GOOD, .version = "2.0.3", .data = NULL }, UNKNOWN },
		{ "2.1", { GOOD, .version = "2.1.4", .data = "v21" }, GOOD_ONE },
		{ "6.1", { GOOD, .version = "6.1.0a1", .more = 500 }, GOOD_ONE },
		{ "ends too early", { GOOD, .data = NULL, .more = 0 }, UNKNOWN },
		{ "too long", { GOOD, .more = HANDSHAKE_MAX }, BAD },
		{ "other security", { GOOD, .security = "munge" }, BAD },
		{ "no security", { GOOD, .security = "" }, BAD },
		{ "no credential", { GOOD, .cred_len = 0 }, BAD },
		{ "huge credential", { GOOD, .cred_len = 0x07ffffff }, BAD },
		{ "largest credential", { GOOD, .cred_len = UINT32_MAX }, BAD },
		{ "longer credential", { GOOD, .cred_len = 9 }, BAD },
		{ "tool", { GOOD, .type = 5 }, BAD },
		{ "other name", { GOOD, .nspace = "pvasrun-1-00fe" }, BAD },
		{ "part of the name", { GOOD, .nspace = "pvasrun-1-00f" }, BAD },
		{ "longer name", { GOOD, .nspace = "pvasrun-1-00fff" }, BAD },
		{ "no name", { GOOD, .nspace = "" }, BAD },
		{ "no such rank", { GOOD, .rank = 300 }, BAD },
		{ "any rank", { GOOD, .rank = UINT32_MAX }, BAD },
		{ "no version", { GOOD, .version = "" }, UNKNOWN },
		{ "one number", { GOOD, .version = "4" }, UNKNOWN },
		{ "two numbers", { GOOD, .version = "4.2" }, UNKNOWN },
		{ "two numbers and a dot", { GOOD, .version = "4.2." }, UNKNOWN },
		{ "no numbers", { GOOD, .version = "a.b.c" }, UNKNOWN },
		{ "a later one", { GOOD, .version = "9.1.0", .data = "v9" }, UNKNOWN },
		{ "other data", { GOOD, .data = "v12" }, UNKNOWN },
		{ "other form", { GOOD, .form = 3 }, UNKNOWN },
		{ "negative form", { GOOD, .form = -1 }, UNKNOWN },
		{ "other store", { GOOD, .store = "ds21" }, UNKNOWN },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		one(cases[i].name, &cases[i].parts, cases[i].expected);
}

/* Each shorter part of it is incomplete, and bytes after it are ignored. */
static void test_pieces(void)
{
	struct message m = compose(&(struct parts){ GOOD });
	size_t len, whole = m.len;

	for (len = 0; len < whole; len++)
		check_case(ask(&m, len) == 0, "a part");
	add(&m, "next message", 12);
	check_case(ask(&m, m.len) == (ssize_t)whole, "with the next");
}

static void test_lengths(void)
{
	static const uint64_t lengths[] = {
		0, 1, 10, HANDSHAKE_MAX - 15, 1ULL << 31, 1ULL << 40, UINT64_MAX, UINT64_MAX - 15,
	};
	struct message m = compose(&(struct parts){ GOOD });
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		set_len(&m, lengths[i]);
		check_case(ask(&m, m.len) == -EPROTO, "a wrong length");
		/* an excessive length is refused before the rest has arrived */
		check_case(ask(&m, 16) == (lengths[i] && lengths[i] <= HANDSHAKE_MAX - 16 ?
					   0 : -EPROTO), "a wrong length, alone");
	}
	set_len(&m, HANDSHAKE_MAX - 16);
	check_case(ask(&m, m.len) == 0, "the greatest length");
}

/* Each byte up to the data store matters, except in versions and formats. */
static void test_bytes(void)
{
	const struct message good = compose(&(struct parts){ GOOD });
	const char *version = memmem(good.text, good.len, "4.2.2rc2", 8);
	size_t i, at = version - good.text;
	int bit;

	for (i = 0; i < good.len - 1; i++) {
		if ((i >= at && i < at + 14) || (i >= 8 && i < 16))
			continue;
		for (bit = 0; bit < 8; bit++) {
			struct message m = good;

			m.text[i] ^= 1 << bit;
			/* rank - 1 is valid, too */
			if (ask(&m, m.len) != (i < at ? -EPROTO : -EPROTONOSUPPORT))
				check_case(i >= at - 4 && i < at, "a changed byte");
		}
	}
}

/* It is printed. */
static void test_version(void)
{
	struct message m = compose(&(struct parts){ GOOD, .version = "4.2.2\x1b[2J" });

	check_case(ask(&m, m.len) == (ssize_t)m.len && !strcmp(told.version, "4.2.2"), "escapes");
	m = compose(&(struct parts){ GOOD, .version = "4.2.2222222222222222222222" });
	check_case(ask(&m, m.len) == (ssize_t)m.len && strlen(told.version) == 15, "long");
}

#pragma GCC diagnostic pop

void test_handshake(void)
{
	test_parts();
	test_version();
	test_pieces();
	test_lengths();
	test_bytes();
}
