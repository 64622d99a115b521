// SPDX-License-Identifier: GPL-2.0-only
/* Parse the command line. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <linux/pvas.h>

#include "../libpvas/pvas.h"
#include "options_values.h"
#include "parse.h"

static const struct option_row *row_of(int key)
{
	unsigned int i;

	for (i = 0; i < nr_option_rows; i++)
		if (option_rows[i].key == key)
			return &option_rows[i];
	return NULL;
}

/* Convert our table for getopt_long(). */
static void getopt_tables(struct option *longs, char *letters)
{
	unsigned int i;

	*letters++ = '+';	/* stop at the first word that is not an option */
	*letters++ = ':';	/* distinguish a missing value from an unknown option */
	for (i = 0; i < nr_option_rows; i++) {
		const struct option_row *row = &option_rows[i];

		longs[i] = (struct option){ row->name, row->has_value, NULL, row->key };
		if (row->key < 256) {
			*letters++ = row->key;
			if (row->has_value)
				*letters++ = ':';
		}
	}
	longs[i] = (struct option){ 0 };
	*letters = '\0';
}

/* mpirun's -np: getopt takes it for -n with the value "p". NULL: there is no number. */
static const char *value_of(int key, int argc, char **argv)
{
	if (key != 'n' || optarg[0] != 'p' || optarg != argv[optind - 1] + 2)
		return optarg;
	if (optarg[1])
		return optarg + 1;
	return optind < argc ? argv[optind++] : NULL;
}

static int take_option(struct parser *p, int key, int argc, char **argv)
{
	const char *word = argv[optind - 1], *value;
	const struct option_row *row;

	if (key == ':')
		return options_refuse(p, "option '%s' needs a value (see pvasrun --help)", word);
	if (key == '?' && optopt > 0 && optopt < 256 && word[1] != '-')
		return options_refuse(p, "unknown option '-%c' (see pvasrun --help)", optopt);
	if (key == '?')
		return options_refuse(p, "option '%s' is unknown, ambiguous or takes no value (see pvasrun --help)",
			      word);
	row = row_of(key);
	if (!row->per_app && p->opt->nr_apps > 1)
		return options_refuse(p, "option '--%s' concerns the whole job (move it before the first program)",
			      row->name);
	if (!row->has_value) {
		options_take_flag(p->opt, key);
		return 0;
	}
	value = value_of(key, argc, argv);
	if (!value)
		return options_refuse(p, "option '-np' needs a value (see pvasrun --help)");
	return options_take_value(p, key, value);
}

/* All words after --check are programs, and after --check-run one with its arguments. */
static int take_check(struct parser *p, char **words)
{
	if (*words && !strcmp(*words, "--"))
		words++;
	p->opt->check = words;
	return *words ? 0 : options_refuse(p, "no program given (see pvasrun --help)");
}

/*
 * Parse the options before one program. *@at is then the index of the program, and
 * *@literal is true if a "--" precedes it.
 */
static int parse_options(struct parser *p, int argc, char **argv, int *at, bool *literal)
{
	struct option longs[MAX_OPTION_ROWS];
	char letters[2 * MAX_OPTION_ROWS + 3];
	int key, before, err;

	getopt_tables(longs, letters);
	/* getopt skips argv[0]: let that be the word before the options */
	argv += *at - 1;
	argc -= *at - 1;
	opterr = 0;
	optind = 0;
	for (before = 1;; before = optind) {
		key = getopt_long(argc, argv, letters, longs, NULL);
		if (key < 0)
			break;
		err = take_option(p, key, argc, argv);
		if (!err && (p->opt->action == ACTION_CHECK || p->opt->action == ACTION_CHECK_RUN))
			return take_check(p, argv + optind);
		if (err || p->opt->action != ACTION_RUN)
			return err;
	}
	*literal = optind > before;	/* getopt has skipped a "--" */
	*at += optind - 1;
	return 0;
}

