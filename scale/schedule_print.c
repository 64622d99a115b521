// SPDX-License-Identifier: GPL-2.0-only
/* pvas-scale neighbour --schedule: the steps, and whether the schedule is as promised. */
#include "exchange.h"

#include <inttypes.h>

static uint64_t message_bytes(const struct options *o)
{
	return o->bytes.value[o->bytes.nr - 1];
}

int schedule_choose(struct options *o)
{
	const uint64_t steps = scale_reduced_neighbours(&o->exchange);

	if (!o->schedule)
		return 0;
	if (o->plot)
		return fail_usage("--schedule does not go with --plot");
	if (o->last == UINT64_MAX)
		o->last = steps - 1;
	if (o->last >= steps)
		return fail_usage("--schedule: there is no step %" PRIu64 " (0 to %" PRIu64 ")",
				  o->last, steps - 1);
	if (o->last - o->first >= PRINTED_SEGMENTS / o->exchange.devices)
		return fail_usage("--schedule: more than %u segments (choose some steps: 0..9)",
				  PRINTED_SEGMENTS);
	return 0;
}

static bool is_equal(const struct options *o, const struct scale_schedule_check *check)
{
	/* Segments of a message that C' does not divide differ by a byte. */
	return check->most_bytes - check->least_bytes <=
	       (message_bytes(o) % scale_reduced_devices(&o->exchange) ?
		scale_reduced_neighbours(&o->exchange) : 0);
}

static void print_steps(const struct options *o)
{
	struct scale_segment s;
	uint64_t i, j;

	printf("%8s %8s %8s %11s %15s %12s\n", "step", "device", "segment", "destination", "offset",
	       "bytes");
	for (i = o->first; i <= o->last; i++)
		for (j = 0; j < o->exchange.devices; j++) {
			s = scale_segment_at(&o->exchange, message_bytes(o), i, j);
			printf("%8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %11" PRIu64 " %15" PRIu64
			       " %12" PRIu64 "\n", s.step, s.device, s.segment, s.neighbour,
			       s.offset, s.bytes);
		}
	putchar('\n');
}

void schedule_print_check(const struct options *o, const struct scale_schedule_check *check)
{
	if (o->schedule)
		print_steps(o);
	if (!check->segments) {
		printf("schedule not checked: more than %u segments in a step\n",
		       SCALE_CHECK_SEGMENTS);
		return;
	}
	printf("schedule of %" PRIu64 " bytes, %" PRIu64 " segments checked%s: %" PRIu64 " to %"
	       PRIu64 " bytes a device (%s), %" PRIu64 " collisions", message_bytes(o),
	       check->segments, check->whole ? "" : " (the first ones)", check->least_bytes,
	       check->most_bytes, is_equal(o, check) ? "equal" : "NOT EQUAL", check->collisions);
	if (check->whole)
		printf(", %" PRIu64 " missing, %" PRIu64 " repeated", check->missing,
		       check->repeated);
	putchar('\n');
}

void schedule_print_json(const struct options *o, const struct scale_schedule_check *check)
{
	struct scale_segment s;
	uint64_t i, j;

	printf("\"check\":{\"segments\":%" PRIu64 ",\"whole\":%s,\"least_bytes\":%" PRIu64
	       ",\"most_bytes\":%" PRIu64 ",\"collisions\":%" PRIu64 ",\"missing\":%" PRIu64
	       ",\"repeated\":%" PRIu64 "},", check->segments, check->whole ? "true" : "false",
	       check->least_bytes, check->most_bytes, check->collisions, check->missing,
	       check->repeated);
	if (!o->schedule)
		return;
	printf("\"schedule\":[");
	for (i = o->first; i <= o->last; i++)
		for (j = 0; j < o->exchange.devices; j++) {
			s = scale_segment_at(&o->exchange, message_bytes(o), i, j);
			printf("%s{\"step\":%" PRIu64 ",\"device\":%" PRIu64 ",\"segment\":%" PRIu64
			       ",\"destination\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"bytes\":%"
			       PRIu64 "}", i > o->first || j ? "," : "", s.step, s.device,
			       s.segment, s.neighbour, s.offset, s.bytes);
		}
	printf("],");
}

void schedule_print_csv(const struct options *o)
{
	struct scale_segment s;
	uint64_t i, j;

	puts("step,device,segment,destination,offset,bytes");
	for (i = o->first; i <= o->last; i++)
		for (j = 0; j < o->exchange.devices; j++) {
			s = scale_segment_at(&o->exchange, message_bytes(o), i, j);
			printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
			       "\n", s.step, s.device, s.segment, s.neighbour, s.offset, s.bytes);
		}
}
