// SPDX-License-Identifier: GPL-2.0-only
/* The lean paper: each value that it prints, and each equation where n, m, c and gamma differ. */
#include <stdio.h>
#include <string.h>

#include "../command.h"
#include "../saturate.h"
#include "unit.h"

#define NODES	(1UL << 20)

static struct scale_job job_of(uint64_t nodes, uint64_t m, bool original)
{
	return (struct scale_job){
		.ranks = nodes * m, .ranks_per_node = m, .communicators = 10, .contexts = 1024,
		.original = original,
	};
}

/* Table 1 as printed, and with the errata; the bytes as computed by another program */
static const struct {
	const char *key;
	const char *printed[2];
	uint64_t bytes[2];
	const char *original_printed[2];
	uint64_t original_bytes[2];
} table1[] = {
	{ "buffers", { "1.12 TB", "151 MB" }, { 1122393194068, 150909732 },
	  { "1.12 TB", "118 MB" }, { 1122360055131, 117770795 } },
	{ "low_level", { "523 GB", "106 MB" }, { 522777554880, 105928256 },
	  { "523 GB", "106 MB" }, { 522777554880, 105928256 } },
	{ "high_level", { "15.9 GB", "34.5 MB" }, { 15904800640, 34516960 },
	  { "15.9 GB", "34.5 MB" }, { 15904800640, 34516960 } },
	{ "switching", { "0 B", "407 MB" }, { 0, 406984384 },
	  { "0 B", "407 MB" }, { 0, 406984384 } },
	{ "participants", { "3.32 GB", "204 MB" }, { 3321938144, 203685248 },
	  { "3.32 GB", "204 MB" }, { 3321938144, 203685248 } },
	{ "shared_memory", { "521 MB", "118 MB" }, { 520886568, 118234024 },
	  { "521 MB", "118 MB" }, { 520886568, 118234024 } },
	{ "processes", { "71.0 GB", "216 KB" }, { 71034944200, 215544 },
	  { "71.0 GB", "216 KB" }, { 71034944200, 215544 } },
	{ "other", { "53.3 MB", "53.3 MB" }, { 53320268, 53320268 },
	  { "13.3 MB", "13.3 MB" }, { 13330067, 13330067 } },
};

static void check_table1(bool original)
{
	const struct scale_job job = job_of(NODES, 4, original);
	enum scale_model model;
	unsigned int i;
	uint64_t bytes;

	for (i = 0; i < SCALE_PARTS; i++) {
		STRING(scale_parts[i].key, table1[i].key);
		for (model = SCALE_BASELINE; model <= SCALE_LEAN; model++) {
			bytes = scale_part_bytes(&scale_parts[i], model, &job);
			NUMBER_CASE(bytes, original ? table1[i].original_bytes[model] :
				    table1[i].bytes[model], table1[i].key);
			STRING_CASE(human_bytes(bytes).text, original ?
				    table1[i].original_printed[model] : table1[i].printed[model],
				    table1[i].key);
		}
	}
}

static void check_sums(void)
{
	const struct scale_job with = job_of(NODES, 4, false), without = job_of(NODES, 4, true);

	NUMBER(scale_total_bytes(SCALE_BASELINE, &with), 1736006638768);
	STRING(human_bytes(scale_total_bytes(SCALE_BASELINE, &with)).text, "1.74 TB");
	STRING(human_bytes(scale_total_bytes(SCALE_BASELINE, &without)).text, "1.74 TB");
	NUMBER(scale_total_bytes(SCALE_LEAN, &with), 1073794416);
	STRING(human_bytes(scale_total_bytes(SCALE_LEAN, &with)).text, "1.07 GB");
	NUMBER(scale_total_bytes(SCALE_LEAN, &without), 1000665278);
	STRING(human_bytes(scale_total_bytes(SCALE_LEAN, &without)).text, "1.00 GB");
}

