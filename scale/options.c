// SPDX-License-Identifier: GPL-2.0-only
/* The command line: one table for all commands, with the commands that have each option. */
#include "command.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#define NR_OPTIONS	21

enum key {
	KEY_CSV = 256, KEY_JSON, KEY_PLOT, KEY_MODEL, KEY_NODES, KEY_RANKS, KEY_PPN, KEY_COMMS,
	KEY_CONTEXTS, KEY_CAP, KEY_HOPS, KEY_ORIGINAL, KEY_BYTES, KEY_LATENCY, KEY_BANDWIDTH,
	KEY_SCHEDULE, KEY_TERMS, KEY_NEIGHBOURS = 'N', KEY_DEVICES = 'C', KEY_HELP = 'h',
	KEY_VERSION = 'V'
};

static const char *const model_names[] = { "both", "baseline", "lean", "k", "pvas", NULL };

static const struct option long_options[] = {
	{ "csv", no_argument, NULL, KEY_CSV },
	{ "json", no_argument, NULL, KEY_JSON },
	{ "plot", required_argument, NULL, KEY_PLOT },
	{ "model", required_argument, NULL, KEY_MODEL },
	{ "nodes", required_argument, NULL, KEY_NODES },
	{ "ranks", required_argument, NULL, KEY_RANKS },
	{ "ppn", required_argument, NULL, KEY_PPN },
	{ "comms", required_argument, NULL, KEY_COMMS },
	{ "contexts", required_argument, NULL, KEY_CONTEXTS },
	{ "cap", required_argument, NULL, KEY_CAP },
	{ "hops", required_argument, NULL, KEY_HOPS },
	{ "original", no_argument, NULL, KEY_ORIGINAL },
	{ "neighbours", required_argument, NULL, KEY_NEIGHBOURS },
	{ "devices", required_argument, NULL, KEY_DEVICES },
	{ "bytes", required_argument, NULL, KEY_BYTES },
	{ "latency", required_argument, NULL, KEY_LATENCY },
	{ "bandwidth", required_argument, NULL, KEY_BANDWIDTH },
	{ "schedule", required_argument, NULL, KEY_SCHEDULE },
	{ "terms", required_argument, NULL, KEY_TERMS },
	{ "help", no_argument, NULL, KEY_HELP },
	{ "version", no_argument, NULL, KEY_VERSION },
	{ 0 }
};

/* In the order of long_options */
static const unsigned int commands_of[NR_OPTIONS] = {
	MEMORY | NEIGHBOUR | FIT, MEMORY | NEIGHBOUR | FIT, MEMORY | NEIGHBOUR, MEMORY,
	MEMORY | FIT, MEMORY | FIT, MEMORY | FIT, MEMORY, MEMORY, MEMORY, MEMORY, MEMORY,
	NEIGHBOUR, NEIGHBOUR, NEIGHBOUR, NEIGHBOUR, NEIGHBOUR, NEIGHBOUR, FIT,
	MEMORY | NEIGHBOUR | FIT, MEMORY | NEIGHBOUR | FIT,
};

static unsigned int index_of(int key)
{
	unsigned int i;

	for (i = 0; long_options[i].name && long_options[i].val != key; i++)
		;
	return i;
}

bool options_given(const struct options *o, const char *name)
{
	unsigned int i;

	for (i = 0; long_options[i].name; i++)
		if (!strcmp(long_options[i].name, name))
			return o->given & (1UL << i);
	return false;
}

/* Options with one whole number, or a list of them */
static bool take_number(struct options *o, int key)
{
	switch (key) {
	case KEY_NODES:
		return word_list(optarg, false, &o->nodes);
	case KEY_RANKS:
		return word_list(optarg, false, &o->ranks);
	case KEY_BYTES:
		return word_list(optarg, true, &o->bytes);
	case KEY_PPN:
		return word_number(optarg, 1, &o->ppn);
	case KEY_COMMS:
		return word_number(optarg, 0, &o->comms);
	case KEY_CONTEXTS:
		return word_number(optarg, 1, &o->contexts);
	case KEY_CAP:
		return word_number(optarg, 1, &o->cap);
	case KEY_HOPS:
		return word_number(optarg, 1, &o->hops);
	case KEY_NEIGHBOURS:
		return word_number(optarg, 1, &o->exchange.neighbours);
	default:
		return word_number(optarg, 1, &o->exchange.devices);
	}
}

