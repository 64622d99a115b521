// SPDX-License-Identifier: GPL-2.0-only
/* pvas-scale neighbour: times by the neighbour paper's model, for each message size. */
#include "exchange.h"

#include <inttypes.h>

#define DEFAULT_NEIGHBOURS	6
#define DEFAULT_DEVICES		4
#define DEFAULT_BYTES		(8UL << 20)
#define DEFAULT_LATENCY_US	1
#define DEFAULT_BYTES_PER_US	5000

struct exchange_times exchange_times(const struct options *o, uint64_t bytes)
{
	const struct scale_exchange *x = &o->exchange;
	struct exchange_times t;

	t.previous_us = scale_neq1_previous_us(x, &o->link, bytes);
	t.proposed_us = scale_neq2_proposed_us(x, &o->link, bytes);
	t.previous_rate = scale_exchange_bytes_per_us(x, bytes, t.previous_us);
	t.proposed_rate = scale_exchange_bytes_per_us(x, bytes, t.proposed_us);
	return t;
}

static void print_ratio(const struct scale_exchange *x)
{
	const struct scale_fraction ratio = scale_neq3_ratio(x), same = scale_neq8_ratio(x);

	printf("steps: %" PRIu64 " previous, %" PRIu64 " proposed of C' = %" PRIu64 " segments\n",
	       scale_previous_steps(x), scale_reduced_neighbours(x), scale_reduced_devices(x));
	printf("ratio for long messages: %" PRIu64 "/%" PRIu64 " = %.2f (3), %" PRIu64 "/%" PRIu64
	       " = %.2f (8)\n", ratio.over, ratio.under, (double)ratio.over / ratio.under,
	       same.over, same.under, (double)same.over / same.under);
}

static void print_crossing(const struct options *o)
{
	const double bytes = scale_crossing_bytes(&o->exchange, &o->link);

	if (bytes > 0)
		printf("the proposed one is faster from %.0f bytes on\n", bytes);
	else
		puts("the lines do not cross");
}

static void print_text(const struct options *o, const struct scale_schedule_check *check)
{
	struct scale_notes notes = { 0 };
	struct exchange_times t;
	unsigned int i;

	printf("N = %" PRIu64 " neighbours, C = %" PRIu64 " devices (k = %" PRIu64
	       "), L = %g us, B = %g GB/s\n", o->exchange.neighbours, o->exchange.devices,
	       scale_common_divisor(&o->exchange), o->link.latency_us, o->link.bytes_per_us / 1e3);
	print_ratio(&o->exchange);
	print_crossing(o);
	printf("\n%20s %15s %9s %15s %9s %6s\n", "bytes", "previous us", "GB/s", "proposed us",
	       "GB/s", "ratio");
	for (i = 0; i < o->bytes.nr; i++) {
		t = exchange_times(o, o->bytes.value[i]);
		printf("%20" PRIu64 " %15.2f %9.3f %15.2f %9.3f %6.2f\n", o->bytes.value[i],
		       t.previous_us, t.previous_rate / 1e3, t.proposed_us, t.proposed_rate / 1e3,
		       t.previous_us / t.proposed_us);
	}
	putchar('\n');
	schedule_print_check(o, check);
	scale_neighbour_notes(&notes, &o->exchange);
	print_notes(&notes);
}

static void print_csv(const struct options *o)
{
	struct exchange_times t;
	unsigned int i;

	puts("neighbours,devices,bytes,previous_us,proposed_us,previous_bytes_per_us,"
	     "proposed_bytes_per_us");
	for (i = 0; i < o->bytes.nr; i++) {
		t = exchange_times(o, o->bytes.value[i]);
		printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.9g,%.9g,%.9g,%.9g\n",
		       o->exchange.neighbours, o->exchange.devices, o->bytes.value[i],
		       t.previous_us, t.proposed_us, t.previous_rate, t.proposed_rate);
	}
}

