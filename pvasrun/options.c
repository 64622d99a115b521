// SPDX-License-Identifier: GPL-2.0-only
/* Parse the command line. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <linux/pvas.h>

#include "../libpvas/pvas.h"
#include "parse.h"

/* While parsing */
struct parser {
	struct options *opt;
	struct app *app;	/* whose options are being parsed */
	char *why;
	size_t len;
};

__attribute__((format(printf, 2, 3)))
static int refuse(struct parser *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->why, p->len, format, args);
	va_end(args);
	return -EINVAL;
}

static int refuse_memory(struct parser *p)
{
	refuse(p, "out of memory");
	return -ENOMEM;
}

/* ---- the values ---- */

static int take_tasks(struct parser *p, const char *text)
{
	int err = parse_count(text, 1, PVAS_MAX_TASKS, &p->app->tasks);

	if (err)
		return refuse(p, "-n '%s': not a number of tasks (1 to %d)", text, PVAS_MAX_TASKS);
	return 0;
}

static int take_export(struct parser *p, const char *text)
{
	struct app *app = p->app;
	const char **more;

	if (!text[0] || text[0] == '=')
		return refuse(p, "-x '%s': no variable's name (-x VAR or -x VAR=VALUE)", text);
	if (!strncmp(text, "PVAS_", 5))
		return refuse(p, "-x '%s': names that begin PVAS_ are pvasrun's own", text);
	more = reallocarray(app->exports, app->nr_exports + 1, sizeof(*more));
	if (!more)
		return refuse_memory(p);
	app->exports = more;
	app->exports[app->nr_exports++] = text;
	return 0;
}

static int take_stdin(struct parser *p, const char *text)
{
	static const char *const names[] = { [STDIN_ALL] = "all", [STDIN_NONE] = "none", NULL };
	int choice = parse_choice(text, names);

	p->opt->stdin_to = choice;
	if (choice >= 0)
		return 0;
	p->opt->stdin_to = STDIN_RANK;
	if (parse_count(text, 0, PVAS_MAX_TASKS - 1, &p->opt->stdin_rank))
		return refuse(p, "--stdin '%s': unknown (a rank, all or none)", text);
	return 0;
}

static int take_timeout(struct parser *p, const char *text)
{
	p->opt->timeout_text = text;
	if (parse_seconds(text, &p->opt->timeout_ms))
		return refuse(p, "--timeout '%s': not a time (seconds, or 5m, 2h, 1d)", text);
	return 0;
}

static int take_partition_size(struct parser *p, const char *text)
{
	uint64_t size;

	if (parse_size(text, &size) || size < 1ULL << PVAS_SHIFT_MIN ||
	    size > 1ULL << PVAS_SHIFT_MAX || (size & (size - 1)))
		return refuse(p, "--partition-size '%s': not a power of two from 4G to 8T", text);
	p->opt->partition_size = size;
	return 0;
}

static int take_bind_to(struct parser *p, const char *text)
{
	static const char *const names[] = {
		[BIND_CORE] = "core", [BIND_NUMA] = "numa", [BIND_NONE] = "none", NULL
	};
	int choice = parse_choice(text, names);

	if (choice < 0)
		return refuse(p, "--bind-to '%s': unknown (core, numa or none)", text);
	p->opt->bind_to = choice;
	return 0;
}

static int take_mem_bind(struct parser *p, const char *text)
{
	static const char *const names[] = {
		[MEM_LOCAL] = "local", [MEM_INTERLEAVE] = "interleave", [MEM_NONE] = "none", NULL
	};
	int choice = parse_choice(text, names);

	if (choice < 0)
		return refuse(p, "--mem-bind '%s': unknown (local, interleave or none)", text);
	p->opt->mem_bind = choice;
	return 0;
}

static int take_backend(struct parser *p, const char *text)
{
	static const char *const names[] = {
		[PVAS_BACKEND_AUTO] = "auto", [PVAS_BACKEND_KERNEL] = "kernel",
		[PVAS_BACKEND_USER] = "user", NULL
	};
	int choice = parse_choice(text, names);

	if (choice < 0)
		return refuse(p, "--backend '%s': unknown (auto, kernel or user)", text);
	p->opt->backend = choice;
	return 0;
}

static int take_mpi(struct parser *p, const char *text)
{
	static const char *const names[] = {
		[MPI_AUTO] = "auto", [MPI_PMIX] = "pmix", [MPI_PMI1] = "pmi1", [MPI_NONE] = "none",
		NULL
	};
	int choice = parse_choice(text, names);

	if (choice < 0)
		return refuse(p, "--mpi '%s': unknown (auto, pmix, pmi1 or none)", text);
	p->opt->mpi = choice;
	return 0;
}

static int take_orphans(struct parser *p, const char *text)
{
	static const char *const names[] = {
		[ORPHANS_WARN] = "warn", [ORPHANS_WAIT] = "wait", [ORPHANS_KILL] = "kill", NULL
	};
	int choice = parse_choice(text, names);

	if (choice < 0)
		return refuse(p, "--orphans '%s': unknown (warn, wait or kill)", text);
	p->opt->orphans = choice;
	return 0;
}

static int take_pty(struct parser *p, const char *text)
{
	static const char *const names[] = {
		[PTY_AUTO] = "auto", [PTY_ALWAYS] = "always", [PTY_NEVER] = "never", NULL
	};
	int choice = parse_choice(text, names);

	if (choice < 0)
		return refuse(p, "--pty '%s': unknown (auto, always or never)", text);
	p->opt->pty = choice;
	return 0;
}

/* Open MPI counts ranks in an int, and PMIx keeps the highest numbers for itself. */
#define MAX_RANKS (1U << 30)

