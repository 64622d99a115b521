/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two ranks measured beside rivals. All jobs run at once and take turns, one
 * short sample each, over a page that they share: what the machine does in a
 * second hits all of them. While one measures the others sleep.
 *
 *  p2p.c	what is measured: by MPI, and by bare memcpy()
 *  turns.c	whose turn it is, what each found
 *  probe.c	how far apart the two processors lie
 *  report.c	the table
 */
#ifndef P2P_H
#define P2P_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_RIVALS	8
#define MAX_SIZES	16
#define MAX_SAMPLES	64

/* Two samples are compared if their probes differ by less than this factor */
#define PROBE_LIMIT	1.4

enum kind { LATENCY, STREAM, FRESH, BOTH_WAYS, RATE, NR_KINDS };

/* Above this size nobody asks for messages a second */
#define RATE_LIMIT	8192

/**
 * struct sample - what one turn found
 * @seconds:	for one message, by kind (BOTH_WAYS: one each way); 0: not measured
 * @probe:	a cache line's way to the other core and back, in seconds, the
 *		worse of one before and one after
 * @moved:	those two differ: the cores were moved
 */
struct sample {
	double seconds[NR_KINDS];
	double probe;
	bool moved;
};

/**
 * struct page - what all jobs share
 * @turn:	counts turns; a futex
 * @line:	for the probe
 */
struct page {
	uint32_t turn;
	uint32_t nr_rivals;
	uint32_t nr_sizes;
	uint32_t nr_samples;
	char names[MAX_RIVALS][16];
	size_t sizes[MAX_SIZES];
	_Alignas(64) uint64_t line;
	_Alignas(64) struct sample samples[MAX_SIZES][MAX_SAMPLES][MAX_RIVALS];
};

double seconds(void);
/** stay_on - bind the caller to one processor; 0, or -1 and errno */
int stay_on(int cpu);
/** probe - a line's best round trip between two ranks, in seconds; both call it, @line is 0 */
double probe(uint64_t *line, int rank);
struct page *open_page(const char *path);
void wait_turn(struct page *page, uint32_t turn);
void next_turn(struct page *page);
void report(const struct page *page);

#endif /* P2P_H */
