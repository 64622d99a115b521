// SPDX-License-Identifier: GPL-2.0-only
/* The lean paper, table 1: its rows, in its order, and their sum. */
#include "saturate.h"

const struct scale_part scale_parts[SCALE_PARTS] = {
	{ "buffers", "communication buffers", { 4, 11 }, { "66896mn", "-" },
	  { scale_eq4_buffers_bytes, scale_eq11_buffers_bytes } },
	{ "low_level", "low-level contexts", { 3, 10 }, { "31160mn", "24n" },
	  { scale_eq3_low_level_bytes, scale_eq10_low_level_bytes } },
	{ "high_level", "high-level contexts", { 2, 9 }, { "948mn", "8n" },
	  { scale_eq2_high_level_bytes, scale_eq9_high_level_bytes } },
	{ "switching", "switching", { 0, 13 }, { "-", "8mn" },
	  { NULL, scale_eq13_switching_bytes } },
	{ "participants", "participants", { 1, 8 }, { "((16c+32)m+(8c+16)/m)n", "(4c+8)n" },
	  { scale_eq1_participants_bytes, scale_eq8_participants_bytes } },
	{ "shared_memory", "shared memory", { 5, 14 }, { "30mn", "6mn" },
	  { scale_eq5_shared_memory_bytes, scale_eq14_shared_memory_bytes } },
	{ "processes", "process management", { 6, 15 }, { "(2336/m+16352)n", "-" },
	  { scale_eq6_processes_bytes, scale_eq15_processes_bytes } },
	{ "other", "other", { 7, 7 }, { "-", "-" },
	  { scale_eq7_other_bytes, scale_eq7_other_bytes } },
};

const char *const scale_sum_n_term[2] = {
	"((16c+99066)m+(8c+2352)/m+16352)n",
	"(14m+4c+40)n",
};

uint64_t scale_part_bytes(const struct scale_part *part, enum scale_model model,
			  const struct scale_job *job)
{
	return part->bytes[model] ? part->bytes[model](job) : 0;
}

uint64_t scale_total_bytes(enum scale_model model, const struct scale_job *job)
{
	uint64_t bytes[SCALE_PARTS];
	unsigned int i;

	for (i = 0; i < SCALE_PARTS; i++)
		bytes[i] = scale_part_bytes(&scale_parts[i], model, job);
	return scale_sum(bytes, SCALE_PARTS);
}
