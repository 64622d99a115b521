// SPDX-License-Identifier: GPL-2.0-only
/* Words of the command line to values. */
#include "command.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../pvasrun/parse.h"

#define WORD_LENGTH	64

/* strtoull() accepts blanks, signs and the empty string, which here are errors. */
static bool digits(const char *text, char **end, uint64_t *value)
{
	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoull(text, end, 10);
	return !errno;
}

/* A decimal number, or a power of two: 2^20 */
bool word_number(const char *text, uint64_t least, uint64_t *value)
{
	uint64_t power;
	char *end;

	if (!digits(text, &end, value))
		return false;
	if (*value == 2 && *end == '^') {
		if (!digits(end + 1, &end, &power) || power > 63)
			return false;
		*value = 1UL << power;
	}
	return !*end && *value >= least;
}

static bool one(const char *text, bool sizes, uint64_t *value)
{
	if (sizes && text[0] != '0' && !parse_size(text, value))
		return true;
	return word_number(text, 1, value);
}

/* "A", or "A..B": A and its doubles, up to B */
static bool add_range(char *text, bool sizes, struct list *list)
{
	char *dots = strstr(text, "..");
	uint64_t value, last;

	if (dots)
		*dots = '\0';
	if (!one(text, sizes, &value))
		return false;
	last = value;
	if (dots && (!one(dots + 2, sizes, &last) || last < value))
		return false;
	for (;;) {
		if (list->nr == LIST_LENGTH)
			return false;
		list->value[list->nr++] = value;
		if (value > last / 2)
			return true;
		value *= 2;
	}
}

/* Several of these, with commas between. @sizes: each may have a suffix (8M) */
bool word_list(const char *text, bool sizes, struct list *list)
{
	char word[WORD_LENGTH];
	size_t length;

	list->nr = 0;
	for (;;) {
		length = strcspn(text, ",");
		if (length >= sizeof(word))
			return false;
		memcpy(word, text, length);
		word[length] = '\0';
		if (!add_range(word, sizes, list))
			return false;
		if (!text[length])
			return true;
		text += length + 1;
	}
}

/* "all", "3" or "0..9"; the last of all is UINT64_MAX */
bool word_steps(const char *text, uint64_t *first, uint64_t *last)
{
	char *end;

	*first = 0;
	*last = UINT64_MAX;
	if (!strcmp(text, "all"))
		return true;
	if (!digits(text, &end, first))
		return false;
	*last = *first;
	if (!strncmp(end, "..", 2) && !digits(end + 2, &end, last))
		return false;
	return !*end && *first <= *last && *last < UINT64_MAX;
}

/* strtod() also reads hexadecimal, exponents, "inf" and "nan" */
static bool fraction(const char *text, char **end, double *value)
{
	size_t length = strspn(text, "0123456789.");

	if (!length || (text[length] && strchr("eExXpP", text[length])))
		return false;
	*value = strtod(text, end);
	return *end == text + length && isfinite(*value) && *value > 0;
}

/* Microseconds, unless there is another unit */
bool word_time_us(const char *text, double *us)
{
	static const char *const units[] = { "", "us", "ns", "ms", "s", NULL };
	static const double factor[] = { 1, 1, 1e-3, 1e3, 1e6 };
	char *end;
	int unit;

	if (!fraction(text, &end, us))
		return false;
	unit = word_choice(end, units);
	if (unit < 0)
		return false;
	*us *= factor[unit];
	return true;
}

/* Bytes a second, with a decimal suffix: 5G or 5GB/s */
bool word_bytes_per_us(const char *text, double *rate)
{
	static const char letters[] = "kMGT";
	const char *letter;
	char *end;

	if (!fraction(text, &end, rate))
		return false;
	letter = *end ? strchr(letters, *end) : NULL;
	if (letter) {
		*rate *= pow(1000, letter - letters + 1);
		end++;
	}
	*rate /= 1e6;
	return !*end || !strcmp(end, "B/s");
}

/* "1,n,m2": each once */
bool word_terms(const char *text, struct fit_result *fit)
{
	char word[WORD_LENGTH];
	unsigned int i;
	size_t length;
	int term;

	for (fit->nr_terms = 0; fit->nr_terms < FIT_TERMS; text += length + 1) {
		length = strcspn(text, ",");
		if (length >= sizeof(word))
			return false;
		memcpy(word, text, length);
		word[length] = '\0';
		term = word_choice(word, fit_term_names);
		if (term < 0)
			return false;
		for (i = 0; i < fit->nr_terms; i++)
			if (fit->term[i] == (enum fit_term)term)
				return false;
		fit->term[fit->nr_terms++] = term;
		if (!text[length])
			return true;
	}
	return false;
}

int word_choice(const char *text, const char *const *names)
{
	int i;

	for (i = 0; names[i]; i++)
		if (!strcmp(text, names[i]))
			return i;
	return -1;
}
