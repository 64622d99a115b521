// SPDX-License-Identifier: GPL-2.0-only
/* Runs the checks of the library: "ok" or "FAIL", one line each, which run.sh counts. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

static unsigned int failures;

void expect(bool good, const char *name, const char *file, int line)
{
	if (good) {
		printf("ok %s\n", name);
		return;
	}
	printf("FAIL %s:%d: %s\n", strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, name);
	failures++;
}

void expect_number(uint64_t got, uint64_t wanted, const char *name, const char *file, int line)
{
	char text[256];

	snprintf(text, sizeof(text), "%s: %" PRIu64 " (should be %" PRIu64 ")", name, got, wanted);
	expect(got == wanted, text, file, line);
}

void expect_text(const char *got, const char *wanted, const char *name, const char *file, int line)
{
	char text[256];

	snprintf(text, sizeof(text), "%s: '%s' (should be '%s')", name, got, wanted);
	expect(!strcmp(got, wanted), text, file, line);
}

void expect_printed(double got, const char *wanted, const char *name, const char *file, int line)
{
	const char *point = strchr(wanted, '.');
	char text[64];

	snprintf(text, sizeof(text), "%.*f", point ? (int)strlen(point + 1) : 0, got);
	expect_text(text, wanted, name, file, line);
}

int main(void)
{
	test_lean();
	test_kcomputer();
	test_pvas();
	test_neighbour();
	test_fit();
	test_words();
	return failures > 0;
}
