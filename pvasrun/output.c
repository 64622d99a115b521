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
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "pty.h"
#include "report.h"

#define QUEUE_MAX	(256 << 10)
#define PACKETS		16	/* at once: there are signals to handle, too */
#define STUCK_MS	3000

/* ---- sinks ---- */

static void stream_close(struct output *output, struct stream *stream)
{
	if (!stream->open)
		return;
	stream->open = false;
	output->open_streams--;
	buffer_free(&stream->tagger.line);
}

/* @stream, a pseudo-terminal, has written to a reader that is gone. */
static void stream_hang_up(struct output *output, struct stream *stream)
{
	if (stream->hung_up)
		return;
	stream->hung_up = relay_hang_up(&output->relay, (unsigned int)(stream - output->streams));
	if (stream->hung_up)
		job_signal(output->job, stream->rank, SIGPIPE);
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
	relay_hang_up_pipes(&output->relay, (unsigned int)(sink - output->sinks));
	for (i = 0; i < output->nr_streams; i++) {
		struct stream *stream = &output->streams[i];

		if (stream->sink == sink && stream->open && stream->pty &&
		    stream->queued > sink->written)
			stream_hang_up(output, stream);
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

static int watch_relay(struct output *output)
{
	output->stuck_at = now_ms() + STUCK_MS;
	return loop_watch(output->loop, &output->event, EPOLLIN);
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
		loop_forget(output->loop, &output->event);
	else if (!output->event.watched && output->event.fd >= 0)
		watch_relay(output);
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

static void check_added(struct output *output, int err)
{
	if (!err)
		return;
	report_error("output of a task was lost: %s", strerror(-err));
	output->failed = true;
}

static void stream_finish(struct output *output, struct stream *stream)
{
	if (!stream->sink->broken)
		check_added(output, tagger_finish(&stream->tagger, &stream->sink->queue));
	stream_close(output, stream);
}

static void stream_take(struct output *output, struct stream *stream, const char *bytes,
			size_t len)
{
	struct buffer *queue = &stream->sink->queue;
	const size_t before = buffer_len(queue);

	if (output->tag)
		check_added(output, tagger_feed(&stream->tagger, bytes, len, queue));
	else
		check_added(output, buffer_add(queue, bytes, len));
	if (buffer_len(queue) > before)
		stream->queued = stream->sink->written + buffer_len(queue);
}

/* No more comes. */
static void end_reading(struct output *output)
{
	unsigned int i;

	for (i = 0; i < output->nr_streams; i++)
		if (output->streams[i].open)
			stream_finish(output, &output->streams[i]);
	loop_forget(output->loop, &output->event);
	output->event.fd = -1;
}

static void stream_lost(struct output *output, const struct stream *stream)
{
	if (stream->sink->broken)
		return;
	report_error("output of rank %u is lost: a program has discarded it in the rank's terminal, or set another line discipline there (see --pty never)",
		     stream->rank);
	output->failed = true;
}

/* False: there are no next bytes, nor the end of a stream. */
static bool take_packet(struct output *output)
{
	static char bytes[RELAY_MAX];	/* the stack may be that small */
	struct stream *stream;
	unsigned int index;
	ssize_t n;

	n = relay_read(&output->relay, &index, bytes);
	if (n < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return false;
		if (errno == ENODATA) {
			stream_lost(output, &output->streams[index]);
			return true;
		}
		if (output->open_streams) {
			report_error("the tasks' output is lost: the process that reads it has ended");
			output->failed = true;
		}
		end_reading(output);
		return false;
	}
	stream = &output->streams[index];
	if (!n)
		stream_finish(output, stream);
	else if (!stream->sink->broken)
		stream_take(output, stream, bytes, (size_t)n);
	else if (stream->pty)
		stream_hang_up(output, stream);
	return true;
}

bool output_is_full(const struct output *output)
{
	return buffer_len(&output->sinks[0].queue) > QUEUE_MAX ||
	       buffer_len(&output->sinks[1].queue) > QUEUE_MAX;
}

static void relay_ready(struct event *event, uint32_t what)
{
	struct output *output = (struct output *)event;
	int i;

	(void)what;
	for (i = 0; i < PACKETS && !output_is_full(output) && take_packet(output); i++)
		write_files(output);
	/* A stream's end can be the rest of a line. */
	write_files(output);
	output->stuck_at = now_ms() + STUCK_MS;
	update_watches(output);
}

void output_text(struct output *output, const char *text, size_t len)
{
	if (output->sinks[0].broken)
		return;
	check_added(output, buffer_add(&output->sinks[0].queue, text, len));
	write_files(output);
	update_watches(output);
}

/* @ends: to read from, and for the task to write to */
static int stream_create(struct output *output, struct stream *stream, int ends[static 2])
{
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

static int stream_open(struct output *output, struct stream *stream, int *write_end)
{
	int ends[2], err;

	err = stream_create(output, stream, ends);
	if (err)
		return err;
	/* A broken one is like our own: a pipe without a reader. */
	if (!stream->sink->broken) {
		err = relay_add(&output->relay, (unsigned int)(stream - output->streams), ends[0],
				stream->pty ? ends[1] : -1);
		if (!err) {
			tagger_init(&stream->tagger, stream->rank);
			stream->open = true;
			output->open_streams++;
		}
	}
	close(ends[0]);
	if (err)
		close(ends[1]);
	else
		*write_end = ends[1];
	return err;
}

int output_attach(struct output *output, unsigned int rank, int fds[static 2])
{
	int err;

	err = stream_open(output, &output->streams[2 * rank], &fds[0]);
	if (err || !output->tag)
		return err;
	err = stream_open(output, &output->streams[2 * rank + 1], &fds[1]);
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
		.pty_optional = opt->pty == PTY_AUTO, .relay = RELAY_NONE,
	};
	if (!output->tag && !output->pty)
		return 0;
	err = relay_begin(&output->relay, output->nr_streams, loop);
	if (err)
		return err;
	output->event = (struct event){ .fd = output->relay.child.end, .ready = relay_ready };
	output->streams = calloc(output->nr_streams, sizeof(*output->streams));
	if (!output->streams)
		return -ENOMEM;
	for (i = 0; i < output->nr_streams; i++) {
		output->streams[i].sink = &output->sinks[i % 2];
		output->streams[i].rank = i / 2;
	}
	sink_open(output, &output->sinks[0], STDOUT_FILENO, NULL);
	sink_open(output, &output->sinks[1], STDERR_FILENO, &output->sinks[0]);
	return watch_relay(output);
}

void output_close(struct output *output)
{
	unsigned int i;

	if (!output->streams)
		return;
	for (i = 0; i < output->nr_streams; i++)
		stream_close(output, &output->streams[i]);
	for (i = 0; i < 2; i++) {
		buffer_free(&output->sinks[i].queue);
		outlet_close(&output->sinks[i].outlet);
	}
	loop_forget(output->loop, &output->event);
	relay_close(&output->relay);
	free(output->streams);
	output->streams = NULL;
}

void output_begin(struct output *output)
{
	if (output->streams)
		relay_start(&output->relay);
}

void output_tasks_ended(struct output *output)
{
	relay_tasks_ended(&output->relay);
}

/* Only what the tasks left in their pipes is still read: at most what those hold. */
void output_finish_reading(struct output *output)
{
	output->finishing = true;
	output->stuck_at = now_ms() + STUCK_MS;
	relay_finish(&output->relay);
}

int64_t output_stuck_at(const struct output *output)
{
	return output->finishing && output->event.watched && output->open_streams ?
	       output->stuck_at : -1;
}

void output_give_up(struct output *output)
{
	report_error("a process that a task has left holds up the reading of the tasks' output: what is unread is lost");
	output->failed = true;
	end_reading(output);
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
