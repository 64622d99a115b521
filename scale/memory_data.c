// SPDX-License-Identifier: GPL-2.0-only
/* pvas-scale memory, for programs. */
#include "command.h"

#include <inttypes.h>

static const char *const names[] = { "baseline", "lean" };

static void csv_line(const struct scale_job *job, enum scale_model model, const char *part,
		     unsigned int equation, uint64_t bytes)
{
	printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d,%s,%s,%u,%" PRIu64
	       "\n", job->ranks / job->ranks_per_node, job->ranks_per_node, job->ranks,
	       job->communicators, job->contexts, !job->original, names[model], part, equation,
	       bytes);
}

void memory_csv(const struct options *o, const struct scale_job *job, unsigned int nr)
{
	const struct scale_part *part;
	enum scale_model model;
	unsigned int i, k;

	puts("nodes,ppn,ranks,comms,contexts,errata,model,part,equation,bytes");
	for (i = 0; i < nr; i++) {
		for (model = SCALE_BASELINE; model <= SCALE_LEAN; model++) {
			if (!memory_has(o, model))
				continue;
			for (k = 0; k < SCALE_PARTS; k++) {
				part = &scale_parts[k];
				if (part->bytes[model])
					csv_line(&job[i], model, part->key, part->equation[model],
						 scale_part_bytes(part, model, &job[i]));
			}
			csv_line(&job[i], model, "sum", 0, scale_total_bytes(model, &job[i]));
		}
	}
}

static void json_model(enum scale_model model, const struct scale_job *job)
{
	const struct scale_part *part;
	unsigned int i, nr = 0;

	printf("{\"model\":\"%s\",\"bytes\":%" PRIu64 ",\"parts\":[", names[model],
	       scale_total_bytes(model, job));
	for (i = 0; i < SCALE_PARTS; i++) {
		part = &scale_parts[i];
		if (part->bytes[model])
			printf("%s{\"part\":\"%s\",\"equation\":%u,\"n_term\":\"%s\",\"bytes\":%"
			       PRIu64 "}", nr++ ? "," : "", part->key, part->equation[model],
			       part->n_term[model], scale_part_bytes(part, model, job));
	}
	printf("]}");
}

static void json_job(const struct options *o, const struct scale_job *job)
{
	struct scale_notes notes = { 0 };
	enum scale_model model;
	unsigned int nr = 0;

	printf("{\"nodes\":%" PRIu64 ",\"ppn\":%" PRIu64 ",\"ranks\":%" PRIu64 ",\"models\":[",
	       job->ranks / job->ranks_per_node, job->ranks_per_node, job->ranks);
	for (model = SCALE_BASELINE; model <= SCALE_LEAN; model++) {
		if (!memory_has(o, model))
			continue;
		printf("%s", nr++ ? "," : "");
		json_model(model, job);
	}
	printf("],");
	scale_memory_notes(&notes, job, memory_has(o, SCALE_BASELINE), memory_has(o, SCALE_LEAN));
	print_notes_json(&notes);
	putchar('}');
}

void memory_json(const struct options *o, const struct scale_job *job, unsigned int nr)
{
	unsigned int i;

	printf("{\"schema\":1,\"command\":\"memory\",\"errata\":%s,\"comms\":%" PRIu64
	       ",\"contexts\":%" PRIu64 ",\"jobs\":[", o->original ? "false" : "true", o->comms,
	       o->contexts);
	for (i = 0; i < nr; i++) {
		if (i)
			putchar(',');
		json_job(o, &job[i]);
	}
	puts("]}");
}
