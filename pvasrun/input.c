// SPDX-License-Identifier: GPL-2.0-only
/*
 * --stdin all: copy pvasrun's standard input to every task.
 *
 * The next chunk is read when every task has got the present one, so memory is bounded
 * and the slowest reader sets the pace. A task that has closed its input is left out.
 */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

static void feed_close(struct feed *feed)
{
	struct input *input = feed->input;

	if (feed->event.fd < 0)
		return;
	loop_forget(input->loop, &feed->event);
	close(feed->event.fd);
	feed->event.fd = -1;
	input->open--;
	if (feed->done < input->len)
		input->pending--;
}

/* Write as much of the chunk as the pipe has room for. */
static void feed_push(struct feed *feed)
{
	struct input *input = feed->input;
	ssize_t n;

	while (feed->done < input->len) {
		n = write(feed->event.fd, input->chunk + feed->done, input->len - feed->done);
		if (n < 0 && errno == EAGAIN) {
			loop_change(input->loop, &feed->event, EPOLLOUT);
			return;
		}
		if (n < 0) {	/* EPIPE: the task has closed it */
			feed_close(feed);
			return;
		}
		feed->done += n;
	}
	input->pending--;
	loop_change(input->loop, &feed->event, 0);
}

static void close_all(struct input *input)
{
	unsigned int rank;

	for (rank = 0; rank < input->nr_feeds; rank++)
		feed_close(&input->feeds[rank]);
}

static void read_chunk(struct input *input)
{
	unsigned int rank;
	ssize_t n;

	n = inlet_read(&input->inlet, input->chunk, sizeof(input->chunk));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0)
		report_error("cannot read standard input, which ends here for the tasks: %s",
			     strerror(errno));
	if (n <= 0) {
		input->eof = true;
		input->len = 0;
		close_all(input);
		return;
	}
	input->len = n;
	input->pending = input->open;
	for (rank = 0; rank < input->nr_feeds; rank++) {
		input->feeds[rank].done = 0;
		if (input->feeds[rank].event.fd >= 0)
			feed_push(&input->feeds[rank]);
	}
}

/* Watch standard input if the next chunk is due; read regular files at once. */
static void read_or_watch(struct input *input)
{
	if (!input->begun)	/* tasks are still being started */
		return;
	while (!input->pollable && !input->eof && !input->pending && input->open)
		read_chunk(input);
	if (!input->pollable)
		return;
	if (input->pending || input->eof || !input->open)
		loop_forget(input->loop, &input->event);
	else if (!input->event.watched)
		loop_watch(input->loop, &input->event, EPOLLIN);
}

static void stdin_ready(struct event *event, uint32_t what)
{
	struct input *input = (struct input *)event;

	(void)what;
	read_chunk(input);
	read_or_watch(input);
}

/* Room in the pipe, or (EPOLLERR) its other end is closed */
static void feed_ready(struct event *event, uint32_t what)
{
	struct feed *feed = (struct feed *)event;

	if (what & EPOLLERR)
		feed_close(feed);
	else if (feed->done < feed->input->len)
		feed_push(feed);
	read_or_watch(feed->input);
}

int input_open(struct input *input, struct loop *loop, unsigned int tasks)
{
	unsigned int rank;

	*input = (struct input){ .loop = loop, .nr_feeds = tasks };
	input->feeds = calloc(tasks, sizeof(*input->feeds));
	if (!input->feeds)
		return -ENOMEM;
	inlet_open(&input->inlet, STDIN_FILENO);
	input->event.fd = inlet_watched(&input->inlet);
	input->event.ready = stdin_ready;
	for (rank = 0; rank < tasks; rank++) {
		input->feeds[rank].input = input;
		input->feeds[rank].event = (struct event){ .fd = -1, .ready = feed_ready };
	}
	return 0;
}

void input_close(struct input *input)
{
	if (!input->feeds)
		return;
	loop_forget(input->loop, &input->event);
	close_all(input);
	inlet_close(&input->inlet);
	free(input->feeds);
	input->feeds = NULL;
}

int input_attach(struct input *input, unsigned int rank, int *fd)
{
	struct feed *feed = &input->feeds[rank];
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fcntl(ends[1], F_SETFL, O_NONBLOCK);	/* our end only */
	feed->event.fd = ends[1];
	err = loop_watch(input->loop, &feed->event, 0);
	if (err) {
		close(ends[0]);
		close(ends[1]);
		feed->event.fd = -1;
		return err;
	}
	input->open++;
	*fd = ends[0];
	return 0;
}

void input_begin(struct input *input)
{
	input->begun = true;
	input->pollable = loop_watch(input->loop, &input->event, EPOLLIN) != -EPERM;
	read_or_watch(input);
}
