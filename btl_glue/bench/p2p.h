/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two ranks, compared with rivals. All jobs run at once and take turns, one short
 * sample each, through a page that they share, so a disturbance of the machine affects
 * all of them. While one job measures, the others sleep.
 *
 *  p2p.c	the measurements: by MPI, and by bare memcpy()
 *  turns.c	taking turns, and storing the samples
 *  probe.c	the distance between two processors
 *  report.c	the table
 */
#ifndef P2P_H
#define P2P_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_RIVALS	10
#define MAX_SIZES	16
#define MAX_SAMPLES	64

/* Two samples are compared if their probes differ by less than this factor */
#define PROBE_LIMIT	1.4

enum kind { LATENCY, STREAM, FRESH, BOTH_WAYS, RATE, NR_KINDS };

/* Above this size the message rate is not reported */
#define RATE_LIMIT	8192

/**
 * struct sample - one turn's measurements
 * @seconds:	for one message, by kind (BOTH_WAYS: one each way); 0: not measured
 * @probe:	round trip of a cache line to the other core, in seconds: the longer of
 *		the one before and the one after
 * @moved:	those two differ, so the cores were changed
 */
struct sample {
	double seconds[NR_KINDS];
	double probe;
	bool moved;
};

/**
 * struct page - shared by all jobs
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
