// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * r77, section 3.3 and figure 6 of the paper: the receiver thread exchanges pages itself, without a
 * queue and without a buffer, and the communication thread only asks for them. The numbers are
 * those of the paper's list.
 *
 * There the threads are suspended when the header of an answer has come, and while the page is
 * received into the program's memory. Here too: the memory into which it is received becomes the
 * program's by UFFDIO_MOVE, without a copy (from Linux 6.8 on).
 */
#include "far.h"
#include "protocol.h"

/* (3) and (4) */
static bool communicate(void)
{
	uint64_t n;

	if (!far_protocol_take_internal(&n))
		return false;
	far_protocol_ask(n);
	return true;
}

/* (5) to (11) */
static bool receive(void)
{
	uint64_t n;
	int err;

	if (!far_protocol_take_asked(&n))
		return false;
	far_protocol_stamp(n, FAR_RECEIVED);
	far_protocol_stamp(n, FAR_TO_PLACE);
	far_suspend();
	if (far_exchange_is_away(n))
		far_exchange_get(n);
	err = far_exchange_place(n);
	far_resume();
	far_exchange_end(n, err);
	return true;
}

const struct far_protocol far_protocol_r77 = {
	.name = "r77",
	.fetch_slots = 4,
	.out_slots = 4,
	.communicate = communicate,
	.receive = receive,
};
