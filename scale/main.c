// SPDX-License-Identifier: GPL-2.0-only
/* pvas-scale - memory and time of communication libraries on machines of any size. */
#include "command.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include "../libpvas/pvas.h"

const char help_text[] =
	"Usage: pvas-scale memory [options]\n"
	"       pvas-scale neighbour [options]\n"
	"       pvas-scale fit FILE [options]\n"
	"Compute what an MPI library takes on a large machine, by published models.\n\n"
	"memory: bytes a node\n"
	"  --model MODEL         baseline, lean, both, k or pvas (default: both)\n"
	"  --nodes LIST          sizes of the machine (default: 1048576)\n"
	"  --ranks LIST          instead of --nodes: sizes of the job\n"
	"  --ppn M               ranks on a node (default: 4; 1 with --model k)\n"
	"  --comms C             communicators of the job's size (default: 10)\n"
	"  --contexts G          active contexts, with the model lean (default: 1024)\n"
	"  --cap PEERS           fast peers, with --model k (default: 1024) or pvas (8)\n"
	"  --hops H              distance of a peer, with --model k (default: 1)\n"
	"  --original            as printed, without the paper's errata\n"
	"  --plot FILE           draw several sizes (.svg, .png), also with neighbour\n\n"
	"neighbour: time of a neighbour exchange\n"
	"  -N, --neighbours N    (default: 6)\n"
	"  -C, --devices C       more than 1, less than N (default: 4)\n"
	"  --bytes LIST          of a message (default: 8M)\n"
	"  --latency TIME        of a message (default: 1us)\n"
	"  --bandwidth RATE      of a device, bytes a second (default: 5G)\n"
	"  --schedule STEPS      print these steps: all, 3 or 0..9\n\n"
	"fit: terms in n and m for the lines \"n m bytes\" of FILE, also --nodes, --ranks, --ppn\n"
	"  --terms LIST          some of 1,n,mn,m2,m,n/m\n\n"
	"All commands:\n"
	"  --csv                 print CSV\n"
	"  --json                print one line of JSON\n"
	"  -V, --version         print the version and exit\n"
	"  -h, --help            print this and exit\n\n"
	"A LIST has commas, and ranges that double: 1024..65536. See pvas-scale(1).\n";

static void print_error(const char *format, va_list args)
{
	fputs("pvas-scale: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

int fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_error(format, args);
	va_end(args);
	return EXIT_FAILED;
}

int fail_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_error(format, args);
	va_end(args);
	return EXIT_USAGE;
}

/* The first word is a command, or the only option. Returns the exit status, or -1. */
static int find_command(struct options *o, const char *word)
{
	static const char *const names[] = { "memory", "neighbour", "fit", NULL };
	int i;

	if (!word)
		return fail_usage("no command (see pvas-scale --help)");
	i = word_choice(word, names);
	if (i >= 0) {
		o->command = 1 << i;
		return -1;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		fputs(help_text, stdout);
		return 0;
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		printf("pvas-scale %d.%d\n", PVAS_VERSION_MAJOR, PVAS_VERSION_MINOR);
		return 0;
	}
	return fail_usage("'%s': not a command (see pvas-scale --help)", word);
}

static int run(struct options *o)
{
	switch (o->command) {
	case NEIGHBOUR:
		return exchange_command(o);
	case FIT:
		return fit_command(o);
	default:
		if (o->model == PVAS)
			return pvas_command(o);
		return o->model == K_COMPUTER ? k_command(o) : memory_command(o);
	}
}

/* A full disk shows up at the end only. */
static int flush(int status)
{
	if (fflush(stdout) || ferror(stdout))
		return fail("cannot write to standard output: %s", strerror(errno));
	return status;
}

int main(int argc, char **argv)
{
	static struct options o;
	int status = find_command(&o, argv[1]);

	/* A gnuplot that ends early is an error to report. */
	signal(SIGPIPE, SIG_IGN);
	if (status < 0)
		status = options_parse(&o, argc - 1, argv + 1);
	if (status < 0)
		status = run(&o);
	return flush(status);
}
