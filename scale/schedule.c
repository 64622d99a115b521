// SPDX-License-Identifier: GPL-2.0-only
/*
 * The neighbour paper, section 3.3: messages are cut into C' segments, and N' steps send C
 * segments each, one a device.
 */
#include "saturate.h"

#include <errno.h>
#include <stdlib.h>

/* Segment @index of a message: also of one that cannot be cut into equal segments */
static uint64_t cut_at(uint64_t bytes, uint64_t index, uint64_t segments)
{
	return (unsigned __int128)bytes * index / segments;
}

/* In step i device j sends segment floor((j + iC) / N) to neighbour (j + iC) mod N */
struct scale_segment scale_segment_at(const struct scale_exchange *x, uint64_t message_bytes,
				      uint64_t step, uint64_t device)
{
	const uint64_t segments = scale_reduced_devices(x);
	const uint64_t index = device + step * x->devices;
	struct scale_segment s = { .step = step, .device = device };

	s.segment = index / x->neighbours;
	s.neighbour = index % x->neighbours;
	s.offset = cut_at(message_bytes, s.segment, segments);
	s.bytes = cut_at(message_bytes, s.segment + 1, segments) - s.offset;
	return s;
}

/**
 * struct count - what scale_schedule_check() counts
 * @device_bytes:	by device
 * @last_step:		by neighbour: 1 + the last step that sent to it
 * @sent:		by neighbour and segment: how often
 */
struct count {
	uint64_t *device_bytes;
	uint64_t *last_step;
	uint8_t *sent;
};

static void count_segment(const struct scale_exchange *x, struct count *count,
			  const struct scale_segment *s, struct scale_schedule_check *result)
{
	const uint64_t segments = scale_reduced_devices(x);

	result->segments++;
	count->device_bytes[s->device] += s->bytes;
	result->collisions += count->last_step[s->neighbour] == s->step + 1;
	count->last_step[s->neighbour] = s->step + 1;
	if (!result->whole)
		return;
	result->repeated += count->sent[s->neighbour * segments + s->segment] > 0;
	count->sent[s->neighbour * segments + s->segment] = 1;
}

static void add_up(const struct scale_exchange *x, const struct count *count,
		   struct scale_schedule_check *result)
{
	const uint64_t all = result->whole ? x->neighbours * scale_reduced_devices(x) : 0;
	uint64_t i;

	result->least_bytes = UINT64_MAX;
	for (i = 0; i < x->devices; i++) {
		if (count->device_bytes[i] < result->least_bytes)
			result->least_bytes = count->device_bytes[i];
		if (count->device_bytes[i] > result->most_bytes)
			result->most_bytes = count->device_bytes[i];
	}
	for (i = 0; i < all; i++)
		result->missing += !count->sent[i];
}

/* The steps that can be looked at in a few milliseconds; 0: not even one */
static uint64_t steps_to_check(const struct scale_exchange *x)
{
	const uint64_t steps = scale_reduced_neighbours(x);
	const uint64_t fit = SCALE_CHECK_SEGMENTS / x->devices;

	return x->neighbours > SCALE_CHECK_SEGMENTS ? 0 : steps < fit ? steps : fit;
}

int scale_schedule_check(const struct scale_exchange *x, uint64_t message_bytes,
			 scale_schedule_fn *at, struct scale_schedule_check *result)
{
	const uint64_t steps = steps_to_check(x);
	struct scale_segment s;
	struct count count;
	int err = -ENOMEM;
	uint64_t i, j;

	*result = (struct scale_schedule_check){ 0 };
	if (!steps)
		return 0;
	result->whole = steps == scale_reduced_neighbours(x);
	count.device_bytes = calloc(x->devices, sizeof(*count.device_bytes));
	count.last_step = calloc(x->neighbours, sizeof(*count.last_step));
	count.sent = calloc(result->whole ? x->neighbours : 1, scale_reduced_devices(x));
	if (count.device_bytes && count.last_step && count.sent) {
		for (i = 0; i < steps; i++)
			for (j = 0; j < x->devices; j++) {
				s = at(x, message_bytes, i, j);
				count_segment(x, &count, &s, result);
			}
		add_up(x, &count, result);
		err = 0;
	}
	free(count.device_bytes);
	free(count.last_step);
	free(count.sent);
	return err;
}
