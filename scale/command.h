/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the files of the command pvas-scale
 *
 *  main.c		commands, help and version
 *  options.c		the command line
 *  words.c		its words to values
 *  print.c		units, JSON and notes, for all commands
 *  memory.c		pvas-scale memory: checks, text
 *  memory_data.c	the same as CSV and JSON
 *  kmemory.c		pvas-scale memory --model k
 *  pmemory.c		pvas-scale memory --model pvas
 *  exchange.c		pvas-scale neighbour
 *  extrapolate.c	pvas-scale fit
 *  plot.c		figures, by gnuplot
 */
#ifndef SCALE_COMMAND_H
#define SCALE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fit.h"
#include "scale.h"

#define EXIT_FAILED	1
#define EXIT_USAGE	2

#define LIST_LENGTH	64
#define PRINTED_SEGMENTS	8192U

enum command { MEMORY = 1, NEIGHBOUR = 2, FIT = 4 };
enum format { TEXT, CSV, JSON };
enum model { BOTH, BASELINE, LEAN, K_COMPUTER, PVAS };

struct list {
	unsigned int nr;
	uint64_t value[LIST_LENGTH];
};

/**
 * struct options - the command line; of each command's options only its own are set
 * @command:	one of them
 * @format:	of the output
 * @model:	of memory
 * @nodes:	sizes of the machine
 * @ranks:	instead of @nodes: sizes of the job
 * @ppn:	ranks a node; 0: not given
 * @comms:	communicators
 * @contexts:	active ones
 * @cap:	of fast peers
 * @hops:	to a peer
 * @original:	without errata
 * @plot:	file for a figure, or NULL
 * @exchange:	neighbours and devices
 * @bytes:	message sizes
 * @link:	a device
 * @schedule:	print the steps from @first to @last
 * @fit:	terms, if they were given
 * @file:	measurements
 * @given:	a bit for each option that was there
 */
struct options {
	enum command command;
	enum format format;
	enum model model;
	struct list nodes;
	struct list ranks;
	uint64_t ppn;
	uint64_t comms;
	uint64_t contexts;
	uint64_t cap;
	uint64_t hops;
	bool original;
	const char *plot;
	struct scale_exchange exchange;
	struct list bytes;
	struct scale_link link;
	bool schedule;
	uint64_t first;
	uint64_t last;
	struct fit_result fit;
	const char *file;
	uint64_t given;
};

/* Print "pvas-scale: ..." and return the exit status */
__attribute__((format(printf, 1, 2)))
int fail(const char *format, ...);
__attribute__((format(printf, 1, 2)))
int fail_usage(const char *format, ...);

/* Return false if it is not such a word, or too large. */
bool word_number(const char *text, uint64_t least, uint64_t *value);
bool word_list(const char *text, bool sizes, struct list *list);
bool word_steps(const char *text, uint64_t *first, uint64_t *last);
bool word_time_us(const char *text, double *us);
bool word_bytes_per_us(const char *text, double *rate);
bool word_terms(const char *text, struct fit_result *fit);
/* The index of @text in @names, which a NULL ends, or -1 */
int word_choice(const char *text, const char *const *names);

/* Returns the exit status, or -1 to continue. */
int options_parse(struct options *o, int argc, char **argv);
bool options_given(const struct options *o, const char *name);
/* Of the job of size @i. Returns the exit status, or 0. */
int options_job(const struct options *o, unsigned int i, struct scale_job *job);
unsigned int options_nr_jobs(const struct options *o);

extern const char help_text[];

/* As in the paper: three digits, decimal units */
struct human { char text[24]; };
struct human human_bytes(uint64_t bytes);
struct human human_double(double bytes);

void print_notes(const struct scale_notes *notes);
void print_notes_json(const struct scale_notes *notes);

int memory_command(const struct options *o);
void memory_csv(const struct options *o, const struct scale_job *job, unsigned int nr);
void memory_json(const struct options *o, const struct scale_job *job, unsigned int nr);
bool memory_has(const struct options *o, enum scale_model model);
int k_command(const struct options *o);
int pvas_command(const struct options *o);
int exchange_command(const struct options *o);
int fit_command(const struct options *o);

/* A line of a figure: gnuplot reads its points. */
int plot_begin(const char *path, const char *title, const char *x, const char *y, FILE **out);
int plot_end(FILE *out, const char *path);

#endif
