// SPDX-License-Identifier: GPL-2.0-only
/*
 * The neighbour paper, section 3.4 and 5: N neighbours get a message of M bytes each, through C
 * devices. N = kN' and C = kC' with k their greatest common divisor.
 */
#include "saturate.h"

uint64_t scale_common_divisor(const struct scale_exchange *x)
{
	uint64_t a = x->neighbours, b = x->devices, rest;

	while (b) {
		rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

uint64_t scale_reduced_neighbours(const struct scale_exchange *x)
{
	return x->neighbours / scale_common_divisor(x);
}

uint64_t scale_reduced_devices(const struct scale_exchange *x)
{
	return x->devices / scale_common_divisor(x);
}

/* ceil(N/C) */
uint64_t scale_previous_steps(const struct scale_exchange *x)
{
	return x->neighbours / x->devices + !!(x->neighbours % x->devices);
}

/* (1) D_prev = L ceil(N/C) + ceil(N/C) M/B */
double scale_neq1_previous_us(const struct scale_exchange *x, const struct scale_link *link,
			      uint64_t bytes)
{
	const double steps = scale_previous_steps(x);

	return link->latency_us * steps + steps * (bytes / link->bytes_per_us);
}

/* (2) D_prop = L N' + (N'/C') M/B */
double scale_neq2_proposed_us(const struct scale_exchange *x, const struct scale_link *link,
			      uint64_t bytes)
{
	const double steps = scale_reduced_neighbours(x), pieces = scale_reduced_devices(x);

	return link->latency_us * steps + steps / pieces * (bytes / link->bytes_per_us);
}

/* (4) D'_prev = 2L + 2M/B */
double scale_neq4_previous_us(const struct scale_link *link, uint64_t bytes)
{
	return 2 * link->latency_us + 2 * (bytes / link->bytes_per_us);
}

/* (5) D'_prop = 3L + (3/2)M/B */
double scale_neq5_proposed_us(const struct scale_link *link, uint64_t bytes)
{
	return 3 * link->latency_us + 1.5 * (bytes / link->bytes_per_us);
}

/* (3) ratio = (C'/N') ceil(N/C) */
struct scale_fraction scale_neq3_ratio(const struct scale_exchange *x)
{
	return (struct scale_fraction){
		.over = PRODUCT(scale_reduced_devices(x), scale_previous_steps(x)),
		.under = scale_reduced_neighbours(x),
	};
}

/* x C', with x the fraction of N/C; ceil(x) is 1 if there is one, else 0 */
static uint64_t fraction_of_devices(const struct scale_exchange *x)
{
	return scale_reduced_neighbours(x) % scale_reduced_devices(x);
}

/* (6) (C'/N') ceil(N/C - x + x): of the whole part of N/C, and of the fraction */
struct scale_fraction scale_neq6_ratio(const struct scale_exchange *x)
{
	const uint64_t whole = x->neighbours / x->devices, up = fraction_of_devices(x) ? 1 : 0;

	return (struct scale_fraction){
		.over = PRODUCT(scale_reduced_devices(x), SUM(whole, up)),
		.under = scale_reduced_neighbours(x),
	};
}

/* (7) (C'/N') (N/C - x + ceil(x)) */
struct scale_fraction scale_neq7_ratio(const struct scale_exchange *x)
{
	const uint64_t n = scale_reduced_neighbours(x), c = scale_reduced_devices(x);
	const uint64_t part = fraction_of_devices(x);

	return (struct scale_fraction){ .over = n - part + (part ? c : 0), .under = n };
}

/* (8) 1 - (C'/N')x + (C'/N')ceil(x) */
struct scale_fraction scale_neq8_ratio(const struct scale_exchange *x)
{
	const uint64_t n = scale_reduced_neighbours(x), c = scale_reduced_devices(x);
	const uint64_t loss = fraction_of_devices(x), gain = loss ? c : 0;

	return (struct scale_fraction){ .over = n + gain - loss, .under = n };
}

double scale_exchange_bytes_per_us(const struct scale_exchange *x, uint64_t bytes, double us)
{
	return (double)x->neighbours * bytes / us;
}

/* Where (1) equals (2): M = L B (N' - ceil(N/C)) / (ceil(N/C) - N'/C') */
double scale_crossing_bytes(const struct scale_exchange *x, const struct scale_link *link)
{
	const double steps = scale_previous_steps(x), reduced = scale_reduced_neighbours(x);

	if (scale_reduced_devices(x) == 1)
		return 0;
	return link->latency_us * link->bytes_per_us * (reduced - steps) /
	       (steps - reduced / scale_reduced_devices(x));
}

void scale_neighbour_notes(struct scale_notes *notes, const struct scale_exchange *x)
{
	if (scale_reduced_devices(x) == 1)
		scale_note(notes, "the devices divide the neighbours: both algorithms are the same; "
			   "the paper's limit of 2 for x -> 0 does not hold at x = 0");
	scale_note(notes, "the loops of the paper's listings run from 0 to n with n excluded");
	scale_note(notes, "the listings send sendbuf + iseg * seg_size to every neighbour, as in an "
		   "allgather; with a message for each, the neighbour's offset is to be added");
	if (x->neighbours == 6 && x->devices == 4)
		scale_note(notes, "measured in the paper at 8 MB: 2 times with MPI, more than the "
			   "model's 1.33, and 1.25 times with RDMA");
}
