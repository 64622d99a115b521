// SPDX-License-Identifier: GPL-2.0-only
/* pvas-scale memory: the lean paper's models, for one size as table 1, for several as a list. */
#include "command.h"

#include <inttypes.h>

#define DEFAULT_NODES		1048576
#define DEFAULT_PPN		4
#define DEFAULT_COMMS		10
#define DEFAULT_CONTEXTS	1024

static const char *const titles[] = { "baseline", "lean" };

bool memory_has(const struct options *o, enum scale_model model)
{
	return o->model == BOTH || (o->model == LEAN) == (model == SCALE_LEAN);
}

static int make_job(const struct options *o, unsigned int i, struct scale_job *job)
{
	int status = options_job(o, i, job);
	enum scale_model model;

	for (model = SCALE_BASELINE; !status && model <= SCALE_LEAN; model++)
		if (memory_has(o, model) && scale_total_bytes(model, job) == SCALE_TOO_LARGE)
			status = fail_usage("%" PRIu64 " ranks, %" PRIu64 " a node: the bytes of a "
					    "node do not fit into 64 bits", job->ranks,
					    job->ranks_per_node);
	return status;
}

static void print_parts(enum scale_model model, const struct scale_job *job)
{
	const struct scale_part *part;
	uint64_t bytes;
	unsigned int i;

	printf("\n%-22s %-4s  %-33s %20s\n", titles[model], "eq.", "n-term", "bytes a node");
	for (i = 0; i < SCALE_PARTS; i++) {
		part = &scale_parts[i];
		if (!part->bytes[model])
			continue;
		bytes = scale_part_bytes(part, model, job);
		printf("%-22s %-4u  %-33s %20" PRIu64 "  %8s\n", part->name, part->equation[model],
		       part->n_term[model], bytes, human_bytes(bytes).text);
	}
	bytes = scale_total_bytes(model, job);
	printf("%-22s %-4s  %-33s %20" PRIu64 "  %8s\n", "sum", "", scale_sum_n_term[model], bytes,
	       human_bytes(bytes).text);
}

static void print_one(const struct options *o, const struct scale_job *job)
{
	enum scale_model model;

	printf("%" PRIu64 " nodes of %" PRIu64 " ranks (n = %" PRIu64 "), c = %" PRIu64,
	       job->ranks / job->ranks_per_node, job->ranks_per_node, job->ranks,
	       job->communicators);
	if (memory_has(o, SCALE_LEAN))
		printf(", gamma = %" PRIu64, job->contexts);
	printf(", %s\n", job->original ? "as printed" : "errata applied");
	for (model = SCALE_BASELINE; model <= SCALE_LEAN; model++)
		if (memory_has(o, model))
			print_parts(model, job);
}

static void print_several(const struct options *o, const struct scale_job *job, unsigned int nr)
{
	enum scale_model model;
	uint64_t bytes;
	unsigned int i;

	printf("%20s %20s", "nodes", "ranks");
	for (model = SCALE_BASELINE; model <= SCALE_LEAN; model++)
		if (memory_has(o, model))
			printf("  %30s", titles[model]);
	putchar('\n');
	for (i = 0; i < nr; i++) {
		printf("%20" PRIu64 " %20" PRIu64, job[i].ranks / job[i].ranks_per_node,
		       job[i].ranks);
		for (model = SCALE_BASELINE; model <= SCALE_LEAN; model++) {
			if (!memory_has(o, model))
				continue;
			bytes = scale_total_bytes(model, &job[i]);
			printf("  %20" PRIu64 " %9s", bytes, human_bytes(bytes).text);
		}
		putchar('\n');
	}
}

static void print_text(const struct options *o, const struct scale_job *job, unsigned int nr)
{
	struct scale_notes notes = { 0 };
	unsigned int i;

	if (nr == 1)
		print_one(o, job);
	else
		print_several(o, job, nr);
	for (i = 0; i < nr; i++)
		scale_memory_notes(&notes, &job[i], memory_has(o, SCALE_BASELINE),
				   memory_has(o, SCALE_LEAN));
	print_notes(&notes);
}

/* A line of a figure: a part, or the sum if that is NULL */
struct line {
	enum scale_model model;
	const struct scale_part *part;
};

/* Of one model its parts and their sum, as figures 4 and 5; of both only the sums */
static unsigned int choose_lines(const struct options *o, struct line *line)
{
	enum scale_model model;
	unsigned int i, nr = 0;

	for (model = SCALE_BASELINE; model <= SCALE_LEAN; model++) {
		if (!memory_has(o, model))
			continue;
		for (i = 0; o->model != BOTH && i < SCALE_PARTS; i++)
			if (scale_parts[i].bytes[model])
				line[nr++] = (struct line){ model, &scale_parts[i] };
		line[nr++] = (struct line){ model, NULL };
	}
	return nr;
}

static void plot_points(FILE *out, const struct line *line, const struct scale_job *job,
			unsigned int nr)
{
	uint64_t bytes;

	for (; nr--; job++) {
		bytes = line->part ? scale_part_bytes(line->part, line->model, job) :
				     scale_total_bytes(line->model, job);
		fprintf(out, "%" PRIu64 " %" PRIu64 "\n", job->ranks / job->ranks_per_node, bytes);
	}
	fputs("e\n", out);
}

static int plot(const struct options *o, const struct scale_job *job, unsigned int nr)
{
	struct line line[SCALE_PARTS + 2];
	unsigned int i, lines = choose_lines(o, line);
	FILE *out;
	int status;

	status = plot_begin(o->plot, "Memory of the MPI library", "nodes", "bytes a node", &out);
	if (status)
		return status;
	for (i = 0; i < lines; i++)
		fprintf(out, "%s '-' with linespoints title '%s%s%s'", i ? "," : "plot",
			titles[line[i].model], line[i].part ? ": " : "",
			line[i].part ? line[i].part->name : "");
	fputc('\n', out);
	for (i = 0; i < lines; i++)
		plot_points(out, &line[i], job, nr);
	return plot_end(out, o->plot);
}

/* The defaults are those of table 1. */
static int set_defaults(struct options *o)
{
	if (options_given(o, "cap") || options_given(o, "hops"))
		return fail_usage("--cap and --hops go with --model k only");
	if (o->model == BASELINE && options_given(o, "contexts"))
		return fail_usage("--contexts does not go with --model baseline");
	if (!o->nodes.nr && !o->ranks.nr)
		o->nodes = (struct list){ .nr = 1, .value = { DEFAULT_NODES } };
	if (!o->ppn)
		o->ppn = DEFAULT_PPN;
	if (!options_given(o, "comms"))
		o->comms = DEFAULT_COMMS;
	if (!o->contexts)
		o->contexts = DEFAULT_CONTEXTS;
	if (o->plot && options_nr_jobs(o) < 2)
		return fail_usage("--plot needs several sizes (--nodes 1024..1048576)");
	return 0;
}

int memory_command(const struct options *given)
{
	struct scale_job job[LIST_LENGTH];
	struct options o = *given;
	int status = set_defaults(&o);
	unsigned int i, nr = options_nr_jobs(&o);

	for (i = 0; !status && i < nr; i++)
		status = make_job(&o, i, &job[i]);
	if (status)
		return status;
	if (o.plot)
		return plot(&o, job, nr);
	if (o.format == CSV)
		memory_csv(&o, job, nr);
	else if (o.format == JSON)
		memory_json(&o, job, nr);
	else
		print_text(&o, job, nr);
	return 0;
}