/* Options that are no numbers; false: a wrong word */
static bool take_word(struct options *o, int key)
{
	int choice;

	switch (key) {
	case KEY_MODEL:
		choice = word_choice(optarg, model_names);
		o->model = choice;
		return choice >= 0;
	case KEY_LATENCY:
		return word_time_us(optarg, &o->link.latency_us);
	case KEY_BANDWIDTH:
		return word_bytes_per_us(optarg, &o->link.bytes_per_us);
	case KEY_SCHEDULE:
		o->schedule = true;
		return word_steps(optarg, &o->first, &o->last);
	case KEY_TERMS:
		return word_terms(optarg, &o->fit);
	default:
		o->plot = optarg;
		return *optarg;
	}
}

static const char *wanted(int key)
{
	switch (key) {
	case KEY_MODEL:
		return "not baseline, lean, both, k or pvas";
	case KEY_LATENCY:
		return "not a time like 1us";
	case KEY_BANDWIDTH:
		return "not a rate like 5G";
	case KEY_SCHEDULE:
		return "not \"all\" or steps like 0..9";
	case KEY_TERMS:
		return "not some of 1,n,mn,m2,m,n/m, each once";
	case KEY_PLOT:
		return "not a file name";
	case KEY_NODES:
	case KEY_RANKS:
	case KEY_BYTES:
		return "not whole numbers from 1, at most 64, like 1024,4096 or 1024..65536";
	case KEY_COMMS:
		return "not a whole number of 64 bits";
	default:
		return "not a whole number of 64 bits, from 1";
	}
}

static bool is_number(int key)
{
	return key == KEY_BYTES || key == KEY_NEIGHBOURS || key == KEY_DEVICES ||
	       (key >= KEY_NODES && key <= KEY_HOPS);
}

/* Returns the exit status, or -1 to continue. */
static int take_option(struct options *o, int key)
{
	const unsigned int i = index_of(key);

	if (!(commands_of[i] & o->command))
		return fail_usage("--%s is no option of this command (see pvas-scale --help)",
				  long_options[i].name);
	o->given |= 1UL << i;
	if (key == KEY_CSV || key == KEY_JSON)
		o->format = key == KEY_CSV ? CSV : JSON;
	else if (key == KEY_ORIGINAL)
		o->original = true;
	else if (!(is_number(key) ? take_number(o, key) : take_word(o, key)))
		return fail_usage("--%s '%s': %s", long_options[i].name, optarg, wanted(key));
	return -1;
}

static int take_rest(struct options *o, int argc, char **argv)
{
	if (o->command == FIT && optind < argc)
		o->file = argv[optind++];
	if (optind < argc)
		return fail_usage("'%s': not an option (see pvas-scale --help)", argv[optind]);
	if (o->command == FIT && !o->file)
		return fail_usage("fit needs a file (see pvas-scale --help)");
	if (options_given(o, "csv") && options_given(o, "json"))
		return fail_usage("--csv does not go with --json");
	if (o->plot && o->format != TEXT)
		return fail_usage("--plot does not go with --csv or --json");
	if (o->ranks.nr && o->nodes.nr)
		return fail_usage("--ranks does not go with --nodes");
	return -1;
}

int options_parse(struct options *o, int argc, char **argv)
{
	int key, status;

	opterr = 0;
	while ((key = getopt_long(argc, argv, ":N:C:Vh", long_options, NULL)) != -1) {
		switch (key) {
		case ':':
			return fail_usage("'%s' needs a value (see pvas-scale --help)",
					  argv[optind - 1]);
		case '?':
			return fail_usage("unknown option '%s' (see pvas-scale --help)",
					  argv[optind - 1]);
		case KEY_HELP:
			fputs(help_text, stdout);
			return 0;
		default:
			status = take_option(o, key);
		}
		if (status >= 0)
			return status;
	}
	return take_rest(o, argc, argv);
}

unsigned int options_nr_jobs(const struct options *o)
{
	return o->ranks.nr ? o->ranks.nr : o->nodes.nr;
}

int options_job(const struct options *o, unsigned int i, struct scale_job *job)
{
	*job = (struct scale_job){
		.ranks_per_node = o->ppn,
		.communicators = o->comms,
		.contexts = o->contexts,
		.original = o->original,
	};
	if (o->ranks.nr) {
		job->ranks = o->ranks.value[i];
		if (o->ppn > job->ranks)
			return fail_usage("--ppn %" PRIu64 ": more than the %" PRIu64 " ranks",
					  o->ppn, job->ranks);
		if (job->ranks % o->ppn)
			return fail_usage("--ranks %" PRIu64 ": not a multiple of --ppn %" PRIu64,
					  job->ranks, o->ppn);
		return 0;
	}
	if (__builtin_mul_overflow(o->nodes.value[i], o->ppn, &job->ranks))
		return fail_usage("%" PRIu64 " nodes of %" PRIu64 " ranks: their product does not "
				  "fit into 64 bits", o->nodes.value[i], o->ppn);
	return 0;
}
