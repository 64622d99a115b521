// SPDX-License-Identifier: GPL-2.0-only
/* pvas-scale fit: terms of measured memory, and the memory of other jobs by them. */
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#define DEFAULT_NODES	1048576
/* An extrapolation further than that deserves a word. */
#define FAR		16

static struct fit_data data;

static int fit_file(struct options *o)
{
	unsigned int at;
	int err;

	if (fit_read(&data, o->file))
		return fail("%s: %s", o->file, data.error);
	if (!o->fit.nr_terms)
		fit_choose_terms(&data, &o->fit);
	err = fit_points(&data, &o->fit, &at);
	if (err == -ERANGE)
		return fail("%s: %u measurements are too few for %u terms", o->file, data.nr,
			    o->fit.nr_terms);
	if (err)
		return fail("%s: the term %s can't be told from those before it (measure other "
			    "sizes, or choose --terms)", o->file,
			    fit_term_names[o->fit.term[at]]);
	return 0;
}

static uint64_t largest(uint64_t ranks_per_node, bool of_ranks)
{
	const struct fit_point *p;
	uint64_t value, most = 0;

	for (p = data.point; p < data.point + data.nr; p++) {
		value = of_ranks ? p->ranks : p->ranks_per_node;
		if ((!ranks_per_node || p->ranks_per_node == ranks_per_node) && value > most)
			most = value;
	}
	return most;
}

static void make_notes(const struct scale_job *job, unsigned int nr, struct scale_notes *notes)
{
	const uint64_t most = largest(0, true);
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (!largest(job[i].ranks_per_node, true))
			scale_note(notes, "no job with %" PRIu64 " ranks a node was measured",
				   job[i].ranks_per_node);
		if (job[i].ranks / FAR > most)
			scale_note(notes, "%" PRIu64 " ranks are %.0f times the largest job that "
				   "was measured", job[i].ranks, (double)job[i].ranks / most);
	}
}

static void print_text(const struct options *o, const struct scale_job *job, unsigned int nr)
{
	const double t = fit_student_95(o->fit.freedom);
	struct scale_notes notes = { 0 };
	double bytes, half;
	unsigned int i;

	printf("%s: %u measurements, n to %" PRIu64 ", m to %" PRIu64 "\n\n", o->file, data.nr,
	       largest(0, true), largest(0, false));
	printf("%-5s %24s %24s\n", "term", "bytes", "+- (95 %)");
	for (i = 0; i < o->fit.nr_terms; i++)
		printf("%-5s %24.6g %24.3g\n", fit_term_names[o->fit.term[i]], o->fit.bytes[i],
		       t * o->fit.error[i]);
	printf("\nr^2 %.6f, standard error %.3g %%, at most %.3g %%\n\n", o->fit.r2,
	       100 * o->fit.relative, 100 * o->fit.worst);
	printf("%20s %6s %20s  %12s  %12s\n", "nodes", "m", "ranks", "bytes a node", "+- (95 %)");
	for (i = 0; i < nr; i++) {
		bytes = fit_predict(&o->fit, job[i].ranks, job[i].ranks_per_node, &half);
		printf("%20" PRIu64 " %6" PRIu64 " %20" PRIu64,
		       job[i].ranks / job[i].ranks_per_node, job[i].ranks_per_node, job[i].ranks);
		printf("  %12s  %12s\n", human_double(bytes).text, human_double(half).text);
	}
	make_notes(job, nr, &notes);
	print_notes(&notes);
}

static void print_csv(const struct options *o, const struct scale_job *job, unsigned int nr)
{
	double bytes, half;
	unsigned int i;

	puts("nodes,ppn,ranks,bytes,error_bytes");
	for (i = 0; i < nr; i++) {
		bytes = fit_predict(&o->fit, job[i].ranks, job[i].ranks_per_node, &half);
		printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.12g,%.6g\n",
		       job[i].ranks / job[i].ranks_per_node, job[i].ranks_per_node, job[i].ranks,
		       bytes, half);
	}
}

static void print_json(const struct options *o, const struct scale_job *job, unsigned int nr)
{
	struct scale_notes notes = { 0 };
	double bytes, half;
	unsigned int i;

	printf("{\"schema\":1,\"command\":\"fit\",\"measurements\":%u,\"r2\":%.9g,"
	       "\"relative_error\":%.6g,\"worst_error\":%.6g,\"terms\":[", data.nr, o->fit.r2,
	       o->fit.relative, o->fit.worst);
	for (i = 0; i < o->fit.nr_terms; i++)
		printf("%s{\"term\":\"%s\",\"bytes\":%.12g,\"error_bytes\":%.6g}", i ? "," : "",
		       fit_term_names[o->fit.term[i]], o->fit.bytes[i],
		       fit_student_95(o->fit.freedom) * o->fit.error[i]);
	printf("],\"jobs\":[");
	for (i = 0; i < nr; i++) {
		bytes = fit_predict(&o->fit, job[i].ranks, job[i].ranks_per_node, &half);
		printf("%s{\"nodes\":%" PRIu64 ",\"ppn\":%" PRIu64 ",\"ranks\":%" PRIu64
		       ",\"bytes\":%.12g,\"error_bytes\":%.6g}", i ? "," : "",
		       job[i].ranks / job[i].ranks_per_node, job[i].ranks_per_node, job[i].ranks,
		       bytes, half);
	}
	printf("],");
	make_notes(job, nr, &notes);
	print_notes_json(&notes);
	puts("}");
}

/* Without a term in m, the fit knows only jobs with as many ranks a node as were measured. */
static int check_terms(const struct options *o, uint64_t ranks_per_node)
{
	const uint64_t most = largest(0, false);
	unsigned int i;

	for (i = 0; i < o->fit.nr_terms; i++)
		if (o->fit.term[i] != FIT_ONE && o->fit.term[i] != FIT_N)
			return 0;
	if (ranks_per_node == most)
		return 0;
	return fail_usage("--ppn %" PRIu64 ": only jobs with %" PRIu64 " ranks a node were fitted",
			  ranks_per_node, most);
}

int fit_command(const struct options *given)
{
	struct scale_job job[LIST_LENGTH];
	struct options o = *given;
	unsigned int i, nr;
	int status = fit_file(&o);

	if (!status && !o.nodes.nr && !o.ranks.nr)
		o.nodes = (struct list){ .nr = 1, .value = { DEFAULT_NODES } };
	if (!status && !o.ppn)
		o.ppn = largest(0, false);
	status = status ?: check_terms(&o, o.ppn);
	nr = options_nr_jobs(&o);
	for (i = 0; !status && i < nr; i++)
		status = options_job(&o, i, &job[i]);
	if (status)
		return status;
	if (o.format == CSV)
		print_csv(&o, job, nr);
	else if (o.format == JSON)
		print_json(&o, job, nr);
	else
		print_text(&o, job, nr);
	return 0;
}
