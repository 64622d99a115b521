// SPDX-License-Identifier: GPL-2.0-only
/* Parsing the command line, and its error messages */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../libpvas/pvas.h"
#include "../options.h"
#include "unit.h"

#define WORDS_MAX 32

/* A command line in words; '_' stands for an empty word. */
struct line {
	char text[512];
	char *argv[WORDS_MAX];
	int argc;
	struct options opt;
	char why[256];
	int ret;
};

static void parse(struct line *line, const char *text)
{
	char *word, *rest = line->text;

	snprintf(line->text, sizeof(line->text), "pvasrun %s", text);
	line->argc = 0;
	while ((word = strsep(&rest, " ")))
		line->argv[line->argc++] = strcmp(word, "_") ? word : (char *)"";
	line->argv[line->argc] = NULL;
	line->ret = options_parse(&line->opt, line->argc, line->argv, line->why,
				  sizeof(line->why));
}

/* The programs as text: "tasks@first:wdir word word|..." */
static const char *apps_text(const struct options *opt)
{
	static char text[512];
	size_t used = 0;
	unsigned int i;
	char **word;

	text[0] = '\0';
	for (i = 0; i < opt->nr_apps; i++) {
		const struct app *app = &opt->apps[i];

		used += snprintf(text + used, sizeof(text) - used, "%s%u@%u:%s", i ? "|" : "",
				 app->tasks, app->first_rank, app->wdir ? app->wdir : "");
		for (word = app->argv; word && *word; word++)
			used += snprintf(text + used, sizeof(text) - used, " %s", *word);
	}
	return text;
}

