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
	uint32_t rank;
	ssize_t said;

	memcpy(copy, m->text, len);
	said = handshake_check(&wanted, copy, len, &rank);
	free(copy);
	return said;
}

static void one(const char *name, const struct parts *parts, bool good)
{
	struct message m = compose(parts);

	check_case(ask(&m, m.len) == (good ? (ssize_t)m.len : -EPROTO), name);
}

/* A later initializer of a member overrides an earlier one. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"

static void test_parts(void)
{
	static const struct {
		const char *name;
		struct parts parts;
		bool good;
	} cases[] = {
		{ "4.2.2", { GOOD }, true },
		{ "rank 0", { GOOD, .rank = 0 }, true },
		{ "2.0", { GOOD, .version = "2.0.3", .data = NULL, .more = 0 }, true },
		{ "2.0 and more", { GOOD, .version = "2.0.3", .data = NULL }, false },
		{ "2.1", { GOOD, .version = "2.1.4", .data = "v21" }, true },
		{ "6.1", { GOOD, .version = "6.1.0a1", .more = 500 }, true },
		{ "ends too early", { GOOD, .data = NULL, .more = 0 }, false },
		{ "too long", { GOOD, .more = HANDSHAKE_MAX }, false },
		{ "other security", { GOOD, .security = "munge" }, false },
		{ "no security", { GOOD, .security = "" }, false },
		{ "no credential", { GOOD, .cred_len = 0 }, false },
		{ "huge credential", { GOOD, .cred_len = 0x07ffffff }, false },
		{ "largest credential", { GOOD, .cred_len = UINT32_MAX }, false },
		{ "longer credential", { GOOD, .cred_len = 9 }, false },
		{ "tool", { GOOD, .type = 5 }, false },
		{ "other name", { GOOD, .nspace = "pvasrun-1-00fe" }, false },
		{ "part of the name", { GOOD, .nspace = "pvasrun-1-00f" }, false },
		{ "longer name", { GOOD, .nspace = "pvasrun-1-00fff" }, false },
		{ "no name", { GOOD, .nspace = "" }, false },
		{ "no such rank", { GOOD, .rank = 300 }, false },
		{ "any rank", { GOOD, .rank = UINT32_MAX }, false },
		{ "no version", { GOOD, .version = "" }, false },
		{ "one number", { GOOD, .version = "4" }, false },
		{ "two numbers", { GOOD, .version = "4.2" }, false },
		{ "two numbers and a dot", { GOOD, .version = "4.2." }, false },
		{ "no numbers", { GOOD, .version = "a.b.c" }, false },
		{ "other data", { GOOD, .data = "v12" }, false },
		{ "other form", { GOOD, .form = 3 }, false },
		{ "negative form", { GOOD, .form = -1 }, false },
		{ "other store", { GOOD, .store = "ds21" }, false },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		one(cases[i].name, &cases[i].parts, cases[i].good);
}

#pragma GCC diagnostic pop

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
			if (ask(&m, m.len) != -EPROTO)
				check_case(i >= at - 4 && i < at, "a changed byte");
		}
	}
}

void test_handshake(void)
{
	test_parts();
	test_pieces();
	test_lengths();
	test_bytes();
}