static int take_pretend(struct parser *p, const char *text)
{
	struct pretence *to = &p->opt->pretend;
	char words[64], *nodes = words, *per_node, *full;

	snprintf(words, sizeof(words), "%s", text);
	full = strchr(words, ',');
	if (full)
		*full++ = '\0';
	per_node = strchr(words, ':');
	if (per_node)
		*per_node++ = '\0';
	*to = (struct pretence){ .full = full };
	if (strlen(text) >= sizeof(words) || (full && strcmp(full, "full")) ||
	    parse_count(nodes, 1, MAX_RANKS, &to->nodes) ||
	    (per_node && parse_count(per_node, 1, PVAS_MAX_TASKS, &to->per_node)))
		return refuse(p, "--pretend '%s': not NODES[:PPN][,full] (1 to %u nodes, 1 to %d tasks)",
			      text, MAX_RANKS, PVAS_MAX_TASKS);
	return 0;
}

static int take_far(struct parser *p, int key, const char *text)
{
	const char *wrong = options_take_far(&p->opt->far, key, text);

	return wrong ? refuse(p, "%s (not '%s')", wrong, text) : 0;
}

static int take_value(struct parser *p, int key, const char *text)
{
	if (key >= KEY_RAM)
		return take_far(p, key, text);
	switch (key) {
	case 'n':
		return take_tasks(p, text);
	case 'x':
		return take_export(p, text);
	case KEY_WDIR:
		p->app->wdir = text;
		return 0;
	case KEY_BIND_TO:
		return take_bind_to(p, text);
	case KEY_MEM_BIND:
		return take_mem_bind(p, text);
	case KEY_STDIN:
		return take_stdin(p, text);
	case KEY_TIMEOUT:
		return take_timeout(p, text);
	case KEY_PARTITION_SIZE:
		return take_partition_size(p, text);
	case KEY_PRETEND:
		return take_pretend(p, text);
	case KEY_PTY:
		return take_pty(p, text);
	case KEY_ORPHANS:
		return take_orphans(p, text);
	case KEY_MPI:
		return take_mpi(p, text);
	default:
		return take_backend(p, text);
	}
}

static void take_flag(struct options *opt, int key)
{
	switch (key) {
	case KEY_TAG_OUTPUT:
		opt->tag_output = true;
		break;
	case KEY_NO_KILL:
		opt->no_kill = true;
		break;
	case KEY_NO_BTL:
		opt->no_btl = true;
		break;
	case KEY_NO_ASLR:
		opt->no_aslr = true;
		break;
	case KEY_MAP:
		opt->map = true;
		break;
	case 'v':
		opt->verbose = true;
		break;
	case 'q':
		opt->quiet = true;
		break;
	case KEY_CHECK:
		opt->action = ACTION_CHECK;
		break;
	case 'h':
		opt->action = ACTION_HELP;
		break;
	case 'V':
		opt->action = ACTION_VERSION;
		break;
	}
}

/* ---- the command line ---- */

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
		return refuse(p, "option '%s' needs a value (see pvasrun --help)", word);
	if (key == '?' && optopt > 0 && optopt < 256 && word[1] != '-')
		return refuse(p, "unknown option '-%c' (see pvasrun --help)", optopt);
	if (key == '?')
		return refuse(p, "option '%s' is unknown, ambiguous or takes no value (see pvasrun --help)",
			      word);
	row = row_of(key);
	if (!row->per_app && p->opt->nr_apps > 1)
		return refuse(p, "option '--%s' concerns the whole job (move it before the first program)",
			      row->name);
	if (!row->has_value) {
		take_flag(p->opt, key);
		return 0;
	}
	value = value_of(key, argc, argv);
	if (!value)
		return refuse(p, "option '-np' needs a value (see pvasrun --help)");
	return take_value(p, key, value);
}

/* All words after --check are programs, also after a "--" */
static int take_check(struct parser *p, char **words)
{
	if (*words && !strcmp(*words, "--"))
		words++;
	p->opt->check = words;
	return *words ? 0 : refuse(p, "no program given (pvasrun --check PROG...)");
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
		if (!err && p->opt->action == ACTION_CHECK)
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
		return refuse_memory(p);
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
		return refuse(p, "no program given (pvasrun -n N [options] prog [args])");
	if (!p->app->tasks)
		return refuse(p, "how many tasks of '%s'? (say -n N before it)", argv[*at]);
	if (!argv[*at][0])
		return refuse(p, "the program's name is empty");
	p->app->argv = argv + *at;
	p->app->first_rank = p->opt->tasks;
	p->opt->tasks += p->app->tasks;
	if (p->opt->tasks > PVAS_MAX_TASKS)
		return refuse(p, "%u tasks are too many (a space holds %d)", p->opt->tasks,
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
		return refuse(p, "--pretend %u:%u: fewer ranks than tasks (%u)", job->nodes,
			      job->per_node, tasks);
	if (tasks != job->per_node)
		return refuse(p, "--pretend %u:%u: a node has PPN ranks, this one %u (give -n and PPN one number)",
			      job->nodes, job->per_node, tasks);
	if ((uint64_t)job->nodes * job->per_node > MAX_RANKS)
		return refuse(p, "--pretend %u:%u: more than %u ranks", job->nodes, job->per_node,
			      MAX_RANKS);
	if (p->opt->mpi == MPI_NONE)
		return refuse(p, "--pretend: ranks of MPI need PMIx or PMI-1 (not --mpi none)");
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
		return refuse(&p, "--stdin %u: there is no such rank (0 to %u)", opt->stdin_rank,
			      opt->tasks - 1);
	wrong = options_check_far(opt);
	return wrong ? refuse(&p, "%s", wrong) : check_pretence(&p);
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