static int add_app(struct parser *p)
{
	struct options *opt = p->opt;
	struct app *more = reallocarray(opt->apps, opt->nr_apps + 1, sizeof(*more));

	if (!more)
		return options_refuse_memory(p);
	opt->apps = more;
	p->app = &more[opt->nr_apps++];
	*p->app = (struct app){ 0 };
	return 0;
}

/* Parse one program with its options and arguments; *@at is then the index of the ':' */
static int parse_app(struct parser *p, int argc, char **argv, int *at)
{
	bool literal;
	int err;

	err = add_app(p);
	if (!err)
		err = parse_options(p, argc, argv, at, &literal);
	if (err || p->opt->action != ACTION_RUN)
		return err;
	if (*at >= argc || (!literal && !strcmp(argv[*at], ":")))
		return options_refuse(p, "no program given (pvasrun -n N [options] prog [args])");
	if (!p->app->tasks)
		return options_refuse(p, "how many tasks of '%s'? (say -n N before it)", argv[*at]);
	if (!argv[*at][0])
		return options_refuse(p, "the program's name is empty");
	p->app->argv = argv + *at;
	p->app->first_rank = p->opt->tasks;
	p->opt->tasks += p->app->tasks;
	if (p->opt->tasks > PVAS_MAX_TASKS)
		return options_refuse(p, "%u tasks are too many (a space holds %d)", p->opt->tasks,
			      PVAS_MAX_TASKS);
	while (*at < argc && (literal || strcmp(argv[*at], ":")))
		++*at;
	return 0;
}

static int parse_apps(struct parser *p, int argc, char **argv)
{
	int at = 1, err;

	for (;;) {
		err = parse_app(p, argc, argv, &at);
		if (err || p->opt->action != ACTION_RUN || at >= argc)
			return err;
		argv[at++] = NULL;	/* the ':' ends the program's arguments */
	}
}

static int check_pretence(struct parser *p)
{
	struct pretence *job = &p->opt->pretend;
	unsigned int tasks = p->opt->tasks;

	if (!job->nodes)
		return 0;
	if (!job->per_node)
		job->per_node = tasks;
	if (tasks > (uint64_t)job->nodes * job->per_node)
		return options_refuse(p, "--pretend %u:%u: fewer ranks than tasks (%u)", job->nodes,
			      job->per_node, tasks);
	if (tasks != job->per_node)
		return options_refuse(p, "--pretend %u:%u: a node has PPN ranks, this one %u (give -n and PPN one number)",
			      job->nodes, job->per_node, tasks);
	if ((uint64_t)job->nodes * job->per_node > MAX_RANKS)
		return options_refuse(p, "--pretend %u:%u: more than %u ranks", job->nodes, job->per_node,
			      MAX_RANKS);
	if (p->opt->mpi == MPI_NONE)
		return options_refuse(p, "--pretend: ranks of MPI need PMIx or PMI-1 (not --mpi none)");
	return 0;
}

int options_parse(struct options *opt, int argc, char **argv, char *why, size_t len)
{
	struct parser p = { .opt = opt, .why = why, .len = len };
	const char *wrong;
	int err;

	*opt = (struct options){
		.bind_to = BIND_DEFAULT,
		.mem_bind = MEM_NONE,
		.stdin_to = STDIN_RANK,
		.backend = PVAS_BACKEND_AUTO,
		.mpi = MPI_AUTO,
	};
	why[0] = '\0';
	err = parse_apps(&p, argc, argv);
	if (err || opt->action != ACTION_RUN)
		return err;
	if (opt->stdin_to == STDIN_RANK && opt->stdin_rank >= opt->tasks)
		return options_refuse(&p, "--stdin %u: there is no such rank (0 to %u)", opt->stdin_rank,
			      opt->tasks - 1);
	wrong = options_check_far(opt);
	return wrong ? options_refuse(&p, "%s", wrong) : check_pretence(&p);
}

void options_free(struct options *opt)
{
	unsigned int i;

	for (i = 0; i < opt->nr_apps; i++) {
		free(opt->apps[i].exports);
		free(opt->apps[i].path);
		free(opt->apps[i].own_argv);
	}
	free(opt->apps);
}
