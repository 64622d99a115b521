// SPDX-License-Identifier: GPL-2.0-only
/* pvas-scale memory --model k: the K computer's MPI library, figure 10 of its paper. */
#include "command.h"

#include <inttypes.h>

#define DEFAULT_NODES	9216
#define DEFAULT_CAP	1024
#define DEFAULT_HOPS	1

static const enum scale_k_mode modes[] = { SCALE_K_FAST, SCALE_K_CAPPED, SCALE_K_LEAN };
static const char *const mode_names[] = { "fast", "capped", "lean" };

#define NR_MODES	(sizeof(modes) / sizeof(modes[0]))

static void print_text(const struct options *o)
{
	struct scale_notes notes = { 0 };
	unsigned int i, k;
	uint64_t bytes, n;

	printf("bytes a node; 1 rank a node, cap = %" PRIu64 " fast peers\n\n", o->cap);
	printf("%20s  %-7s %20s %20s\n", "nodes", "mode", "fast peers", "bytes a node");
	for (i = 0; i < o->nodes.nr; i++) {
		n = o->nodes.value[i];
		for (k = 0; k < NR_MODES; k++) {
			bytes = scale_k_bytes(modes[k], n, o->cap);
			printf("%20" PRIu64 "  %-7s %20" PRIu64 " %20" PRIu64 "  %8s\n", n,
			       mode_names[k], scale_k_fast_peers(modes[k], n, o->cap), bytes,
			       human_bytes(bytes).text);
		}
		bytes = scale_k_all_eager_bytes(n);
		printf("%20" PRIu64 "  %-7s %20s %20" PRIu64 "  %8s\n", n, "eager",
		       "(128 KB x 2 a peer)", bytes, human_bytes(bytes).text);
	}
	printf("\nM(n) = base + a n + b min(n, cap): base %s, ",
	       human_bytes(scale_k_base_bytes()).text);
	printf("a %s, ", human_bytes(scale_k_lean_peer_bytes()).text);
	printf("b %s (capped), ", human_bytes(scale_k_fast_peer_bytes(SCALE_K_CAPPED)).text);
	printf("%s (fast)\n", human_bytes(scale_k_fast_peer_bytes(SCALE_K_FAST)).text);
	printf("hops %" PRIu64 ": eager up to %" PRIu64 " bytes, latency %" PRIu64 " ns\n", o->hops,
	       scale_k_eager_limit_bytes(o->hops), scale_k_latency_ns(o->hops));
	scale_k_notes(&notes);
	print_notes(&notes);
}

static void print_csv(const struct options *o)
{
	unsigned int i, k;
	uint64_t n;

	puts("nodes,ppn,ranks,cap,model,mode,fast_peers,bytes");
	for (i = 0; i < o->nodes.nr; i++)
		for (k = 0; k < NR_MODES; k++) {
			n = o->nodes.value[i];
			printf("%" PRIu64 ",1,%" PRIu64 ",%" PRIu64 ",k,%s,%" PRIu64 ",%" PRIu64
			       "\n", n, n, o->cap, mode_names[k],
			       scale_k_fast_peers(modes[k], n, o->cap),
			       scale_k_bytes(modes[k], n, o->cap));
		}
}

static void print_json(const struct options *o)
{
	struct scale_notes notes = { 0 };
	unsigned int i, k;
	uint64_t n;

	printf("{\"schema\":1,\"command\":\"memory\",\"cap\":%" PRIu64 ",\"hops\":%" PRIu64
	       ",\"eager_limit_bytes\":%" PRIu64 ",\"latency_ns\":%" PRIu64 ",\"jobs\":[", o->cap,
	       o->hops, scale_k_eager_limit_bytes(o->hops), scale_k_latency_ns(o->hops));
	for (i = 0; i < o->nodes.nr; i++) {
		n = o->nodes.value[i];
		printf("%s{\"nodes\":%" PRIu64 ",\"ppn\":1,\"ranks\":%" PRIu64
		       ",\"all_eager_bytes\":%" PRIu64 ",\"modes\":[", i ? "," : "", n, n,
		       scale_k_all_eager_bytes(n));
		for (k = 0; k < NR_MODES; k++)
			printf("%s{\"mode\":\"%s\",\"fast_peers\":%" PRIu64 ",\"bytes\":%" PRIu64 "}",
			       k ? "," : "", mode_names[k],
			       scale_k_fast_peers(modes[k], n, o->cap),
			       scale_k_bytes(modes[k], n, o->cap));
		printf("]}");
	}
	printf("],");
	scale_k_notes(&notes);
	print_notes_json(&notes);
	puts("}");
}

static int plot(const struct options *o)
{
	unsigned int i, k;
	FILE *out;
	int status;

	status = plot_begin(o->plot, "Memory of the K computer's MPI library", "nodes",
			    "bytes a node", &out);
	if (status)
		return status;
	for (k = 0; k < NR_MODES; k++)
		fprintf(out, "%s '-' with linespoints title '%s'", k ? "," : "plot", mode_names[k]);
	fputc('\n', out);
	for (k = 0; k < NR_MODES; k++) {
		for (i = 0; i < o->nodes.nr; i++)
			fprintf(out, "%" PRIu64 " %" PRIu64 "\n", o->nodes.value[i],
				scale_k_bytes(modes[k], o->nodes.value[i], o->cap));
		fputs("e\n", out);
	}
	return plot_end(out, o->plot);
}

/* Options of the lean paper's models say nothing here. */
static int set_defaults(struct options *o)
{
	static const char *const others[] = { "comms", "contexts", "original" };
	unsigned int i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (options_given(o, others[i]))
			return fail_usage("--%s does not go with --model k", others[i]);
	if (o->ppn > 1)
		return fail_usage("--ppn %" PRIu64 ": the model k has 1 rank a node", o->ppn);
	if (o->ranks.nr)
		o->nodes = o->ranks;
	if (!o->nodes.nr)
		o->nodes = (struct list){ .nr = 1, .value = { DEFAULT_NODES } };
	if (!o->cap)
		o->cap = DEFAULT_CAP;
	if (!o->hops)
		o->hops = DEFAULT_HOPS;
	if (o->plot && o->nodes.nr < 2)
		return fail_usage("--plot needs several sizes (--nodes 96..9216)");
	return 0;
}

static int check_sizes(const struct options *o)
{
	unsigned int i, k;
	uint64_t n;

	for (i = 0; i < o->nodes.nr; i++) {
		n = o->nodes.value[i];
		for (k = 0; k < NR_MODES; k++)
			if (scale_k_bytes(modes[k], n, o->cap) == SCALE_TOO_LARGE)
				return fail_usage("%" PRIu64 " nodes: the bytes of a node do not "
						  "fit into 64 bits", n);
	}
	if (scale_k_eager_limit_bytes(o->hops) == SCALE_TOO_LARGE ||
	    scale_k_latency_ns(o->hops) == SCALE_TOO_LARGE)
		return fail_usage("--hops %" PRIu64 ": its bytes do not fit into 64 bits", o->hops);
	return 0;
}

int k_command(const struct options *given)
{
	struct options o = *given;
	int status = set_defaults(&o) ?: check_sizes(&o);

	if (status)
		return status;
	if (o.plot)
		return plot(&o);
	if (o.format == CSV)
		print_csv(&o);
	else if (o.format == JSON)
		print_json(&o);
	else
		print_text(&o);
	return 0;
}
