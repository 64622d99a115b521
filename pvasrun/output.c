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
#include <signal.h>
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

/* @stream, a pseudo-terminal, has written to a reader that is gone. */
static void stream_hang_up(struct stream *stream)
{
	job_signal(stream->output->job, stream->rank, SIGPIPE);
	stream_close(stream);
}

/*
 * A task that writes from now on gets SIGPIPE, as if it wrote to the reader itself. Writing to
 * a pseudo-terminal whose other end is closed fails with EIO instead: so these stay open until
 * bytes come, and pvasrun sends that signal. Some may have come already.
 */
static void sink_break(struct sink *sink)
{
	struct output *output = sink->output;
	unsigned int i;

	sink->broken = true;
	buffer_free(&sink->queue);
	for (i = 0; i < output->nr_streams; i++) {
		struct stream *stream = &output->streams[i];

		if (stream->sink != sink || stream->event.fd < 0)
			continue;
		if (!stream->pty)
			stream_close(stream);
		else if (stream->queued > sink->written)
			stream_hang_up(stream);
	}
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

static void sink_failed(struct sink *sink, int err)
{
	report_error("cannot write the tasks' output: %s", strerror(err));
	sink->output->failed = true;
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
		if (errno != EPIPE)
			sink_failed(sink, errno);
		sink->output->midline = NULL;
		sink_break(sink);
		return;
	}
	ends = n && buffer_head(queue)[n - 1] == '\n';
	sink->output->midline = ends ? NULL : sink;
	buffer_take(queue, n);
	sink->written += (uint64_t)n;
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

static void stream_take(struct stream *stream, const char *bytes, size_t len)
{
	struct buffer *queue = &stream->sink->queue;
	const size_t before = buffer_len(queue);

	if (stream->output->tag)
		check_added(tagger_feed(&stream->tagger, bytes, len, queue));
	else
		check_added(buffer_add(queue, bytes, len));
	if (buffer_len(queue) > before)
		stream->queued = stream->sink->written + buffer_len(queue);
}

static void stream_ready(struct event *event, uint32_t what)
{
	struct stream *stream = (struct stream *)event;
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
		stream_take(stream, bytes, (size_t)n);
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

static void sink_open(struct output *output, struct sink *sink, int fd, struct sink *other)
{
	*sink = (struct sink){ .output = output };
	outlet_open(&sink->outlet, fd, other ? &other->outlet : NULL);
	sink->event = (struct event){ .fd = outlet_watched(&sink->outlet), .ready = sink_ready };
	sink->pollable = loop_watch(output->loop, &sink->event, EPOLLOUT) != -EPERM;
	loop_forget(output->loop, &sink->event);
}

int output_open(struct output *output, struct loop *loop, struct job *job)
{
	const struct options *opt = job->opt;
	unsigned int i;
	int err;

	*output = (struct output){
		.loop = loop, .job = job, .nr_streams = 2 * opt->tasks,
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
		output->streams[i].rank = i / 2;
		output->streams[i].event.fd = -1;
		output->streams[i].pty_end = -1;
	}
	sink_open(output, &output->sinks[0], STDOUT_FILENO, NULL);
	sink_open(output, &output->sinks[1], STDERR_FILENO, &output->sinks[0]);
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

/* Has a child written all, too, where one writes? The last bytes are in the queue before. */
static bool sink_has_finished(struct sink *sink)
{
	int err;

	if (sink->broken)
		return true;
	if (!sink->finished)
		outlet_finish(&sink->outlet);
	sink->finished = true;
	err = outlet_finished(&sink->outlet);
	if (err < 0) {
		if (!sink->event.watched)
			loop_watch(sink->output->loop, &sink->event, EPOLLRDHUP);
		return false;
	}
	if (err)
		sink_failed(sink, err);
	sink->broken = true;
	return true;
}

bool output_writing(struct output *output)
{
	int i, unfinished = 0;

	if (buffer_len(&output->sinks[0].queue) || buffer_len(&output->sinks[1].queue))
		return true;
	for (i = 0; i < 2 && !output->open_streams; i++)
		unfinished += !sink_has_finished(&output->sinks[i]);
	return unfinished;
}
