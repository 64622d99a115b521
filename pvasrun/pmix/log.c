// SPDX-License-Identifier: GPL-2.0
/*
 * What ranks want to be written, by PMIx_Log. Open MPI's longer messages, those
 * with a frame, come that way: mpirun would write each once, whoever sent it.
 */
#include "internal.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Open MPI's messages ---- */

/*
 * Each value has a count before it, always 1 here, a text also its length with
 * the zero at its end; all of that are 4 bytes with the highest first.
 */
struct reader {
	const char *at;
	size_t left;
};

static bool read_number(struct reader *from, uint32_t *value)
{
	if (from->left < sizeof(*value))
		return false;
	memcpy(value, from->at, sizeof(*value));
	*value = ntohl(*value);
	from->at += sizeof(*value);
	from->left -= sizeof(*value);
	return true;
}

/* What comes from others may be anything. */
static const char *read_text(struct reader *from)
{
	const char *text = from->at;
	uint32_t count, len;

	if (!read_number(from, &count) || count != 1 || !read_number(from, &len))
		return NULL;
	text = from->at;
	if (!len || len > from->left || text[len - 1])
		return NULL;
	from->at += len;
	from->left -= len;
	return text;
}

static bool read_flag(struct reader *from)
{
	uint32_t count;

	if (!read_number(from, &count) || count != 1 || !from->left || !*from->at)
		return false;
	from->at++;
	from->left--;
	return true;
}

/* ---- each of them once ---- */

struct topic {
	struct topic *next;
	char name[];
};

static bool wants_all(void)
{
	const char *all = getenv("OMPI_MCA_orte_base_help_aggregate");

	return all && (!strcmp(all, "0") || !strcmp(all, "false"));
}

static bool is_new(const char *file, const char *subject)
{
	static struct topic *topics;
	size_t len = strlen(file) + strlen(subject) + 2;
	struct topic *t = malloc(sizeof(*t) + len);

	if (!t)
		return true;
	snprintf(t->name, len, "%s/%s", file, subject);
	for (struct topic *old = topics; old; old = old->next) {
		if (!strcmp(old->name, t->name)) {
			free(t);
			return wants_all();
		}
	}
	t->next = topics;
	topics = t;
	return true;
}

static void print(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) < 0)
		return;
}

/* A file, a subject in it, and the text, if there is one. */
static void open_mpi_says(const pmix_byte_object_t *bytes)
{
	struct reader from = { bytes->bytes, bytes->size };
	const char *file = read_text(&from), *subject = file ? read_text(&from) : NULL, *text;

	if (!subject || !read_flag(&from))
		return;
	text = read_text(&from);
	if (text && is_new(file, subject))
		print(STDERR_FILENO, text);
}

void pmix_log(const pmix_proc_t *proc, const pmix_info_t data[], size_t nr,
	      const pmix_info_t directives[], size_t ndirectives, pmix_op_cbfunc_t done,
	      void *arg)
{
	size_t i;

	(void)proc;
	(void)directives;
	(void)ndirectives;
	for (i = 0; i < nr; i++) {
		const pmix_value_t *value = &data[i].value;

		if (!strcmp(data[i].key, PMIX_LOG_MSG) && value->type == PMIX_BYTE_OBJECT)
			open_mpi_says(&value->data.bo);
		else if (!strcmp(data[i].key, PMIX_LOG_STDERR) && value->type == PMIX_STRING)
			print(STDERR_FILENO, value->data.string);
		else if (!strcmp(data[i].key, PMIX_LOG_STDOUT) && value->type == PMIX_STRING)
			print(STDOUT_FILENO, value->data.string);
	}
	/* it holds a lock that the answer needs, too */
	pmix_soon(done, arg);
}
