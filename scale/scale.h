/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The models of pvas-scale. One function an equation: its number is in its name, and the
 * equation as its paper prints it stands above it.
 *
 *  baseline.c		lean paper, equations 1 to 7: memory of MPICH over InfiniBand as it was
 *  lean.c		lean paper, equations 8 to 15: the same after its reductions
 *  table.c		lean paper, table 1: these by part of the library
 *  memory_notes.c	contradictions in the lean paper that concern a job
 *  kcomputer.c		K paper: memory with fast, capped and lean buffers
 *  pvas.c		the K paper's rule in our BTL
 *  neighbour.c		neighbour paper, equations 1 to 8: time of an exchange
 *  schedule.c		neighbour paper: its schedule, and a check of what it promises
 *  fit.c, fit_read.c	measured bytes, fitted to terms as those of the lean paper
 *
 * The lean paper: Yamaguchi, Takagi, Hori, Ishikawa, "InfiniBand wo mochiita HPC muke tsuushin
 * raiburari ni okeru daikibo heiretsu jikkou wo kanou ni suru shou-memori-ka sekkei", with its
 * errata. The K paper: Sumimoto et al., "'Kei' no tame no MPI tsuushin kikou no sekkei", SACSIS
 * 2012. The neighbour paper: Morie, Nanri, "A Neighboring Communication Algorithm Using
 * Effective Multiple Communication Devices on Direct Connection Network".
 */
#ifndef SCALE_H
#define SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Instead of a number of bytes that does not fit into 64 bits */
#define SCALE_TOO_LARGE		UINT64_MAX

/**
 * struct scale_job - a job, as the lean paper describes it
 * @ranks:		n, of the whole job; a multiple of @ranks_per_node
 * @ranks_per_node:	m
 * @communicators:	c, made by the user, each as large as the job
 * @contexts:		gamma, the limit of active communication contexts
 * @original:		as printed, without the paper's errata
 */
struct scale_job {
	uint64_t ranks;
	uint64_t ranks_per_node;
	uint64_t communicators;
	uint64_t contexts;
	bool original;
};

/* Bytes a node, or SCALE_TOO_LARGE */
uint64_t scale_eq1_participants_bytes(const struct scale_job *job);
uint64_t scale_eq2_high_level_bytes(const struct scale_job *job);
uint64_t scale_eq3_low_level_bytes(const struct scale_job *job);
uint64_t scale_eq4_buffers_bytes(const struct scale_job *job);
uint64_t scale_eq5_shared_memory_bytes(const struct scale_job *job);
uint64_t scale_eq6_processes_bytes(const struct scale_job *job);
uint64_t scale_eq7_other_bytes(const struct scale_job *job);
uint64_t scale_eq8_participants_bytes(const struct scale_job *job);
uint64_t scale_eq9_high_level_bytes(const struct scale_job *job);
uint64_t scale_eq10_low_level_bytes(const struct scale_job *job);
uint64_t scale_eq11_buffers_bytes(const struct scale_job *job);
uint64_t scale_eq13_switching_bytes(const struct scale_job *job);
uint64_t scale_eq14_shared_memory_bytes(const struct scale_job *job);
uint64_t scale_eq15_processes_bytes(const struct scale_job *job);

/* Entries of the history, a rank; 0 if the equation gives less than one */
uint64_t scale_eq12_history_entries(const struct scale_job *job);
/* The history as equation 13 has it, and as it is with the entries of equation 12 */
uint64_t scale_eq13_history_bytes(const struct scale_job *job);
uint64_t scale_eq12_history_bytes(const struct scale_job *job);
/* The constant of equation 10, and the sum of its parts in section 3.3 */
extern const uint64_t scale_eq10_constant_bytes;
uint64_t scale_eq10_parts_bytes(void);

enum scale_model { SCALE_BASELINE, SCALE_LEAN };

/**
 * struct scale_part - a row of table 1
 * @key:	one word, for programs
 * @name:	for people
 * @equation:	for each model, 0 if the model has no such part
 * @n_term:	the part that grows with n, as the table prints it
 * @bytes:	the equation
 */
struct scale_part {
	const char *key;
	const char *name;
	unsigned int equation[2];
	const char *n_term[2];
	uint64_t (*bytes[2])(const struct scale_job *job);
};

#define SCALE_PARTS	8
extern const struct scale_part scale_parts[SCALE_PARTS];
extern const char *const scale_sum_n_term[2];

/* 0 if the model has no such part */
uint64_t scale_part_bytes(const struct scale_part *part, enum scale_model model,
			  const struct scale_job *job);
uint64_t scale_total_bytes(enum scale_model model, const struct scale_job *job);

#define SCALE_NOTES	8

/**
 * struct scale_notes - remarks on a result, one line each
 * @nr:		how many
 * @text:	the lines
 */
struct scale_notes {
	unsigned int nr;
	char text[SCALE_NOTES][240];
};

__attribute__((format(printf, 2, 3)))
void scale_note(struct scale_notes *notes, const char *format, ...);
void scale_memory_notes(struct scale_notes *notes, const struct scale_job *job,
			bool baseline, bool lean);