/* Section 5: the size at which the K computer's library was measured */
static void check_9216(void)
{
	const struct scale_job with = job_of(9216, 1, false), without = job_of(9216, 1, true);
	struct scale_notes notes = { 0 };
	unsigned int i, found = 0;

	NUMBER(scale_total_bytes(SCALE_LEAN, &without), 211377604);
	STRING(human_bytes(scale_total_bytes(SCALE_LEAN, &without)).text, "211 MB");
	NUMBER(scale_total_bytes(SCALE_LEAN, &with), 195299438);
	STRING(human_bytes(scale_total_bytes(SCALE_LEAN, &with)).text, "195 MB");
	/* There (13) does not follow from (12). */
	NUMBER(scale_eq12_history_entries(&with), 512);
	PRINTED(scale_eq12_history_bytes(&with) / 1e6, "37.7");
	NUMBER(scale_eq13_history_bytes(&with), 67108864);
	scale_memory_notes(&notes, &with, false, true);
	for (i = 0; i < notes.nr; i++)
		found += strstr(notes.text[i], "512 entries, 37.7 MB instead of 67.1 MB") &&
			 strstr(notes.text[i], "sum 165.9 MB");
	NUMBER(found, 1);
}

/* The sums of figures 4 and 5, in GB and MB */
static void check_figures(void)
{
	static const struct {
		uint64_t nodes;
		const char *baseline, *lean;
	} sums[] = {
		{ 65536, "108.63", "539.02" }, { 131072, "217.12", "574.67" },
		{ 262144, "434.10", "645.98" }, { 524288, "868.07", "788.58" },
		{ 1048576, "1736.01", "1073.79" },
	};
	struct scale_job job;
	unsigned int i;

	for (i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		job = job_of(sums[i].nodes, 4, false);
		PRINTED(scale_total_bytes(SCALE_BASELINE, &job) / 1e9, sums[i].baseline);
		PRINTED(scale_total_bytes(SCALE_LEAN, &job) / 1e6, sums[i].lean);
	}
}

/* The equations by number, for two jobs in which nothing is a power of two or a default */
static const struct {
	uint64_t (*bytes)(const struct scale_job *job);
	uint64_t wanted[2], original[2];
} equations[] = {
	{ scale_eq1_participants_bytes, { 118837600, 36880 }, { 118837600, 36880 } },
	{ scale_eq2_high_level_bytes, { 1393559776, 181760 }, { 1393559776, 181760 } },
	{ scale_eq3_low_level_bytes, { 45803678368, 3994496 }, { 45803678368, 3994496 } },
	{ scale_eq4_buffers_bytes, { 98448682115, 139808424 }, { 98366326075, 41046683 } },
	{ scale_eq5_shared_memory_bytes, { 76225998, 37246592 }, { 76225998, 37246592 } },
	{ scale_eq6_processes_bytes, { 3504211656, 611112 }, { 3504211656, 611112 } },
	{ scale_eq7_other_bytes, { 94686809, 108737816 }, { 13526687, 13592227 } },
	{ scale_eq8_participants_bytes, { 5069736, 32268 }, { 5069736, 32268 } },
	{ scale_eq9_high_level_bytes, { 2149968, 4860 }, { 2149968, 4860 } },
	{ scale_eq10_low_level_bytes, { 10216928, 5094344 }, { 10216928, 5094344 } },
	{ scale_eq11_buffers_bytes, { 200126835, 216532536 }, { 117770795, 117770795 } },
	{ scale_eq13_switching_bytes, { 489101648, 10236800 }, { 489101648, 10236800 } },
	{ scale_eq14_shared_memory_bytes, { 40947958, 37244544 }, { 40947958, 37244544 } },
	{ scale_eq15_processes_bytes, { 218352, 219288 }, { 218352, 219288 } },
};

#define EQUATIONS	(sizeof(equations) / sizeof(equations[0]))

static void check_equations(void)
{
	static const struct scale_job jobs[] = {
		{ .ranks = 210000, .ranks_per_node = 7, .communicators = 3, .contexts = 500 },
		{ .ranks = 24, .ranks_per_node = 8, .communicators = 1, .contexts = 5 },
	};
	struct scale_job job;
	unsigned int i, k;
	char name[32];

	for (i = 0; i < EQUATIONS; i++)
		for (k = 0; k < 2; k++) {
			snprintf(name, sizeof(name), "equation %u, job %u", i + 1 + (i > 10), k);
			job = jobs[k];
			NUMBER_CASE(equations[i].bytes(&job), equations[i].wanted[k], name);
			job.original = true;
			NUMBER_CASE(equations[i].bytes(&job), equations[i].original[k], name);
		}
}

