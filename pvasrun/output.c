// SPDX-License-Identifier: GPL-2.0-only
/*
 * --tag-output, --pty: copy the tasks' output.
 *
 * pvasrun must handle signals however slow its reader is, so it never blocks: see
 * outlet.c. While the queue is long nothing is read, so that tasks block as they would
 * with a pipe to the reader.
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pty.h"
#include "report.h"

#define READ_SIZE	(64 << 10)
#define QUEUE_MAX	(256 << 10)

/* A pseudo-terminal's buffers (TTYB_DEFAULT_MEM_LIMIT), and more */
#define PTY_HOLDS	(1 << 20)

/* ---- sinks ---- */

static void stream_release(struct stream *stream)
{
	if (stream->pty_end >= 0)
		close(stream->pty_end);
	stream->pty_end = -1;
}

static void stream_close(struct stream *stream)
{
	if (stream->event.fd < 0)
		return;
	stream_release(stream);
	loop_forget(&stream->output->streams_loop, &stream->event);
	close(stream->event.fd);
	stream->event.fd = -1;
	stream->output->open_streams--;
	buffer_free(&stream->tagger.line);
}

/* A task that writes then gets SIGPIPE, as if it wrote to the reader itself. */
static void sink_close_streams(struct sink *sink)
{
	struct output *output = sink->output;
	unsigned int i;

	for (i = 0; i < output->nr_streams; i++)
		if (output->streams[i].sink == sink)
			stream_close(&output->streams[i]);
}

/*
 * Writing to a pseudo-terminal whose other end is closed fails with EIO, without
 * SIGPIPE. So it stays open until pvasrun has sent that signal.
 */
static void stream_hang_up(struct stream *stream)
{
	stream->hung_up = stream->output->hung_up = true;
	loop_forget(&stream->output->streams_loop, &stream->event);
}

/* Those whose bytes are in the queue have written to nobody. */
static void sink_break(struct sink *sink)
{
	struct output *output = sink->output;
	unsigned int i;

	sink->broken = true;
	buffer_free(&sink->queue);
	if (!output->pty || sink != &output->sinks[0]) {
		sink_close_streams(sink);
		return;
	}
	for (i = 0; i < output->nr_streams; i += 2) {
		struct stream *stream = &output->streams[i];

		if (stream->event.fd >= 0 && stream->queued == sink->emptied)
			stream_hang_up(stream);
	}
}

bool output_hung_up(struct output *output, unsigned int *rank)
{
	unsigned int i;

	for (i = 0; output->hung_up && i < output->nr_streams; i++) {
		if (output->streams[i].event.fd < 0 || !output->streams[i].hung_up)
			continue;
		*rank = i / 2;
		return true;
	}
	output->hung_up = false;
	return false;
}

void output_hang_up(struct output *output, unsigned int rank)
{
	stream_close(&output->streams[2 * rank]);
}

/*
 * How much to write at once: as many whole lines as fit, or a part of the first. *@ends:
 * it ends with a whole line.
 */
static size_t next_piece(const struct buffer *queue, bool *ends)
{
	size_t len = buffer_len(queue);
	const char *last;

	if (len > PIPE_BUF)
		len = PIPE_BUF;
	last = memrchr(buffer_head(queue), '\n', len);
	*ends = last;
	return last ? (size_t)(last - buffer_head(queue)) + 1 : len;
}

static bool sink_blocked(const struct sink *sink)
{
	return sink->output->midline && sink->output->midline != sink;
}

static void sink_write(struct sink *sink)
{
	struct buffer *queue = &sink->queue;
	ssize_t n;
	bool ends;

	n = outlet_write(&sink->outlet, buffer_head(queue), next_piece(queue, &ends));
	if (n < 0) {
		if (errno == EINTR || errno == EAGAIN)
			return;
		if (errno != EPIPE) {
			report_error("cannot write the tasks' output: %s", strerror(errno));
			sink->output->failed = true;
		}
		sink->output->midline = NULL;
		sink_break(sink);
		return;
	}
	ends = n && buffer_head(queue)[n - 1] == '\n';
	sink->output->midline = ends ? NULL : sink;
	buffer_take(queue, n);
	sink->emptied += !buffer_len(queue);
}

