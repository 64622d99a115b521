// SPDX-License-Identifier: GPL-2.0-only
/* The options and their help texts. */
#include "options.h"

#include "../libpvas/pvas.h"

const struct option_row option_rows[] = {
	{ "np", 'n', true, true, "-n, -np, --np N",
	  "start N tasks of the program that follows" },
	{ "export", 'x', true, true, "-x, --export VAR[=V]",
	  "set VAR in the tasks' environment (all else is inherited)" },
	{ "wdir", KEY_WDIR, true, true, "--wdir, --wd DIR",
	  "their working directory; ./prog is looked up there" },
	{ "wd", KEY_WDIR, true, true, NULL, NULL },
	{ "bind-to", KEY_BIND_TO, true, false, "--bind-to core|numa|none",
	  "bind each task (default: core if there are enough, else none)" },
	{ "mem-bind", KEY_MEM_BIND, true, false, "--mem-bind local|interleave|none",
	  "where their memory comes from (default: none)" },
	{ "stdin", KEY_STDIN, true, false, "--stdin RANK|all|none",
	  "which task reads standard input (default: 0)" },
	{ "tag-output", KEY_TAG_OUTPUT, false, false, "--tag-output",
	  "put \"[RANK] \" before each line of output" },
	{ "pty", KEY_PTY, true, false, "--pty auto|always|never",
	  "a pseudo-terminal for output (default: if it goes to a file)" },
	{ "no-pty", KEY_NO_PTY, false, false, "--no-pty",
	  "none, as --pty never" },
	{ "timeout", KEY_TIMEOUT, true, false, "--timeout TIME",
	  "end the job after TIME seconds (or 5m, 2h, 1d), status 124" },
	{ "no-kill", KEY_NO_KILL, false, false, "--no-kill",
	  "when a task fails, let the others run on" },
	{ "orphans", KEY_ORPHANS, true, false, "--orphans warn|wait|kill",
	  "what becomes of processes that tasks leave running (default: warn)" },
	{ "partition-size", KEY_PARTITION_SIZE, true, false, "--partition-size SIZE",
	  "4G to 8T, a power of two (default: as large as N leave room for)" },
	{ "backend", KEY_BACKEND, true, false, "--backend auto|kernel|user",
	  "how the space is made (default: auto)" },
	{ "mpi", KEY_MPI, true, false, "--mpi auto|pmix|pmi1|none",
	  "how MPI programs find each other (default: auto)" },
	{ "ram", KEY_RAM, true, false, "--ram SIZE",
	  "large memory of all tasks is far: so much of it is resident" },
	{ "far", KEY_FAR, true, false, "--far STORE[,STORE ...]",
	  "the rest is in zip, file:PATH or HOST:PORT (default: zip)" },
	{ "far-size", KEY_FAR_SIZE, true, false, "--far-size SIZE",
	  "far memory in all (default: 16 times --ram)" },
	{ "far-page", KEY_FAR_PAGE, true, false, "--far-page SIZE|auto",
	  "unit of transfer, 4K to 64M, a power of two" },
	{ "far-threshold", KEY_FAR_THRESHOLD, true, false, "--far-threshold SIZE",
	  "mappings from this size on are far (default: 1M)" },
	{ "far-copies", KEY_FAR_COPIES, true, false, "--far-copies 1|2",
	  "in how many stores each page is (default: 1)" },
	{ "far-key", KEY_FAR_KEY, true, false, "--far-key FILE",
	  "the key of this job on memory servers" },
	{ "far-start", KEY_FAR_START, true, false, "--far-start HOST[,HOST ...]",
	  "start memory servers there, for this job, by ssh or Slurm" },
	{ "far-protocol", KEY_FAR_PROTOCOL, true, false, "--far-protocol pvas|r3|r58|r77",
	  "how pages are exchanged: r3, r58, r77 as DLM did, to compare" },
	{ "pretend", KEY_PRETEND, true, false, "--pretend NODES[:PPN][,full]",
	  "tell Open MPI that the job has so many nodes like this one" },
	{ "no-btl", KEY_NO_BTL, false, false, "--no-btl",
	  "leave it to Open MPI how messages go" },
	{ "no-aslr", KEY_NO_ASLR, false, false, "--no-aslr",
	  "give each run the same addresses" },
	{ "map", KEY_MAP, false, false, "--map",
	  "print the partition and processors of each task" },
	{ "verbose", 'v', false, false, "-v, --verbose",
	  "report decisions" },
	{ "quiet", 'q', false, false, "-q, --quiet",
	  "no warnings and no progress" },
	{ "check", KEY_CHECK, false, false, "--check PROG ...",
	  "report whether these programs can be tasks, and exit" },
	{ "check-run", KEY_CHECK_RUN, false, false, "--check-run PROG [ARG ...]",
	  "the same, and run it as a process to measure what it needs" },
	{ "version", 'V', false, false, "-V, --version",
	  "print the version and exit" },
	{ "help", 'h', false, false, "-h, --help",
	  "print this and exit" },
};

const unsigned int nr_option_rows = sizeof(option_rows) / sizeof(option_rows[0]);

_Static_assert(sizeof(option_rows) / sizeof(option_rows[0]) <= MAX_OPTION_ROWS,
	       "options.c makes its tables with room for MAX_OPTION_ROWS");

static void print_rows(FILE *to, bool per_app)
{
	unsigned int i;

	for (i = 0; i < nr_option_rows; i++)
		if (option_rows[i].usage && option_rows[i].per_app == per_app)
			fprintf(to, "  %-34s%s\n", option_rows[i].usage, option_rows[i].text);
}

void help_print(FILE *to)
{
	fputs("Usage: pvasrun -n N [options] prog [args] [: -n M [options] prog2 [args]] ...\n"
	      "Run programs as tasks of one partitioned address space.\n\n"
	      "Before each program:\n", to);
	print_rows(to, true);
	fputs("\nBefore the first program, for the whole job:\n", to);
	print_rows(to, false);
	fputs("\nAfter --, a ':' is an ordinary argument. See pvasrun(1).\n", to);
}

void version_print(FILE *to)
{
	unsigned int lib = pvas_version_get();

	fprintf(to, "pvasrun %d.%d (libpvas %u.%u)\n", PVAS_VERSION_MAJOR, PVAS_VERSION_MINOR,
		lib >> 16, lib & 0xffff);
}
