// SPDX-License-Identifier: GPL-2.0-only
/* Places where the lean paper contradicts itself, as far as they concern a job. */
#include "saturate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TABLE_RANKS		4194304
#define TABLE_RANKS_PER_NODE	4

/* Several jobs may have the same remark. */
void scale_note(struct scale_notes *notes, const char *format, ...)
{
	unsigned int i;
	va_list args;
	char *text;

	if (notes->nr == SCALE_NOTES)
		return;
	text = notes->text[notes->nr];
	va_start(args, format);
	vsnprintf(text, sizeof(notes->text[0]), format, args);
	va_end(args);
	for (i = 0; i < notes->nr; i++)
		if (!strcmp(notes->text[i], text))
			return;
	notes->nr++;
}

static void note_history(struct scale_notes *notes, const struct scale_job *job)
{
	const uint64_t entries = scale_eq12_history_entries(job);
	const uint64_t has = scale_eq13_history_bytes(job), may = scale_eq12_history_bytes(job);

	if (!entries)
		scale_note(notes, "equation 12 gives less than one entry of history for more than "
			   "2^23 ranks; equation 13 keeps 64 MiB a rank");
	else if (has != may && may != SCALE_TOO_LARGE)
		scale_note(notes, "equation 13 takes the cap of 64 MiB a rank for the history; "
			   "equation 12 gives %" PRIu64 " entries, %.1f MB instead of %.1f MB a node"
			   " (sum %.1f MB)", entries, may / 1e6, has / 1e6,
			   (scale_total_bytes(SCALE_LEAN, job) - has + may) / 1e6);
}

static void note_lean(struct scale_notes *notes, const struct scale_job *job)
{
	scale_note(notes, "equation 10 has the constant %" PRIu64 ", but its parts in section 3.3 "
		   "sum to %" PRIu64, scale_eq10_constant_bytes, scale_eq10_parts_bytes());
	scale_note(notes, "equations 12 and 13 write p for n");
	note_history(notes, job);
	if (job->contexts > job->ranks)
		scale_note(notes, "there are fewer ranks than contexts; the equations count all "
			   "%" PRIu64 " contexts", job->contexts);
}

/* Section 2.4 is about the job of table 1. */
static void note_baseline(struct scale_notes *notes, const struct scale_job *job)
{
	if (job->ranks == TABLE_RANKS && job->ranks_per_node == TABLE_RANKS_PER_NODE)
		scale_note(notes, "section 2.4 says several GB for each part but \"other\"; shared "
			   "memory takes %.0f MB", scale_eq5_shared_memory_bytes(job) / 1e6);
}

void scale_memory_notes(struct scale_notes *notes, const struct scale_job *job,
			bool baseline, bool lean)
{
	if (baseline)
		note_baseline(notes, job);
	if (lean)
		note_lean(notes, job);
	if (job->original)
		scale_note(notes, "without the errata of equations 4, 7 and 11, and of the sums "
			   "that follow from them");
}
