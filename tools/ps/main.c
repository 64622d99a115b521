// SPDX-License-Identifier: GPL-2.0-only
/* pvasps - list the spaces of this machine and their tasks. */
#include "ps.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../libpvas/pvas.h"
#include "../../pvasrun/parse.h"

#define INTERVAL_MS	2000

static const char usage[] =
	"Usage: pvasps [options]\n"
	"List the spaces of this machine, their tasks, and the memory of each.\n\n"
	"  -s, --space ID          only the space with this id\n"
	"  -p, --pid PID           only the space this process belongs to\n"
	"  -j, --json              one line of JSON\n"
	"  -a, --areas             with --json: the areas of each partition\n"
	"  -n, --no-memory         do not measure the memory of each partition\n"
	"  -w, --watch [SECONDS]   repeat (every 2 seconds)\n"
	"  -V, --version           print the version and exit\n"
	"  -h, --help              print this and exit\n"
	"\nSee pvasps(1).\n";

static const struct option long_options[] = {
	{ "space", required_argument, NULL, 's' },
	{ "pid", required_argument, NULL, 'p' },
	{ "json", no_argument, NULL, 'j' },
	{ "areas", no_argument, NULL, 'a' },
	{ "no-memory", no_argument, NULL, 'n' },
	{ "watch", optional_argument, NULL, 'w' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 }
};

/**
 * struct cmdline - the command line
 * @choice:	which spaces
 * @json:	as JSON
 * @areas:	with the areas of each partition
 * @interval_ms: repeat after this time, 0: once
 */
struct cmdline {
	struct ps_choice choice;
	bool json;
	bool areas;
	int64_t interval_ms;
};

/* Ids of the user backend have the topmost bit, so they do not fit into an int. */
static bool take_number(const char *text, unsigned int max, unsigned int *value)
{
	return parse_count(text, 1, max, value) == 0;
}

/* Returns the exit status, or -1 to continue. */
static int take_option(struct cmdline *w, int key)
{
	unsigned int pid;

	switch (key) {
	case 's':
		if (!take_number(optarg, UINT32_MAX, &w->choice.space))
			return ps_fail("--space '%s': not the id of a space", optarg);
		return -1;
	case 'p':
		if (!take_number(optarg, INT32_MAX, &pid))
			return ps_fail("--pid '%s': not a process id", optarg);
		w->choice.pid = pid;
		return -1;
	case 'j':
		w->json = true;
		return -1;
	case 'a':
		w->areas = true;
		return -1;
	case 'n':
		w->choice.memory = false;
		return -1;
	case 'w':
		w->interval_ms = INTERVAL_MS;
		if (optarg && parse_seconds(optarg, &w->interval_ms))
			return ps_fail("--watch '%s': not a time in seconds", optarg);
		return -1;
	case 'V':
		printf("pvasps %d.%d\n", PVAS_VERSION_MAJOR, PVAS_VERSION_MINOR);
		return 0;
	case 'h':
		fputs(usage, stdout);
		return 0;
	case ':':
		return ps_fail("%s needs a value (see pvasps --help)", optopt == 's' ? "--space" : "--pid");
	default:
		return -2;
	}
}

/* --watch is followed by its optional value as a word of its own, too. */
static int take_rest(struct cmdline *w, int argc, char **argv)
{
	if (w->interval_ms && optind < argc) {
		if (parse_seconds(argv[optind], &w->interval_ms))
			return ps_fail("--watch '%s': not a time in seconds", argv[optind]);
		optind++;
	}
	if (optind < argc)
		return ps_fail("'%s': not an option (see pvasps --help)", argv[optind]);
	if (w->areas && !w->json)
		return ps_fail("--areas goes with --json only");
	if (w->areas && !w->choice.memory)
		return ps_fail("--areas does not go with --no-memory");
	return -1;
}

static int parse(struct cmdline *w, int argc, char **argv)
{
	int key, status;

	opterr = 0;
	while ((key = getopt_long(argc, argv, ":s:p:janw::Vh", long_options, NULL)) != -1) {
		status = take_option(w, key);
		if (status == -2)
			return ps_fail("unknown option '%s' (see pvasps --help)", argv[optind - 1]);
		if (status >= 0)
			return status;
	}
	return take_rest(w, argc, argv);
}

static int nothing_chosen(const struct ps_choice *choice, const struct ps_snapshot *s)
{
	if (choice->space)
		return ps_fail("no space %u that you may see", choice->space);
	if (s->hidden)
		return ps_fail("process %d is in no space that you may see (%u can't be read: ptrace_scope; run as root)",
			       choice->pid, s->hidden);
	if (s->slow)
		return ps_fail("process %d is in no space that could be read (%u passed over: too slow)",
			       choice->pid, s->slow);
	return ps_fail("process %d is in no space that you may see", choice->pid);
}

static int print_once(const struct cmdline *w)
{
	struct ps_snapshot s;
	int status = 0;

	ps_snapshot_take(&s, &w->choice);
	if (!s.nr && (w->choice.space || w->choice.pid))
		status = nothing_chosen(&w->choice, &s);
	else if (w->json)
		ps_print_json(&s, w->areas);
	else
		ps_print_text(&s);
	ps_snapshot_free(&s);
	return status;
}

static int flush(void)
{
	if (fflush(stdout) || ferror(stdout))
		return ps_fail("cannot write to standard output: %s", strerror(errno));
	return 0;
}

static int print_repeatedly(const struct cmdline *w)
{
	int status;

	for (;;) {
		status = print_once(w);
		if (!status)
			status = flush();
		if (status)
			return status;
		usleep(w->interval_ms % 1000 * 1000);
		sleep(w->interval_ms / 1000);
		if (!w->json)
			putchar('\n');
	}
}

int main(int argc, char **argv)
{
	struct cmdline w = { .choice.memory = true };
	int status = parse(&w, argc, argv);

	if (status >= 0)
		return status ?: flush();
	if (!w.interval_ms)
		return print_once(&w) ?: flush();
	if (w.json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return print_repeatedly(&w);
	return ps_watch(&w.choice, w.interval_ms);
}
