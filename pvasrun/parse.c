// SPDX-License-Identifier: GPL-2.0-only
/* Convert words of the command line to values. */
#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* strtoul() accepts blanks, signs and the empty string, which here are errors. */
static int leading_number(const char *text, unsigned long long *value, char **end)
{
	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, end, 10);
	return errno ? -ERANGE : 0;
}

int parse_count(const char *text, unsigned int min, unsigned int max, unsigned int *value)
{
	unsigned long long number;
	char *end;
	int err;

	err = leading_number(text, &number, &end);
	if (err)
		return err;
	if (*end)
		return -EINVAL;
	if (number < min || number > max)
		return -ERANGE;
	*value = number;
	return 0;
}

/* The binary logarithm of a suffix: 64G, 64GB and 64GiB are the same. */
static int suffix_shift(const char *suffix)
{
	static const char letters[] = "kmgt";
	const char *letter;

	if (!*suffix)
		return 0;
	letter = strchr(letters, tolower((unsigned char)suffix[0]));
	if (!letter || (suffix[1] && strcasecmp(suffix + 1, "b") && strcasecmp(suffix + 1, "ib")))
		return -EINVAL;
	return 10 * (int)(letter - letters + 1);
}

int parse_size(const char *text, uint64_t *bytes)
{
	unsigned long long number;
	char *end;
	int err, shift;

	err = leading_number(text, &number, &end);
	if (err)
		return err;
	shift = suffix_shift(end);
	if (shift < 0)
		return shift;
	if (number > UINT64_MAX >> shift)
		return -ERANGE;
	*bytes = (uint64_t)number << shift;
	return 0;
}

/* As timeout(1): a number, which may have a fraction and a suffix s, m, h or d */
int parse_seconds(const char *text, int64_t *ms)
{
	double value, unit = 1;
	char *end;

	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return -EINVAL;
	/* strtod() also reads hexadecimal, exponents, "inf" and "nan" */
	if (text[strspn(text, "0123456789.")] && text[strspn(text, "0123456789.") + 1])
		return -EINVAL;
	value = strtod(text, &end);
	switch (*end) {
	case 'd':
		unit *= 24;
		/* fallthrough */
	case 'h':
		unit *= 60;
		/* fallthrough */
	case 'm':
		unit *= 60;
		/* fallthrough */
	case 's':
		end++;
		break;
	}
	if (end == text || *end)
		return -EINVAL;
	value = ceil(value * unit * 1000);
	if (value < 1 || value > INT32_MAX * 1000.0)
		return -ERANGE;
	*ms = value;
	return 0;
}

int parse_choice(const char *text, const char *const *names)
{
	int i;

	for (i = 0; names[i]; i++)
		if (!strcmp(text, names[i]))
			return i;
	return -EINVAL;
}
