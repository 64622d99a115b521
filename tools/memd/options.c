// SPDX-License-Identifier: GPL-2.0-only
/* The command line */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "key.h"
#include "memd.h"
#include "../../libpvas/pvas.h"

#define STR(x)	#x
#define XSTR(x)	STR(x)
#define VERSION	XSTR(PVAS_VERSION_MAJOR) "." XSTR(PVAS_VERSION_MINOR)

static const char help[] =
"usage: pvas-memd --key NAME [--key NAME]... [--ram SIZE] [--job-ram SIZE]\n"
"                 [--listen [ADDRESS:]PORT] [--silence SECONDS] [--until-eof] [--verbose]\n"
"       pvas-memd --make-key FILE\n"
"\n"
"Keeps far pages of jobs in this node's memory: pvasrun --far HOST:PORT.\n"
"\n"
"  -k, --key NAME         serve the job with the key in file NAME (or in each file of\n"
"                         folder NAME, on standard input: -, on descriptor N: fd:N)\n"
"  -r, --ram SIZE         keep at most SIZE bytes (K, M, G, T; default: half of what is\n"
"                         available)\n"
"  -j, --job-ram SIZE     and at most SIZE for each job\n"
"  -l, --listen [ADDRESS:]PORT\n"
"                         (default: 7700; 0: any free port, which is printed)\n"
"  -s, --silence SECONDS  end connections whose other side is silent for so long (default: 60)\n"
"  -e, --until-eof        end when standard input ends\n"
"  -v, --verbose          print each store that begins or ends\n"
"  -m, --make-key FILE    make a new key, in a new file, and exit\n"
"  -V, --version          print the version and exit\n"
"  -h, --help             print this and exit\n"
"\n"
"SIGUSR1 prints what is held, SIGHUP reads the keys again. See pvas-memd(1).\n";

static const struct option names[] = {
	{ "key", required_argument, NULL, 'k' },
	{ "ram", required_argument, NULL, 'r' },
	{ "job-ram", required_argument, NULL, 'j' },
	{ "listen", required_argument, NULL, 'l' },
	{ "silence", required_argument, NULL, 's' },
	{ "until-eof", no_argument, NULL, 'e' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "make-key", required_argument, NULL, 'm' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ }
};

static uint64_t parse_size(const char *text)
{
	static const char units[] = "KMGT";
	unsigned int shift = 0;
	unsigned long long n;
	const char *unit;
	char *end;

	n = strtoull(text, &end, 10);
	if (end == text || *text == '-' || !n)
		return 0;
	if (*end) {
		unit = strchr(units, *end & ~0x20);
		if (!unit || end[1])
			return 0;
		shift = 10 * (unit - units + 1);
	}
	return n > (uint64_t)INT64_MAX >> shift ? 0 : n << shift;
}

static uint64_t half_available(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "re");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib << 9;
}

static int make_key(const char *name)
{
	char why[160];

	if (!far_key_make(name, why, sizeof(why)))
		return 0;
	fprintf(stderr, "pvas-memd: can't make key %s: %s\n", name, why);
	return 1;
}

static int take_size(const char *option, const char *text, uint64_t *size)
{
	*size = parse_size(text);
	if (*size)
		return -1;
	fprintf(stderr, "pvas-memd: %s %s: no size (as 500M or 2G)\n", option, text);
	return 1;
}

static int take_seconds(const char *text, int *seconds)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end != text && !*end && n >= 1 && n <= 86400) {
		*seconds = n;
		return -1;
	}
	fprintf(stderr, "pvas-memd: --silence %s: not 1 to 86400 seconds\n", text);
	return 1;
}

/* Return: an exit status, or -1: go on */
static int take(struct options *options, int c)
{
	switch (c) {
	case 'k':
		options->keys[options->key_count++] = optarg;
		return -1;
	case 'r':
		return take_size("--ram", optarg, &options->ram);
	case 'j':
		return take_size("--job-ram", optarg, &options->job_ram);
	case 'l':
		options->listen = optarg;
		return -1;
	case 's':
		return take_seconds(optarg, &options->silence);
	case 'e':
		options->until_eof = true;
		return -1;
	case 'v':
		options->verbose = true;
		return -1;
	case 'm':
		return make_key(optarg);
	case 'V':
		puts("pvas-memd " VERSION " (protocol " XSTR(FAR_WIRE_VERSION) ")");
		return 0;
	case 'h':
		fputs(help, stdout);
		return 0;
	}
	fprintf(stderr, "Try: pvas-memd --help\n");
	return 1;
}

/* Return: an exit status, or -1: serve */
int options_parse(struct options *options, int argc, char **argv)
{
	int c, status;

	options->listen = "7700";
	options->ram = half_available();
	options->job_ram = UINT64_MAX;
	options->silence = 60;
	options->keys = calloc(argc, sizeof(*options->keys));
	if (!options->keys)
		return 1;
	while ((c = getopt_long(argc, argv, "k:r:j:l:s:evm:Vh", names, NULL)) != -1) {
		status = take(options, c);
		if (status >= 0)
			return status;
	}
	if (optind < argc) {
		fprintf(stderr, "pvas-memd: %s: no such argument (a key is in a file: --key FILE)\n",
			argv[optind]);
		return 1;
	}
	if (!options->key_count) {
		fprintf(stderr, "pvas-memd: no job's key: --key FILE (--make-key FILE makes one)\n");
		return 1;
	}
	return -1;
}
