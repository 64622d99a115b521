// SPDX-License-Identifier: GPL-2.0-only
/* The text of PMIx_Log and of libpmix: see texts.h. */
#include "texts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "clock.h"
#include "report.h"

#define RETRY_US 10000

/* True: some of it waits */
static bool write_rest(struct texts *texts)
{
	ssize_t n;

	while (buffer_len(&texts->rest)) {
		n = outlet_write(&texts->own, buffer_head(&texts->rest), buffer_len(&texts->rest));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		buffer_take(&texts->rest, n > 0 ? (size_t)n : buffer_len(&texts->rest));
	}
	return false;
}

static bool is_full(struct texts *texts, unsigned int which)
{
	if (which != TEXT_OUT)
		return report_waits();
	if (output_forwards(texts->output))
		return output_is_full(texts->output);
	return write_rest(texts);
}

static void pass_on(struct texts *texts, unsigned int which, const char *text, size_t len)
{
	if (which != TEXT_OUT)
		report_text(text, len);
	else if (output_forwards(texts->output))
		output_text(texts->output, text, len);
	else if (!buffer_add(&texts->rest, text, len))
		texts->used = true;
}

/* True: the pipe is empty */
static bool read_pipe(struct text_pipe *from)
{
	struct texts *texts = from->texts;
	const unsigned int which = (unsigned int)(from - texts->pipes);
	static char text[PIPE_BUF];	/* the stack may be that small */
	ssize_t n;

	/* is_full() also writes the rest. */
	while (!is_full(texts, which)) {
		n = read(from->event.fd, text, sizeof(text));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return true;
		pass_on(texts, which, text, (size_t)n);
	}
	loop_forget(texts->loop, &from->event);
	return false;
}

static void ready(struct event *event, uint32_t what)
{
	(void)what;
	read_pipe((struct text_pipe *)event);
}

void texts_open(struct texts *texts, struct loop *loop, struct output *output)
{
	*texts = (struct texts){
		.loop = loop, .output = output, .own = OUTLET_NONE(STDOUT_FILENO), .open = true,
	};
	if (!output_forwards(output))
		outlet_open(&texts->own, STDOUT_FILENO, NULL);
}

int texts_begin(struct texts *texts, int ends[static NR_TEXTS])
{
	int i, both[2], err = 0;

	for (i = 0; i < NR_TEXTS && !err; i++) {
		struct text_pipe *to = &texts->pipes[i];

		if (pipe2(both, O_CLOEXEC) < 0)
			return -errno;
		fcntl(both[0], F_SETFL, O_NONBLOCK);
		if (i == TEXT_LIBRARY)
			fcntl(both[1], F_SETFL, O_NONBLOCK);
		*to = (struct text_pipe){ .texts = texts };
		to->event = (struct event){ .fd = both[0], .ready = ready };
		ends[i] = both[1];
		err = loop_watch(texts->loop, &to->event, EPOLLIN);
	}
	return err;
}

bool texts_read(struct texts *texts)
{
	bool empty = true;
	int i;

	for (i = 0; i < NR_TEXTS; i++)
		if (texts->pipes[i].texts)
			empty &= read_pipe(&texts->pipes[i]);
	return empty;
}

bool texts_wait(struct texts *texts)
{
	bool wait;
	int i;

	if (!texts->open)
		return false;
	wait = write_rest(texts);
	for (i = 0; i < NR_TEXTS; i++) {
		struct text_pipe *from = &texts->pipes[i];

		if (!from->texts || from->event.watched)
			continue;
		if (is_full(texts, i))
			wait = true;
		else
			loop_watch(texts->loop, &from->event, EPOLLIN);
	}
	return wait;
}

void texts_finish(struct texts *texts, int ms)
{
	const int64_t until = now_ms() + ms;
	bool finished = false;

	while (texts->open && now_ms() < until) {
		if (!write_rest(texts) && texts_read(texts)) {
			if (!finished && texts->used)
				outlet_finish(&texts->own);
			finished = true;
			if (!texts->used || outlet_finished(&texts->own) >= 0)
				return;
		}
		usleep(RETRY_US);
	}
}

/* The plugin has the other ends, and ends with the process. */
void texts_close(struct texts *texts)
{
	int i;

	for (i = 0; i < NR_TEXTS; i++)
		if (texts->pipes[i].texts)
			loop_forget(texts->loop, &texts->pipes[i].event);
	if (texts->open)
		outlet_close(&texts->own);
	buffer_free(&texts->rest);
	texts->open = false;
}
