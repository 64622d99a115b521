// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measurements in a file: lines "n m bytes", with blanks or commas between, and comments after #.
 */
#include "fit.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_LENGTH	256
/* Measured memory may fall a little where a larger job adds almost nothing. */
#define NOISE_PERCENT	1

__attribute__((format(printf, 2, 3)))
static int refuse(struct fit_data *data, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(data->error, sizeof(data->error), format, args);
	va_end(args);
	return -EINVAL;
}

/* Moves on to the end of a number from 1 on. */
static bool take_number(char **text, uint64_t *value)
{
	while (isblank((unsigned char)**text) || **text == ',')
		(*text)++;
	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*value = strtoull(*text, text, 10);
	return !errno && *value && (isspace((unsigned char)**text) || **text == ',' || !**text);
}

/* The measurement with as many ranks a node that was read last */
static const struct fit_point *previous(const struct fit_data *data, uint64_t ranks_per_node)
{
	unsigned int i = data->nr;

	while (i--)
		if (data->point[i].ranks_per_node == ranks_per_node)
			return &data->point[i];
	return NULL;
}

static int check_point(struct fit_data *data, const struct fit_point *p, unsigned int line)
{
	const struct fit_point *before = previous(data, p->ranks_per_node);

	if (p->ranks_per_node > p->ranks)
		return refuse(data, "line %u: %" PRIu64 " ranks a node, but only %" PRIu64 " ranks",
			      line, p->ranks_per_node, p->ranks);
	if (before && p->ranks <= before->ranks)
		return refuse(data, "line %u: n does not increase (%" PRIu64 " after %" PRIu64
			      ", with %" PRIu64 " ranks a node)", line, p->ranks, before->ranks,
			      p->ranks_per_node);
	if (before && p->bytes < before->bytes - before->bytes / 100 * NOISE_PERCENT)
		return refuse(data, "line %u: the bytes fall by more than %u %% (%" PRIu64 " after %"
			      PRIu64 ", with %" PRIu64 " ranks a node)", line, NOISE_PERCENT,
			      p->bytes, before->bytes, p->ranks_per_node);
	return 0;
}

static int add_line(struct fit_data *data, char *text, unsigned int line)
{
	struct fit_point p;
	int err;

	text[strcspn(text, "#")] = '\0';
	text += strspn(text, " \t\r\n");
	if (!*text)
		return 0;
	if (!take_number(&text, &p.ranks) || !take_number(&text, &p.ranks_per_node) ||
	    !take_number(&text, &p.bytes) || text[strspn(text, " \t\r\n")])
		return refuse(data, "line %u: not three whole numbers from 1 (n, m, bytes)", line);
	if (data->nr == FIT_POINTS)
		return refuse(data, "more than %u measurements", FIT_POINTS);
	err = check_point(data, &p, line);
	if (!err)
		data->point[data->nr++] = p;
	return err;
}

static int read_lines(struct fit_data *data, FILE *file)
{
	char text[LINE_LENGTH];
	unsigned int line = 0;
	int err;

	errno = 0;
	while (fgets(text, sizeof(text), file)) {
		line++;
		if (!strchr(text, '\n') && !feof(file))
			return refuse(data, "line %u: longer than %zu bytes, or no text", line,
				      sizeof(text) - 2);
		err = add_line(data, text, line);
		if (err)
			return err;
	}
	if (ferror(file))
		return refuse(data, "%s", strerror(errno));
	return data->nr ? 0 : refuse(data, "no measurements");
}

int fit_read(struct fit_data *data, const char *path)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	int err;

	data->nr = 0;
	if (!file)
		return refuse(data, "%s", strerror(errno));
	err = read_lines(data, file);
	if (file != stdin)
		fclose(file);
	return err;
}