static void print_json(const struct options *o, const struct scale_schedule_check *check)
{
	const struct scale_fraction ratio = scale_neq3_ratio(&o->exchange);
	struct scale_notes notes = { 0 };
	struct exchange_times t;
	unsigned int i;

	printf("{\"schema\":1,\"command\":\"neighbour\",\"neighbours\":%" PRIu64 ",\"devices\":%"
	       PRIu64 ",\"latency_us\":%.9g,\"bytes_per_us\":%.9g,\"previous_steps\":%" PRIu64
	       ",\"proposed_steps\":%" PRIu64 ",\"segments\":%" PRIu64 ",\"ratio\":[%" PRIu64 ",%"
	       PRIu64 "],\"crossing_bytes\":", o->exchange.neighbours, o->exchange.devices,
	       o->link.latency_us, o->link.bytes_per_us, scale_previous_steps(&o->exchange),
	       scale_reduced_neighbours(&o->exchange), scale_reduced_devices(&o->exchange),
	       ratio.over, ratio.under);
	if (scale_reduced_devices(&o->exchange) > 1)
		printf("%.9g", scale_crossing_bytes(&o->exchange, &o->link));
	else
		printf("null");
	printf(",\"messages\":[");
	for (i = 0; i < o->bytes.nr; i++) {
		t = exchange_times(o, o->bytes.value[i]);
		printf("%s{\"bytes\":%" PRIu64 ",\"previous_us\":%.9g,\"proposed_us\":%.9g,"
		       "\"previous_bytes_per_us\":%.9g,\"proposed_bytes_per_us\":%.9g}",
		       i ? "," : "", o->bytes.value[i], t.previous_us, t.proposed_us,
		       t.previous_rate, t.proposed_rate);
	}
	printf("],");
	schedule_print_json(o, check);
	scale_neighbour_notes(&notes, &o->exchange);
	print_notes_json(&notes);
	puts("}");
}

/* Figure 6 */
static int plot(const struct options *o)
{
	struct exchange_times t;
	unsigned int i, k;
	FILE *out;
	int status;

	status = plot_begin(o->plot, "Neighbour exchange", "bytes of a message", "bytes a second",
			    &out);
	if (status)
		return status;
	fputs("plot '-' with linespoints title 'previous', "
	      "'-' with linespoints title 'proposed'\n", out);
	for (k = 0; k < 2; k++) {
		for (i = 0; i < o->bytes.nr; i++) {
			t = exchange_times(o, o->bytes.value[i]);
			fprintf(out, "%" PRIu64 " %.9g\n", o->bytes.value[i],
				1e6 * (k ? t.proposed_rate : t.previous_rate));
		}
		fputs("e\n", out);
	}
	return plot_end(out, o->plot);
}

/* The defaults are those of figure 6. */
static void set_defaults(struct options *o)
{
	if (!options_given(o, "neighbours"))
		o->exchange.neighbours = DEFAULT_NEIGHBOURS;
	if (!options_given(o, "devices"))
		o->exchange.devices = DEFAULT_DEVICES;
	if (!o->bytes.nr)
		o->bytes = (struct list){ .nr = 1, .value = { DEFAULT_BYTES } };
	if (!options_given(o, "latency"))
		o->link.latency_us = DEFAULT_LATENCY_US;
	if (!options_given(o, "bandwidth"))
		o->link.bytes_per_us = DEFAULT_BYTES_PER_US;
}

static int check(const struct options *o)
{
	const struct scale_exchange *x = &o->exchange;
	uint64_t product;
	unsigned int i;

	if (x->devices < 2 || x->devices >= x->neighbours)
		return fail_usage("%" PRIu64 " neighbours, %" PRIu64 " devices: the algorithm needs "
				  "N > C > 1", x->neighbours, x->devices);
	if (__builtin_mul_overflow(x->neighbours, x->devices, &product))
		return fail_usage("%" PRIu64 " neighbours, %" PRIu64 " devices: their product does "
				  "not fit into 64 bits", x->neighbours, x->devices);
	for (i = 0; i < o->bytes.nr; i++)
		if (__builtin_mul_overflow(x->neighbours, o->bytes.value[i], &product))
			return fail_usage("%" PRIu64 " neighbours, %" PRIu64 " bytes: their product "
					  "does not fit into 64 bits", x->neighbours,
					  o->bytes.value[i]);
	if (o->plot && o->bytes.nr < 2)
		return fail_usage("--plot needs several sizes (--bytes 1K..8M)");
	return 0;
}

int exchange_command(const struct options *given)
{
	struct scale_schedule_check result;
	struct options o = *given;
	int status;

	set_defaults(&o);
	status = check(&o) ?: schedule_choose(&o);
	if (status)
		return status;
	if (o.plot)
		return plot(&o);
	if (scale_schedule_check(&o.exchange, o.bytes.value[o.bytes.nr - 1], scale_segment_at,
				 &result))
		return fail("no memory");
	if (o.format == JSON)
		print_json(&o, &result);
	else if (o.format == CSV && !o.schedule)
		print_csv(&o);
	else if (o.format == CSV)
		schedule_print_csv(&o);
	else
		print_text(&o, &result);
	return 0;
}
