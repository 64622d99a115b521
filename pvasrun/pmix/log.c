// SPDX-License-Identifier: GPL-2.0-only
/*
 * PMIx_Log: ranks have text written. Open MPI sends its framed messages (show_help) this
 * way, and mpirun prints each of them once per job.
 */
#include "internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- decoding Open MPI's messages ---- */

/*
 * Before each value there is a count, which is 1, and before a string also its length
 * with the final zero. Both are 32 bits, in network byte order.
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

/* Ranks are not trusted: check count, length and the final zero. */
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

/* ---- each message once ---- */

#define TOPICS_MAX 1000

struct topic {
	struct topic *next;
	char name[];
};

static bool wants_all(void)
{
	const char *all = getenv("OMPI_MCA_orte_base_help_aggregate");

	return all && (!strcmp(all, "0") || !strcmp(all, "false"));
}

static bool is_new(const char *file, const char *topic)
{
	static struct topic *topics;
	static unsigned int nr_topics;
	size_t len = strlen(file) + strlen(topic) + 2;
	struct topic *t = malloc(sizeof(*t) + len);

	if (!t)
		return true;
	snprintf(t->name, len, "%s/%s", file, topic);
	for (struct topic *old = topics; old; old = old->next) {
		if (!strcmp(old->name, t->name)) {
			free(t);
			return wants_all();
		}
	}
	if (nr_topics++ >= TOPICS_MAX) {
		free(t);
		return true;
	}
	t->next = topics;
	topics = t;
	return true;
}

/* ---- a writer thread: pvasrun's pipes may block, and libpmix has one thread ---- */

static int out_fd, err_fd;

void pmix_log_to(int out, int err)
{
	out_fd = out;
	err_fd = err;
}

struct line {
	struct line *next;
	int fd;			/* -1: only report that all lines before are written */
	pmix_op_cbfunc_t done;
	void *arg;
	size_t len;
	char text[];
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct line *first, **last;
	size_t used;		/* bytes in the queue */
	bool runs, busy;
} writer = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.last = &writer.first,
};

/* Lines beyond this are dropped: a rank that waits for its answers never gets there. */
#define QUEUE_MAX (4 << 20)

static void write_all(int fd, const char *text, size_t len)
{
	ssize_t n;

	while (len) {
		n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		len -= n;
	}
}

static void *write_lines(void *arg)
{
	struct line *line;

	pthread_mutex_lock(&writer.lock);
	for (;;) {
		while (!(line = writer.first)) {
			writer.busy = false;
			pthread_cond_broadcast(&writer.changed);
			pthread_cond_wait(&writer.changed, &writer.lock);
		}
		writer.busy = true;
		writer.first = line->next;
		if (!writer.first)
			writer.last = &writer.first;
		pthread_mutex_unlock(&writer.lock);
		if (line->fd >= 0)
			write_all(line->fd, line->text, line->len);
		/* not directly: libpmix may hold a lock that the completion takes, too */
		if (line->done)
			pmix_defer(line->done, line->arg);
		pthread_mutex_lock(&writer.lock);
		writer.used -= sizeof(*line) + line->len;
		free(line);
	}
	return arg;
}

static bool start_writer(void)
{
	pthread_t thread;

	if (!writer.runs && !pthread_create(&thread, NULL, write_lines, NULL)) {
		pthread_detach(thread);
		writer.runs = true;
	}
	return writer.runs;
}

/* False if @done will not be called. */
static bool add_line(int fd, const char *text, pmix_op_cbfunc_t done, void *arg)
{
	size_t len = strlen(text);
	struct line *line = malloc(sizeof(*line) + len);
	bool room;

	if (!line)
		return false;
	*line = (struct line){ .fd = fd, .done = done, .arg = arg, .len = len };
	memcpy(line->text, text, len);
	pthread_mutex_lock(&writer.lock);
	room = start_writer() && sizeof(*line) + len <= QUEUE_MAX - writer.used;
	if (room) {
		writer.used += sizeof(*line) + len;
		*writer.last = line;
		writer.last = &line->next;
		pthread_cond_broadcast(&writer.changed);
	}
	pthread_mutex_unlock(&writer.lock);
	if (!room)
		free(line);
	return room;
}

/* A rank may send a string without a text. */
static void print(int fd, const char *text)
{
	if (text)
		add_line(fd, text, NULL, NULL);
}

__attribute__((visibility("default")))
bool pvasrun_pmix_flush(unsigned int ms)
{
	struct timespec until;
	bool all;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&writer.lock);
	while (writer.first || writer.busy)
		if (pthread_cond_timedwait(&writer.changed, &writer.lock, &until))
			break;
	all = !writer.first && !writer.busy;
	pthread_mutex_unlock(&writer.lock);
	return all;
}

/* The message: a help file, a topic in it, a flag, and the text. */
static void print_show_help(const pmix_byte_object_t *bytes)
{
	struct reader from = { bytes->bytes, bytes->size };
	const char *file = read_text(&from), *topic = file ? read_text(&from) : NULL, *text;

	if (!topic || !read_flag(&from))
		return;
	text = read_text(&from);
	if (text && is_new(file, topic))
		print(err_fd, text);
}

static const char *directive_text(const pmix_info_t directives[], size_t nr, const char *key)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!strcmp(directives[i].key, key) && directives[i].value.type == PMIX_STRING)
			return directives[i].value.data.string;
	return NULL;
}

static bool may_aggregate(const pmix_info_t directives[], size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!strcmp(directives[i].key, PMIX_LOG_AGG))
			return PMIX_INFO_TRUE(&directives[i]);
	return true;
}

/* Since 5.0, Open MPI sends the text as it is, and its file and topic beside it. */
static bool was_logged(const pmix_info_t directives[], size_t nr)
{
	const char *file = directive_text(directives, nr, PMIX_LOG_KEY);
	const char *topic = directive_text(directives, nr, PMIX_LOG_VAL);

	return file && topic && may_aggregate(directives, nr) && !is_new(file, topic);
}

void pmix_log(const pmix_proc_t *proc, const pmix_info_t data[], size_t nr,
	      const pmix_info_t directives[], size_t ndirectives, pmix_op_cbfunc_t done,
	      void *arg)
{
	size_t i;

	(void)proc;
	if (was_logged(directives, ndirectives))
		nr = 0;
	for (i = 0; i < nr; i++) {
		const pmix_value_t *value = &data[i].value;

		if (!strcmp(data[i].key, PMIX_LOG_MSG) && value->type == PMIX_BYTE_OBJECT)
			print_show_help(&value->data.bo);
		else if (!strcmp(data[i].key, PMIX_LOG_STDERR) && value->type == PMIX_STRING)
			print(err_fd, value->data.string);
		else if (!strcmp(data[i].key, PMIX_LOG_STDOUT) && value->type == PMIX_STRING)
			print(out_fd, value->data.string);
	}
	if (!add_line(-1, "", done, arg))
		pmix_defer(done, arg);
}