/* Watch sinks that have something to write, and pause the streams if that is too much. */
static void update_watches(struct output *output)
{
	bool full = false;
	int i;

	for (i = 0; i < 2; i++) {
		struct sink *sink = &output->sinks[i];
		bool wanted = buffer_len(&sink->queue) && !sink_blocked(sink);

		full |= buffer_len(&sink->queue) > QUEUE_MAX;
		if (!sink->pollable)
			continue;
		if (wanted && !sink->event.watched)
			loop_watch(output->loop, &sink->event, EPOLLOUT);
		else if (!wanted)
			loop_forget(output->loop, &sink->event);
	}
	if (full)
		loop_forget(output->loop, &output->streams_loop.self);
	else if (!output->streams_loop.self.watched)
		loop_watch(output->loop, &output->streams_loop.self, EPOLLIN);
}

/* Regular files never block. */
static void write_files(struct output *output)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct sink *sink = &output->sinks[i];

		while (!sink->pollable && buffer_len(&sink->queue) && !sink_blocked(sink))
			sink_write(sink);
	}
}

static void sink_ready(struct event *event, uint32_t what)
{
	struct sink *sink = (struct sink *)event;

	(void)what;
	if (buffer_len(&sink->queue) && !sink_blocked(sink))
		sink_write(sink);
	write_files(sink->output);
	update_watches(sink->output);
}

/* ---- streams ---- */

static bool has_input(int fd)
{
	struct pollfd input = { .fd = fd, .events = POLLIN };

	return poll(&input, 1, 0) > 0;
}

static void check_added(int err)
{
	if (err)
		report_error("output of a task was lost: %s", strerror(-err));
}

static void stream_finish(struct stream *stream)
{
	if (!stream->sink->broken)
		check_added(tagger_finish(&stream->tagger, &stream->sink->queue));
	stream_close(stream);
}

/* True: what tasks have left there is read, or so much that it can't be from them. */
static bool stream_is_finished(struct stream *stream, ssize_t n)
{
	stream->left -= n;
	return stream->output->finishing && (stream->left <= 0 || !has_input(stream->event.fd));
}

static void stream_ready(struct event *event, uint32_t what)
{
	struct stream *stream = (struct stream *)event;
	struct buffer *queue = &stream->sink->queue;
	static char bytes[READ_SIZE];	/* the stack may be that small */
	ssize_t n;

	(void)what;
	if (stream->pty)
		n = pty_read(event->fd, stream->pty_end, bytes, sizeof(bytes));
	else
		n = read(event->fd, bytes, sizeof(bytes));
	/* Changes of a terminal's state have no end if a process goes on with them. */
	if (n < 0 && (errno == EAGAIN || errno == EINTR) &&
	    !stream_is_finished(stream, sizeof(bytes)))
		return;
	if (n > 0 && stream->sink->broken) {
		stream_hang_up(stream);
		return;
	}
	if (n > 0)
		stream->queued = stream->sink->emptied;
	if (n > 0 && stream->output->tag)
		check_added(tagger_feed(&stream->tagger, bytes, n, queue));
	else if (n > 0)
		check_added(buffer_add(queue, bytes, n));
	if (n <= 0 || stream_is_finished(stream, n))
		stream_finish(stream);
	write_files(stream->output);
	update_watches(stream->output);
}

/* @ends: to read from, and for the task to write to */
static int stream_create(struct stream *stream, int ends[static 2])
{
	struct output *output = stream->output;
	int err;

	if (output->pty && !output->pty_failed && !stream->sink->broken &&
	    stream->sink == &output->sinks[0]) {
		err = pty_open(ends);
		stream->pty = !err;
		if (!err || !output->pty_optional)
			return err;
		/* all can be in use by others */
		report_warning("no pseudo-terminal for the tasks' output: %s: what a task has not written when it is killed is lost",
			       strerror(-err));
		output->pty_failed = true;
	}
	return pipe2(ends, O_CLOEXEC) < 0 ? -errno : 0;
}

