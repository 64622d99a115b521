// SPDX-License-Identifier: GPL-2.0-only
/* The output that all commands have: units, and notes. */
#include "command.h"

#include <math.h>

/* Three digits, as the papers have them: 999.6 MB is 1.00 GB. */
struct human human_double(double bytes)
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB" };
	double value = fabs(bytes);
	struct human h;
	unsigned int i = 0;

	while (value >= 999.5 && i + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1000;
		i++;
	}
	snprintf(h.text, sizeof(h.text), "%s%.*f %s", bytes < 0 ? "-" : "",
		 !i || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value, units[i]);
	return h;
}

struct human human_bytes(uint64_t bytes)
{
	return human_double(bytes);
}

void print_notes(const struct scale_notes *notes)
{
	unsigned int i;

	for (i = 0; i < notes->nr; i++)
		printf("%snote: %s\n", i ? "" : "\n", notes->text[i]);
}

/* The texts have quotation marks, and nothing else that JSON would not take as it is. */
void print_notes_json(const struct scale_notes *notes)
{
	const char *c;
	unsigned int i;

	printf("\"notes\":[");
	for (i = 0; i < notes->nr; i++) {
		printf("%s\"", i ? "," : "");
		for (c = notes->text[i]; *c; c++)
			printf(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
		putchar('"');
	}
	putchar(']');
}
