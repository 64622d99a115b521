// SPDX-License-Identifier: GPL-2.0-only
/* Words of the command line, and bytes as the papers print them. */
#include <string.h>

#include "../command.h"
#include "unit.h"

static void check_numbers(void)
{
	static const char *const bad[] = {
		"", "0", "-1", "+1", " 1", "1 ", "1x", "0x10", "1e3", "1.5", "2^64", "2^", "2^-1",
		"3^2", "18446744073709551616", "99999999999999999999999", "nan", "inf",
	};
	uint64_t value;
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CASE(!word_number(bad[i], 1, &value), bad[i]);
	EXPECT(word_number("18446744073709551615", 1, &value) && value == UINT64_MAX);
	EXPECT(word_number("2^20", 1, &value) && value == 1048576);
	EXPECT(word_number("0", 0, &value) && value == 0);
}

static void check_lists(void)
{
	static const char *const bad[] = {
		"", ",", "1,", ",1", "1,,2", "0", "1..0", "4..2", "..", "1..", "..2", "1..2..4",
		"-1..2", "8M", "2^0..2^63,1",
	};
	struct list list;
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CASE(!word_list(bad[i], false, &list), bad[i]);
	EXPECT(word_list("65536..1048576", false, &list) && list.nr == 5 &&
	       list.value[4] == 1048576);
	EXPECT(word_list("3,5..21", false, &list) && list.nr == 4 && list.value[3] == 20);
	EXPECT(word_list("2^0..2^63", false, &list) && list.nr == 64 &&
	       list.value[63] == 1UL << 63);
	EXPECT(word_list("1K..8M", true, &list) && list.nr == 14 && list.value[13] == 8 << 20);
	EXPECT(!word_list("0K", true, &list));
	EXPECT(!word_list("17179869184G", true, &list));
}

static void check_others(void)
{
	struct fit_result fit;
	uint64_t first, last;
	double value;

	EXPECT(word_time_us("1", &value) && value == 1);
	EXPECT(word_time_us("1.5ms", &value) && value == 1500);
	EXPECT(word_time_us("2s", &value) && value == 2e6);
	EXPECT(word_time_us("500ns", &value) && value == 0.5);
	EXPECT(!word_time_us("0", &value) && !word_time_us("-1", &value) &&
	       !word_time_us("1m", &value) && !word_time_us("nan", &value) &&
	       !word_time_us("1e3", &value) && !word_time_us("0x1", &value) &&
	       !word_time_us("1.2.3", &value) && !word_time_us("", &value));
	EXPECT(word_bytes_per_us("5G", &value) && value == 5000);
	EXPECT(word_bytes_per_us("5GB/s", &value) && value == 5000);
	EXPECT(word_bytes_per_us("12.5M", &value) && value == 12.5);
	EXPECT(!word_bytes_per_us("0", &value) && !word_bytes_per_us("5Gb", &value) &&
	       !word_bytes_per_us("G", &value) && !word_bytes_per_us("5GG", &value));
	EXPECT(word_steps("all", &first, &last) && !first && last == UINT64_MAX);
	EXPECT(word_steps("2..5", &first, &last) && first == 2 && last == 5);
	EXPECT(word_steps("3", &first, &last) && first == 3 && last == 3);
	EXPECT(!word_steps("5..2", &first, &last) && !word_steps("", &first, &last) &&
	       !word_steps("1..", &first, &last) && !word_steps("1-2", &first, &last) &&
	       !word_steps("18446744073709551615", &first, &last));
	EXPECT(word_terms("1,mn,n/m", &fit) && fit.nr_terms == 3 && fit.term[2] == FIT_NODES);
	EXPECT(!word_terms("1,1", &fit) && !word_terms("", &fit) && !word_terms("x", &fit) &&
	       !word_terms("1,", &fit) && !word_terms("1,n,mn,m2,m,n/m,1", &fit));
}

static void check_units(void)
{
	STRING(human_bytes(0).text, "0 B");
	STRING(human_bytes(999).text, "999 B");
	STRING(human_bytes(1000).text, "1.00 KB");
	STRING(human_bytes(9994).text, "9.99 KB");
	STRING(human_bytes(9996).text, "10.0 KB");
	STRING(human_bytes(99960).text, "100 KB");
	STRING(human_bytes(999499).text, "999 KB");
	STRING(human_bytes(999600).text, "1.00 MB");
	STRING(human_bytes(UINT64_MAX).text, "18.4 EB");
	STRING(human_double(-1.5e9).text, "-1.50 GB");
}

void test_words(void)
{
	check_numbers();
	check_lists();
	check_others();
	check_units();
}