static int stream_open(struct stream *stream, unsigned int rank, int *write_end)
{
	int ends[2], err;

	err = stream_create(stream, ends);
	if (err)
		return err;
	if (stream->sink->broken) {
		/* like our own: a pipe without a reader */
		close(ends[0]);
		*write_end = ends[1];
		return 0;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);	/* our end only */
	if (stream->pty)
		stream->pty_end = fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	stream->event = (struct event){ .fd = ends[0], .ready = stream_ready };
	tagger_init(&stream->tagger, rank);
	err = loop_watch(&stream->output->streams_loop, &stream->event, EPOLLIN);
	if (err) {
		close(ends[0]);
		close(ends[1]);
		stream_release(stream);
		stream->event.fd = -1;
		return err;
	}
	stream->output->open_streams++;
	*write_end = ends[1];
	return 0;
}

int output_attach(struct output *output, unsigned int rank, int fds[static 2])
{
	int err;

	err = stream_open(&output->streams[2 * rank], rank, &fds[0]);
	if (err || !output->tag)
		return err;
	err = stream_open(&output->streams[2 * rank + 1], rank, &fds[1]);
	if (err)
		close(fds[0]);
	return err;
}

/* ---- open and close ---- */

static void sink_open(struct output *output, struct sink *sink, int fd)
{
	*sink = (struct sink){ .output = output };
	outlet_open(&sink->outlet, fd);
	sink->event = (struct event){ .fd = fd, .ready = sink_ready };
	sink->pollable = loop_watch(output->loop, &sink->event, EPOLLOUT) != -EPERM;
	loop_forget(output->loop, &sink->event);
}

int output_open(struct output *output, struct loop *loop, const struct options *opt)
{
	unsigned int i;
	int err;

	*output = (struct output){
		.loop = loop, .nr_streams = 2 * opt->tasks,
		.tag = opt->tag_output, .pty = pty_wanted(opt),
		.pty_optional = opt->pty == PTY_AUTO,
	};
	if (!output->tag && !output->pty)
		return 0;
	err = loop_open(&output->streams_loop);
	if (err)
		return err;
	output->streams = calloc(output->nr_streams, sizeof(*output->streams));
	if (!output->streams)
		return -ENOMEM;
	for (i = 0; i < output->nr_streams; i++) {
		output->streams[i].output = output;
		output->streams[i].sink = &output->sinks[i % 2];
		output->streams[i].event.fd = -1;
		output->streams[i].queued = UINT_MAX;
		output->streams[i].pty_end = -1;
	}
	for (i = 0; i < 2; i++)
		sink_open(output, &output->sinks[i], STDOUT_FILENO + i);
	return loop_watch(loop, &output->streams_loop.self, EPOLLIN);
}

void output_close(struct output *output)
{
	unsigned int i;

	if (!output->streams)
		return;
	for (i = 0; i < output->nr_streams; i++)
		stream_close(&output->streams[i]);
	for (i = 0; i < 2; i++) {
		buffer_free(&output->sinks[i].queue);
		outlet_close(&output->sinks[i].outlet);
	}
	free(output->streams);
	loop_close(&output->streams_loop);
}

void output_tasks_ended(struct output *output)
{
	unsigned int i;

	for (i = 0; i < output->nr_streams; i++)
		stream_release(&output->streams[i]);
}

/* Only what the tasks left in their pipes is still read: at most what those hold. */
void output_finish_reading(struct output *output)
{
	unsigned int i;

	output->finishing = true;
	for (i = 0; i < output->nr_streams; i++) {
		struct stream *stream = &output->streams[i];

		if (stream->event.fd < 0)
			continue;
		stream->left = fcntl(stream->event.fd, F_GETPIPE_SZ);
		if (stream->left < 0)
			stream->left = PTY_HOLDS;
		if (!has_input(stream->event.fd))
			stream_finish(stream);
	}
	write_files(output);
	update_watches(output);
}

bool output_reading(const struct output *output)
{
	return output->open_streams;
}

bool output_writing(const struct output *output)
{
	return buffer_len(&output->sinks[0].queue) || buffer_len(&output->sinks[1].queue);
}
