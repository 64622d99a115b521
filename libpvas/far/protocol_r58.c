// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * r58, section 3.1 and figure 2 of the paper: a receiver thread takes pages into buffers, and puts
 * a request to place each in the external queue. All else is the communication thread's, which
 * looks at its two queues in turn. The numbers are those of the paper's list.
 */
#include "far.h"
#include "protocol.h"

static bool turn;	/* the internal queue's */

/* (7) to (13) */
static void place(uint64_t n)
{
	int err;

	far_protocol_stamp(n, FAR_TO_PLACE);
	far_suspend();
	err = far_exchange_place(n);
	far_resume();
	far_exchange_end(n, err);
}

/*
 * (3) and (4). Only if a buffer is free for each page that has been asked for: this thread empties
 * them, so it would wait for itself.
 */
static bool serve_internal(void)
{
	uint64_t n;

	if (far.asked.count >= far.free_fetch.count || !far_protocol_take_internal(&n))
		return false;
	if (far_exchange_is_away(n)) {
		far_protocol_ask(n);
		return true;
	}
	/* Never written, or still in memory: no server has it. */
	far_protocol_stamp(n, FAR_RECEIVED);
	place(n);
	return true;
}

static bool serve_external(void)
{
	uint64_t n;

	if (!far_protocol_take_external(&n))
		return false;
	place(n);
	return true;
}

static bool communicate(void)
{
	turn = !turn;
	return turn ? serve_internal() || serve_external() : serve_external() || serve_internal();
}

/* (6) */
static bool receive(void)
{
	uint64_t n;

	if (!far_protocol_take_asked(&n))
		return false;
	far_exchange_get(n);
	far_protocol_stamp(n, FAR_RECEIVED);
	far_protocol_add_external(n);
	return true;
}

const struct far_protocol far_protocol_r58 = {
	.name = "r58",
	.fetch_slots = 64,
	.out_slots = 4,
	.late_copy = true,
	.communicate = communicate,
	.receive = receive,
};