static void test_apps(void)
{
	static const struct { const char *line, *apps; } cases[] = {
		{ "-n 4 ./app", "4@0: ./app" },
		{ "-n4 ./app a b", "4@0: ./app a b" },
		{ "-np 4 ./app", "4@0: ./app" },
		{ "-np4 ./app", "4@0: ./app" },
		{ "--np 4 ./app", "4@0: ./app" },
		{ "--np=4 ./app", "4@0: ./app" },
		{ "-n 4 ./app -n 5 --timeout 3", "4@0: ./app -n 5 --timeout 3" },
		{ "-n 4 -- ./app", "4@0: ./app" },
		{ "-n 4 -- -app", "4@0: -app" },
		{ "-n 4 ./app -- x", "4@0: ./app -- x" },
		{ "-n 1 a : -n 2 b c", "1@0: a|2@1: b c" },
		{ "-n 1 a : -np 2 b : --np 3 c", "1@0: a|2@1: b|3@3: c" },
		{ "-n 1 --wdir /x a : -n 2 --wd /y b", "1@0:/x a|2@1:/y b" },
		{ "-n 1 a : -n 2 -- b : c", "1@0: a|2@1: b : c" },
		{ "-n 1 -- a : -n 2 b", "1@0: a : -n 2 b" },
		{ "-n 1 -x -- a : -n 2 b", "1@0: a|2@1: b" },
		{ "-n 1 a x:y :z", "1@0: a x:y :z" },
		{ "-n 1 a _ b", "1@0: a  b" },
		{ "-n 4096 a", "4096@0: a" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct line line;

		parse(&line, cases[i].line);
		check_case(line.ret == 0, line.why);
		check_text(apps_text(&line.opt), cases[i].apps, cases[i].line);
		options_free(&line.opt);
	}
}

static void test_refusals(void)
{
	static const struct { const char *line, *why; } cases[] = {
		{ "-n", "option '-n' needs a value (see pvasrun --help)" },
		{ "-np", "option '-np' needs a value (see pvasrun --help)" },
		{ "--wdir", "option '--wdir' needs a value (see pvasrun --help)" },
		{ "-z", "unknown option '-z' (see pvasrun --help)" },
		{ "-n 1 --frob a",
		  "option '--frob' is unknown, ambiguous or takes no value (see pvasrun --help)" },
		{ "-n 1 --map=x a",
		  "option '--map=x' is unknown, ambiguous or takes no value (see pvasrun --help)" },
		{ "-n 1 --m a",
		  "option '--m' is unknown, ambiguous or takes no value (see pvasrun --help)" },
		{ "a", "how many tasks of 'a'? (say -n N before it)" },
		{ "-n 1 a : b", "how many tasks of 'b'? (say -n N before it)" },
		{ "-n 1", "no program given (pvasrun -n N [options] prog [args])" },
		{ "-n 1 --", "no program given (pvasrun -n N [options] prog [args])" },
		{ "-n 1 :", "no program given (pvasrun -n N [options] prog [args])" },
		{ "-n 1 a :", "no program given (pvasrun -n N [options] prog [args])" },
		{ "-n 1 a : : -n 1 b", "no program given (pvasrun -n N [options] prog [args])" },
		{ "-n 1 a : -n 1", "no program given (pvasrun -n N [options] prog [args])" },
		{ "-n 1 _", "the program's name is empty" },
		{ "-n 0 a", "-n '0': not a number of tasks (1 to 4096)" },
		{ "-n x a", "-n 'x': not a number of tasks (1 to 4096)" },
		{ "-n -1 a", "-n '-1': not a number of tasks (1 to 4096)" },
		{ "-n 4097 a", "-n '4097': not a number of tasks (1 to 4096)" },
		{ "-n 4000 a : -n 97 b", "4097 tasks are too many (a space holds 4096)" },
		{ "-x =1 -n 1 a", "-x '=1': no variable's name (-x VAR or -x VAR=VALUE)" },
		{ "-x _ -n 1 a", "-x '': no variable's name (-x VAR or -x VAR=VALUE)" },
		{ "-x PVAS_RANK=1 -n 1 a",
		  "-x 'PVAS_RANK=1': names that begin PVAS_ are pvasrun's own" },
		{ "--pty yes -n 1 x", "--pty 'yes': unknown (auto, always or never)" },
		{ "--orphans leave -n 1 x", "--orphans 'leave': unknown (warn, wait or kill)" },
		{ "--stdin some -n 1 a", "--stdin 'some': unknown (a rank, all or none)" },
		{ "--stdin -1 -n 1 a", "--stdin '-1': unknown (a rank, all or none)" },
		{ "--stdin 2 -n 2 a", "--stdin 2: there is no such rank (0 to 1)" },
		{ "--timeout 0 -n 1 a", "--timeout '0': not a time (seconds, or 5m, 2h, 1d)" },
		{ "--timeout soon -n 1 a", "--timeout 'soon': not a time (seconds, or 5m, 2h, 1d)" },
		{ "--pretend 0 -n 1 a",
		  "--pretend '0': not NODES[:PPN][,full] (1 to 1073741824 nodes, 1 to 4096 tasks)" },
		{ "--pretend 1:x -n 1 a",
		  "--pretend '1:x': not NODES[:PPN][,full] (1 to 1073741824 nodes, 1 to 4096 tasks)" },
		{ "--pretend 1:2,all -n 2 a",
		  "--pretend '1:2,all': not NODES[:PPN][,full] (1 to 1073741824 nodes, 1 to 4096 tasks)" },
		{ "--pretend 1073741824:4 -n 4 a",
		  "--pretend 1073741824:4: more than 1073741824 ranks" },
		{ "--pretend 2:1 -n 3 a", "--pretend 2:1: fewer ranks than tasks (3)" },
		{ "--pretend 2:4 -n 3 a",
		  "--pretend 2:4: a node has PPN ranks, this one 3 (give -n and PPN one number)" },
		{ "--pretend 2 --mpi none -n 1 a",
		  "--pretend: ranks of MPI need PMIx or PMI-1 (not --mpi none)" },
		{ "--partition-size 2G -n 1 a",
		  "--partition-size '2G': not a power of two from 4G to 8T" },
		{ "--partition-size 16T -n 1 a",
		  "--partition-size '16T': not a power of two from 4G to 8T" },
		{ "--partition-size 48G -n 1 a",
		  "--partition-size '48G': not a power of two from 4G to 8T" },
		{ "--partition-size big -n 1 a",
		  "--partition-size 'big': not a power of two from 4G to 8T" },
		{ "--bind-to socket -n 1 a", "--bind-to 'socket': unknown (core, numa or none)" },
		{ "--mem-bind far -n 1 a",
		  "--mem-bind 'far': unknown (local, interleave or none)" },
		{ "--ram 16M --far-protocol r99 -n 1 a",
		  "--far-protocol is pvas, r3, r58 or r77 (not 'r99')" },
		{ "--far-protocol r77 -n 1 a", "--far and its options need --ram" },
		{ "--backend magic -n 1 a", "--backend 'magic': unknown (auto, kernel or user)" },
		{ "-n 1 a : --timeout 5 -n 1 b",
		  "option '--timeout' concerns the whole job (move it before the first program)" },
		{ "-n 1 a : -v -n 1 b",
		  "option '--verbose' concerns the whole job (move it before the first program)" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct line line;

		parse(&line, cases[i].line);
		check_case(line.ret < 0, cases[i].line);
		check_text(line.why, cases[i].why, cases[i].line);
		options_free(&line.opt);
	}
}

static void test_defaults(void)
{
	struct line line;

	parse(&line, "-n 2 a");
	check(line.opt.action == ACTION_RUN);
	check(line.opt.tasks == 2);
	check(line.opt.bind_to == BIND_DEFAULT);
	check(line.opt.mem_bind == MEM_NONE);
	check(line.opt.stdin_to == STDIN_RANK && line.opt.stdin_rank == 0);
	check(line.opt.backend == PVAS_BACKEND_AUTO);
	check(!line.opt.partition_size && !line.opt.timeout_ms);
	check(!line.opt.tag_output && !line.opt.no_kill && !line.opt.map);
	check(!line.opt.verbose && !line.opt.quiet);
	options_free(&line.opt);
}

static void test_values(void)
{
	struct line line;

	parse(&line, "-v -q --map --tag-output --no-kill --bind-to numa --mem-bind interleave "
	      "--stdin all --timeout 1.5m --partition-size 4G --backend user -n 2 a");
	check_text(line.why, "", "all options at once");
	check(line.opt.verbose && line.opt.quiet && line.opt.map);
	check(line.opt.tag_output && line.opt.no_kill);
	check(line.opt.bind_to == BIND_NUMA);
	check(line.opt.mem_bind == MEM_INTERLEAVE);
	check(line.opt.stdin_to == STDIN_ALL);
	check(line.opt.timeout_ms == 90000);
	check(line.opt.partition_size == 4ULL << 30);
	check(line.opt.backend == PVAS_BACKEND_USER);
	options_free(&line.opt);

	parse(&line, "--stdin none --bind-to none --mem-bind local --backend kernel "
	      "--partition-size 8T -n 2 a");
	check(line.opt.stdin_to == STDIN_NONE);
	check(line.opt.bind_to == BIND_NONE);
	check(line.opt.mem_bind == MEM_LOCAL);
	check(line.opt.backend == PVAS_BACKEND_KERNEL);
	check(line.opt.partition_size == 8ULL << 40);
	options_free(&line.opt);

	parse(&line, "--stdin 7 --bind-to core -n 4 a : -n 4 b");
	check_text(line.why, "", "--stdin counts the ranks of all programs");
	check(line.opt.stdin_rank == 7);
	check(line.opt.bind_to == BIND_CORE);
	options_free(&line.opt);
}

static void test_exports(void)
{
	struct line line;

	parse(&line, "-x A=1 -x B -n 1 a : -x C=x=y -n 1 b : -n 1 c");
	check(line.ret == 0);
	check(line.opt.apps[0].nr_exports == 2 && line.opt.apps[1].nr_exports == 1 &&
	      line.opt.apps[2].nr_exports == 0);
	check_text(line.opt.apps[0].exports[0], "A=1", "first -x");
	check_text(line.opt.apps[0].exports[1], "B", "second -x");
	check_text(line.opt.apps[1].exports[0], "C=x=y", "-x of the second program");
	options_free(&line.opt);
}

static void test_actions(void)
{
	struct line line;

	parse(&line, "--pretend 262144:4,full -n 4 a");
	check(line.ret == 0 && line.opt.pretend.nodes == 262144 && line.opt.pretend.per_node == 4);
	check(line.opt.pretend.full);
	parse(&line, "--pretend 8 -n 2 a : -n 1 b");
	check(line.ret == 0 && line.opt.pretend.per_node == 3 && !line.opt.pretend.full);
	parse(&line, "--check a -n : b");
	check(line.ret == 0 && line.opt.action == ACTION_CHECK);
	check(!strcmp(line.opt.check[0], "a") && !strcmp(line.opt.check[1], "-n"));
	check(!strcmp(line.opt.check[2], ":") && !strcmp(line.opt.check[3], "b"));
	check(!line.opt.check[4]);
	parse(&line, "-v --check -- --check");
	check(line.ret == 0 && !strcmp(line.opt.check[0], "--check") && !line.opt.check[1]);
	parse(&line, "--check");
	check(line.ret == -EINVAL);
	parse(&line, "--help");
	check(line.ret == 0 && line.opt.action == ACTION_HELP);
	options_free(&line.opt);
	parse(&line, "-n 1 -V a");
	check(line.ret == 0 && line.opt.action == ACTION_VERSION);
	options_free(&line.opt);
	parse(&line, "-n 1 a --help");
	check(line.ret == 0 && line.opt.action == ACTION_RUN);
	options_free(&line.opt);
}

/* argc 0, which execve() allows */
static void test_nothing(void)
{
	char why[256], name[] = "pvasrun", *argv[] = { name, NULL }, *none[] = { NULL };
	struct options opt;

	check(options_parse(&opt, 1, argv, why, sizeof(why)) < 0);
	check_text(why, "no program given (pvasrun -n N [options] prog [args])", "no word");
	options_free(&opt);
	check(options_parse(&opt, 0, none, why, sizeof(why)) < 0);
	options_free(&opt);
}

void test_options(void)
{
	test_apps();
	test_refusals();
	test_defaults();
	test_values();
	test_exports();
	test_actions();
	test_nothing();
}
