// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * r3, section 2 and figure 1 of the paper: the communication thread alone does all, in order. It
 * takes a request, asks the server, receives the page, suspends the program's threads, puts the
 * page in place, sends another one, and resumes and wakes them; then comes the next request.
 */
#include "far.h"
#include "protocol.h"

static bool communicate(void)
{
	uint64_t n;
	int err;

	if (!far_protocol_take_internal(&n))
		return false;
	if (far_exchange_is_away(n))
		far_exchange_get(n);
	far_protocol_stamp(n, FAR_RECEIVED);
	far_protocol_stamp(n, FAR_TO_PLACE);
	far_suspend();
	err = far_exchange_place(n);
	far_resume();
	far_exchange_end(n, err);
	return true;
}

const struct far_protocol far_protocol_r3 = {
	.name = "r3",
	.fetch_slots = 4,
	.out_slots = 4,
	.late_copy = true,
	.communicate = communicate,
};