/* The n-terms of table 1, by their letters: with twice the ranks, each adds itself. */
static void check_n_terms(void)
{
	static const struct {
		uint64_t per_mn, per_n, per_nodes;
	} terms[SCALE_PARTS][2] = {
		{ { 66896, 0, 0 }, { 0, 0, 0 } }, { { 31160, 0, 0 }, { 0, 24, 0 } },
		{ { 948, 0, 0 }, { 0, 8, 0 } }, { { 0, 0, 0 }, { 8, 0, 0 } },
		{ { 16 * 10 + 32, 0, 8 * 10 + 16 }, { 0, 4 * 10 + 8, 0 } },
		{ { 30, 0, 0 }, { 6, 0, 0 } }, { { 0, 16352, 2336 }, { 0, 0, 0 } },
		{ { 0, 0, 0 }, { 0, 0, 0 } },
	};
	const struct scale_job once = job_of(NODES, 4, false), twice = job_of(2 * NODES, 4, false);
	const uint64_t n = once.ranks, m = once.ranks_per_node;
	uint64_t wanted, sum[2] = { 0, 0 };
	unsigned int i, k;

	for (i = 0; i < SCALE_PARTS; i++)
		for (k = 0; k < 2; k++) {
			wanted = terms[i][k].per_mn * m * n + terms[i][k].per_n * n +
				 terms[i][k].per_nodes * n / m;
			sum[k] += wanted;
			NUMBER_CASE(scale_part_bytes(&scale_parts[i], k, &twice) -
				    scale_part_bytes(&scale_parts[i], k, &once), wanted,
				    scale_parts[i].n_term[k]);
		}
	NUMBER_CASE(sum[0], ((16 * 10 + 99066) * m + 16352) * n + (8 * 10 + 2352) * n / m,
		    scale_sum_n_term[0]);
	NUMBER_CASE(sum[1], (14 * m + 4 * 10 + 40) * n, scale_sum_n_term[1]);
}

/* (12) at its limits, and (10)'s constant, which its parts do not give */
static void check_history(void)
{
	static const uint64_t entries[][2] = {
		{ 1, 1024 }, { 8192, 1024 }, { 8193, 512 }, { 16384, 512 }, { 16385, 256 },
		{ 1 << 22, 2 }, { 1 << 23, 1 }, { (1 << 23) + 1, 0 }, { 1UL << 62, 0 },
	};
	struct scale_job job;
	unsigned int i;

	for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		job = job_of(entries[i][0], 1, false);
		NUMBER(scale_eq12_history_entries(&job), entries[i][1]);
	}
	job = job_of(8192, 1, false);
	NUMBER(scale_eq13_history_bytes(&job), 67108864);
	job = job_of(8193, 1, false);
	NUMBER(scale_eq13_history_bytes(&job), 67108864);
	NUMBER(scale_eq10_constant_bytes, 5092928);
	NUMBER(scale_eq10_parts_bytes(), 5092960);
}

/* No result wraps, and none is refused that fits. */
static void check_overflow(void)
{
	struct scale_job job = job_of(1UL << 61, 1, false);
	enum scale_model model;

	for (model = SCALE_BASELINE; model <= SCALE_LEAN; model++)
		NUMBER(scale_total_bytes(model, &job), SCALE_TOO_LARGE);
	job = job_of(1UL << 46, 2, false);
	NUMBER(scale_eq4_buffers_bytes(&job), SCALE_TOO_LARGE);
	/* (66896(2^47 - 1) + 32 + 16405701 x 2) with one rank a node fits */
	job = job_of(1UL << 47, 1, false);
	NUMBER(scale_eq4_buffers_bytes(&job), 66896 * ((1UL << 47) - 1) + 16 + 16405701);
	EXPECT(PRODUCT(0, SCALE_TOO_LARGE, SCALE_TOO_LARGE) == 0);
	EXPECT(PRODUCT(1, SCALE_TOO_LARGE - 1) == SCALE_TOO_LARGE - 1);
	EXPECT(PRODUCT(2, 1UL << 63) == SCALE_TOO_LARGE);
	EXPECT(SUM(SCALE_TOO_LARGE - 1, 1, 1) == SCALE_TOO_LARGE);
	EXPECT(scale_share(7, 1, 2) == 4);
	EXPECT(scale_share(1UL << 63, 4, 2) == SCALE_TOO_LARGE);
	EXPECT(scale_share(SCALE_TOO_LARGE, 1, 2) == SCALE_TOO_LARGE);
}

void test_lean(void)
{
	check_table1(false);
	check_table1(true);
	check_sums();
	check_9216();
	check_figures();
	check_equations();
	check_n_terms();
	check_history();
	check_overflow();
}
