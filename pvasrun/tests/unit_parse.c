// SPDX-License-Identifier: GPL-2.0-only
/* Numbers, sizes, times */
#include <errno.h>
#include <stddef.h>

#include "../parse.h"
#include "unit.h"

static void test_count(void)
{
	static const struct { const char *text; int ret; unsigned int value; } cases[] = {
		{ "1", 0, 1 }, { "240", 0, 240 }, { "4096", 0, 4096 }, { "007", 0, 7 },
		{ "0", -ERANGE, 0 }, { "4097", -ERANGE, 0 }, { "99999999999999999999", -ERANGE, 0 },
		{ "", -EINVAL, 0 }, { "-1", -EINVAL, 0 }, { "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 }, { "1x", -EINVAL, 0 }, { "0x10", -EINVAL, 0 },
		{ "1.5", -EINVAL, 0 },
	};
	unsigned int i, value;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		value = 0;
		check_case(parse_count(cases[i].text, 1, 4096, &value) == cases[i].ret &&
			   value == cases[i].value, cases[i].text);
	}
}

static void test_size(void)
{
	static const struct { const char *text; int ret; uint64_t value; } cases[] = {
		{ "64G", 0, 64ULL << 30 }, { "64g", 0, 64ULL << 30 }, { "64GB", 0, 64ULL << 30 },
		{ "64GiB", 0, 64ULL << 30 }, { "8T", 0, 8ULL << 40 }, { "4096M", 0, 4ULL << 30 },
		{ "4294967296", 0, 4ULL << 30 }, { "1k", 0, 1024 },
		{ "64X", -EINVAL, 0 }, { "G", -EINVAL, 0 }, { "64G4", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "-4G", -EINVAL, 0 }, { "1.5T", -EINVAL, 0 }, { "64Gi", -EINVAL, 0 },
		{ "16777216T", -ERANGE, 0 }, { "99999999999999999999G", -ERANGE, 0 },
	};
	unsigned int i;
	uint64_t value;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		value = 0;
		check_case(parse_size(cases[i].text, &value) == cases[i].ret &&
			   value == cases[i].value, cases[i].text);
	}
}

static void test_seconds(void)
{
	static const struct { const char *text; int ret; int64_t ms; } cases[] = {
		{ "5", 0, 5000 }, { "5s", 0, 5000 }, { "0.5", 0, 500 }, { ".25", 0, 250 },
		{ "2m", 0, 120000 }, { "1.5h", 0, 5400000 }, { "1d", 0, 86400000 }, { "0.0001", 0, 1 },
		{ "0", -ERANGE, 0 }, { "99999999999d", -ERANGE, 0 },
		{ "", -EINVAL, 0 }, { "-1", -EINVAL, 0 }, { "s", -EINVAL, 0 }, { ".", -EINVAL, 0 },
		{ "5x", -EINVAL, 0 }, { "5ss", -EINVAL, 0 }, { "inf", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 }, { "1e3", -EINVAL, 0 }, { "0x10", -EINVAL, 0 }, { "1.2.3", -EINVAL, 0 },
	};
	unsigned int i;
	int64_t ms;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ms = 0;
		check_case(parse_seconds(cases[i].text, &ms) == cases[i].ret && ms == cases[i].ms,
			   cases[i].text);
	}
}

static void test_choice(void)
{
	static const char *const names[] = { "core", "numa", NULL };

	check(parse_choice("core", names) == 0);
	check(parse_choice("numa", names) == 1);
	check(parse_choice("cor", names) == -EINVAL);
	check(parse_choice("", names) == -EINVAL);
}

void test_parse(void)
{
	test_count();
	test_size();
	test_seconds();
	test_choice();
}
