// SPDX-License-Identifier: GPL-2.0-only
/* Tagged lines from pieces of output */
#include <stdlib.h>
#include <string.h>

#include "../tagger.h"
#include "unit.h"

/* The output as a string, to be freed */
static const char *text_of(struct buffer *out)
{
	check(buffer_add(out, "", 1) == 0);
	return buffer_head(out);
}

/* '/' separates pieces. */
static void test_pieces(void)
{
	static const struct { const char *pieces, *out; } cases[] = {
		{ "one\n", "[3] one\n" },
		{ "o/n/e\n", "[3] one\n" },
		{ "one\ntwo\n", "[3] one\n[3] two\n" },
		{ "one\ntw/o\nthree\n", "[3] one\n[3] two\n[3] three\n" },
		{ "\n\n", "[3] \n[3] \n" },
		{ "no end", "[3] no end\n" },
		{ "a\nno/ end", "[3] a\n[3] no end\n" },
		{ "a/\n/\n/b", "[3] a\n[3] \n[3] b\n" },
		{ "", "" },
		{ "cr\r\n", "[3] cr\r\n" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char pieces[64], *piece, *rest = pieces;
		struct buffer out = { 0 };
		struct tagger tagger;

		strcpy(pieces, cases[i].pieces);
		tagger_init(&tagger, 3);
		while ((piece = strsep(&rest, "/")))
			check(tagger_feed(&tagger, piece, strlen(piece), &out) == 0);
		check(tagger_finish(&tagger, &out) == 0);
		check_text(text_of(&out), cases[i].out, cases[i].pieces);
		buffer_free(&out);
	}
}

/* An incomplete line is kept until its newline, or the end of the task. */
static void test_holding_back(void)
{
	struct buffer out = { 0 };
	struct tagger tagger;

	tagger_init(&tagger, 4095);
	tagger_feed(&tagger, "part", 4, &out);
	check(buffer_len(&out) == 0);
	tagger_feed(&tagger, "\n", 1, &out);
	check_text(text_of(&out), "[4095] part\n", "the end came");
	tagger_finish(&tagger, &out);
	buffer_free(&out);
}

static void test_binary(void)
{
	struct buffer out = { 0 };
	struct tagger tagger;

	tagger_init(&tagger, 0);
	tagger_feed(&tagger, "a\0b\n", 4, &out);
	check(buffer_len(&out) == 8 && !memcmp(buffer_head(&out), "[0] a\0b\n", 8));
	tagger_finish(&tagger, &out);
	buffer_free(&out);
}

/* A line of 2.5 times the limit, in pieces of odd sizes, becomes three. */
static void test_long_line(void)
{
	size_t len = TAGGER_LINE_MAX * 5 / 2, fed = 0, lines = 0, xs = 0, i;
	struct buffer out = { 0 };
	struct tagger tagger;
	char piece[7777];
	bool taken = true;

	memset(piece, 'x', sizeof(piece));
	tagger_init(&tagger, 1);
	while (fed < len) {
		size_t n = len - fed < sizeof(piece) ? len - fed : sizeof(piece);

		taken &= tagger_feed(&tagger, piece, n, &out) == 0;
		fed += n;
	}
	check(taken);
	tagger_finish(&tagger, &out);
	for (i = 0; i < buffer_len(&out); i++) {
		lines += buffer_head(&out)[i] == '\n';
		xs += buffer_head(&out)[i] == 'x';
	}
	check(lines == 3);
	check(xs == len);
	buffer_free(&out);
}

static void test_buffer(void)
{
	struct buffer buffer = { 0 };
	unsigned int i;
	bool added = true, same = true;

	/* a queue that is filled and emptied must not grow */
	for (i = 0; i < 100000; i++) {
		added &= buffer_add(&buffer, "0123456789", 10) == 0;
		if (i % 10)
			continue;
		same &= !memcmp(buffer_head(&buffer), "0123456789", 10);
		while (buffer_len(&buffer) > 50)
			buffer_take(&buffer, 10);
	}
	check(added && same);
	check(buffer.room <= 1024);
	buffer_take(&buffer, buffer_len(&buffer));
	check(buffer.start == 0 && buffer.end == 0);
	buffer_free(&buffer);
}

void test_tagger(void)
{
	test_pieces();
	test_holding_back();
	test_binary();
	test_long_line();
	test_buffer();
}
