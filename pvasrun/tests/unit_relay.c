// SPDX-License-Identifier: GPL-2.0-only
/* The child that reads tasks' output: orders for which there is no room are given later. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "../relay.h"
#include "clock.h"
#include "unit.h"

#define STREAMS		4
#define PATIENCE_MS	30000

/* The next bytes of any stream: their number, 0: it has ended; -1: nothing has come in time. */
static ssize_t next(struct loop *loop, struct relay *relay, char bytes[static RELAY_MAX])
{
	const int64_t until = now_ms() + PATIENCE_MS;
	unsigned int stream;
	ssize_t n;

	do {
		loop_turn(loop, 10);
		n = relay_read(relay, &stream, bytes);
	} while (n < 0 && errno == EAGAIN && now_ms() < until);
	return n;
}

/* Stopped, with as many orders as it can have; those are for a stream that it has not. */
static void stop_full(struct relay *relay)
{
	unsigned int n = 0;

	kill(relay->child.pid, SIGSTOP);
	while (relay_hang_up(relay, STREAMS - 1))
		n++;
	check(n > 0);
}

static void test_start_and_hang_up(struct loop *loop, struct relay *relay, int writer)
{
	char bytes[RELAY_MAX];

	stop_full(relay);
	relay_start(relay);
	/* It must not overtake the other. */
	check(!relay_hang_up(relay, 0));
	kill(relay->child.pid, SIGCONT);
	check(write(writer, "one", 3) == 3);
	check(next(loop, relay, bytes) == 3 && bytes[0] == 'o');

	stop_full(relay);
	relay_hang_up_pipes(relay, 1);	/* not this one */
	relay_hang_up_pipes(relay, 0);
	kill(relay->child.pid, SIGCONT);
	check(next(loop, relay, bytes) == 0);
	check(write(writer, "two", 3) < 0 && errno == EPIPE);
}

static void test_finish(struct loop *loop, struct relay *relay)
{
	char bytes[RELAY_MAX];
	int ends[2];

	check(!pipe2(ends, O_CLOEXEC));
	check(!relay_add(relay, 2, ends[0], -1));
	close(ends[0]);
	check(write(ends[1], "last", 4) == 4);
	check(next(loop, relay, bytes) == 4);
	stop_full(relay);
	relay_tasks_ended(relay);
	relay_finish(relay);
	kill(relay->child.pid, SIGCONT);
	check(next(loop, relay, bytes) == 0);	/* although a writer is left */
	check(next(loop, relay, bytes) < 0 && errno == EPIPE);
	close(ends[1]);
}

void test_relay(void)
{
	struct relay relay = RELAY_NONE;
	struct loop loop;
	int ends[2];

	signal(SIGPIPE, SIG_IGN);
	check(!loop_open(&loop) && !pipe2(ends, O_CLOEXEC));
	check(!relay_begin(&relay, STREAMS, &loop));
	check(!relay_add(&relay, 0, ends[0], -1));
	close(ends[0]);
	test_start_and_hang_up(&loop, &relay, ends[1]);
	close(ends[1]);
	test_finish(&loop, &relay);
	relay_close(&relay);
	loop_close(&loop);
}