/* The K computer: one rank a node, which has exchanged messages with all others */
enum scale_k_mode { SCALE_K_FAST, SCALE_K_CAPPED, SCALE_K_LEAN };

uint64_t scale_k_fast_peers(enum scale_k_mode mode, uint64_t ranks, uint64_t cap);
uint64_t scale_k_bytes(enum scale_k_mode mode, uint64_t ranks, uint64_t cap);
uint64_t scale_k_base_bytes(void);
uint64_t scale_k_lean_peer_bytes(void);
uint64_t scale_k_fast_peer_bytes(enum scale_k_mode mode);
uint64_t scale_k_eager_rdma_bytes(void);
uint64_t scale_k_fast_buffers_bytes(void);
uint64_t scale_k_all_eager_bytes(uint64_t ranks);
uint64_t scale_k_eager_limit_bytes(uint64_t hops);
uint64_t scale_k_latency_ns(uint64_t hops);
void scale_k_notes(struct scale_notes *notes);

/* The BTL pvas: a rank of so many on a node, which has exchanged messages with all others */
uint64_t scale_pvas_fast_peers(uint64_t ranks, uint64_t cap);
uint64_t scale_pvas_bytes(uint64_t ranks, uint64_t cap);

/**
 * struct scale_exchange - each process sends one message to each of its neighbours
 * @neighbours:	N
 * @devices:	C, with N > C > 1
 */
struct scale_exchange {
	uint64_t neighbours;
	uint64_t devices;
};

/**
 * struct scale_link - a device, and the link behind it
 * @latency_us:		L, of a message, with the software's part
 * @bytes_per_us:	B
 */
struct scale_link {
	double latency_us;
	double bytes_per_us;
};

/* A number that is not rounded */
struct scale_fraction {
	uint64_t over;
	uint64_t under;
};

/* N' and C': without their common divisor, k */
uint64_t scale_common_divisor(const struct scale_exchange *x);
uint64_t scale_reduced_neighbours(const struct scale_exchange *x);
uint64_t scale_reduced_devices(const struct scale_exchange *x);
uint64_t scale_previous_steps(const struct scale_exchange *x);

/* For a message of @bytes to each neighbour */
double scale_neq1_previous_us(const struct scale_exchange *x, const struct scale_link *link,
			      uint64_t bytes);
double scale_neq2_proposed_us(const struct scale_exchange *x, const struct scale_link *link,
			      uint64_t bytes);
struct scale_fraction scale_neq3_ratio(const struct scale_exchange *x);
/* Equations 1 and 2 for 6 neighbours and 4 devices */
double scale_neq4_previous_us(const struct scale_link *link, uint64_t bytes);
double scale_neq5_proposed_us(const struct scale_link *link, uint64_t bytes);
/* Three ways to write equation 3, with x, the fraction of N / C */
struct scale_fraction scale_neq6_ratio(const struct scale_exchange *x);
struct scale_fraction scale_neq7_ratio(const struct scale_exchange *x);
struct scale_fraction scale_neq8_ratio(const struct scale_exchange *x);
/* Of all messages together */
double scale_exchange_bytes_per_us(const struct scale_exchange *x, uint64_t bytes, double us);
/* The length from which the proposed algorithm is faster; 0: it never is */
double scale_crossing_bytes(const struct scale_exchange *x, const struct scale_link *link);
void scale_neighbour_notes(struct scale_notes *notes, const struct scale_exchange *x);

/**
 * struct scale_segment - what a device sends in a step
 * @step:	i, from 0 to N' - 1
 * @device:	j
 * @segment:	of the message, from 0 to C' - 1
 * @neighbour:	to which it goes
 * @offset:	in the message
 * @bytes:	its length
 */
struct scale_segment {
	uint64_t step;
	uint64_t device;
	uint64_t segment;
	uint64_t neighbour;
	uint64_t offset;
	uint64_t bytes;
};

struct scale_segment scale_segment_at(const struct scale_exchange *x, uint64_t message_bytes,
				      uint64_t step, uint64_t device);

/* Segments that scale_schedule_check() looks at, at most */
#define SCALE_CHECK_SEGMENTS	32768U

/**
 * struct scale_schedule_check - a schedule, counted through
 * @whole:		all steps were, and not only the first ones
 * @segments:		how many
 * @least_bytes:	of a device
 * @most_bytes:		the same
 * @collisions:		segments with another of their step to the same neighbour
 * @missing:		segments that nobody sends
 * @repeated:		segments that are sent twice
 */
struct scale_schedule_check {
	bool whole;
	uint64_t segments;
	uint64_t least_bytes;
	uint64_t most_bytes;
	uint64_t collisions;
	uint64_t missing;
	uint64_t repeated;
};

/* Another schedule can be given, so that tests can break one. */
typedef struct scale_segment scale_schedule_fn(const struct scale_exchange *x,
					       uint64_t message_bytes, uint64_t step,
					       uint64_t device);

/* Returns 0 or -ENOMEM */
int scale_schedule_check(const struct scale_exchange *x, uint64_t message_bytes,
			 scale_schedule_fn *at, struct scale_schedule_check *result);

#endif
