// SPDX-License-Identifier: GPL-2.0-only
/* --stdin all: copy pvasrun's standard input to every task. */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

static void end(struct input *input)
{
	input->ended = true;
	loop_forget(input->loop, &input->feeding.event);
	feeder_finish(&input->feeder);
}

static void lose(struct input *input)
{
	report_error("the rest of standard input is lost: the process that passes it to the tasks has ended");
	input->failed = true;
	end(input);
}

static void read_chunk(struct input *input)
{
	static char chunk[FEEDER_MAX];	/* the stack may be that small */
	ssize_t n;

	n = inlet_read(&input->inlet, chunk, sizeof(chunk));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) {
		report_error("cannot read standard input, which ends here for the tasks: %s",
			     strerror(errno));
		input->failed = true;
	}
	if (n > 0 && !feeder_send(&input->feeder, chunk, (size_t)n))
		input->pending = true;
	else if (n > 0)
		lose(input);
	else
		end(input);
}

/* Watch standard input if the next chunk is due; read regular files at once. */
static void read_or_watch(struct input *input)
{
	if (!input->begun)	/* tasks are still being started */
		return;
	if (!input->ended && input->feeder.dead)
		lose(input);
	if (!input->ended && feeder_has_ended(&input->feeder))
		end(input);
	while (!input->pollable && !input->ended && !input->pending)
		read_chunk(input);
	if (!input->pollable)
		return;
	if (input->pending || input->ended)
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

static void feeder_ready(struct event *event, uint32_t what)
{
	struct input *input = ((struct feeding *)event)->input;

	(void)what;
	if (!feeder_hear(&input->feeder))
		return;
	input->pending = false;
	read_or_watch(input);
}

int input_open(struct input *input, struct loop *loop, unsigned int tasks)
{
	int err;

	*input = (struct input){ .loop = loop, .feeder.child = FILE_CHILD_NONE };
	err = inlet_open(&input->inlet, STDIN_FILENO);
	err = err ? err : feeder_begin(&input->feeder, tasks);
	if (err)
		return err;
	input->event.fd = inlet_watched(&input->inlet);
	input->event.ready = stdin_ready;
	input->feeding.input = input;
	input->feeding.event = (struct event){
		.fd = input->feeder.child.end, .ready = feeder_ready,
	};
	return loop_watch(loop, &input->feeding.event, EPOLLIN);
}

void input_close(struct input *input)
{
	if (!input->loop)
		return;
	loop_forget(input->loop, &input->event);
	loop_forget(input->loop, &input->feeding.event);
	feeder_close(&input->feeder);
	inlet_close(&input->inlet);
	input->loop = NULL;
}

int input_attach(struct input *input, int *fd)
{
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	err = feeder_add(&input->feeder, ends[1]);
	close(ends[1]);
	if (err)
		close(ends[0]);
	else
		*fd = ends[0];
	return err;
}

void input_rank_ended(const struct input *input, unsigned int rank)
{
	feeder_end(&input->feeder, rank);
}

void input_begin(struct input *input)
{
	input->begun = true;
	input->pollable = loop_watch(input->loop, &input->event, EPOLLIN) != -EPERM;
	read_or_watch(input);
}
