/* SPDX-License-Identifier: GPL-2.0-only */
/* The parsed command line. */
#ifndef PVASRUN_OPTIONS_H
#define PVASRUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum action { ACTION_RUN, ACTION_CHECK, ACTION_CHECK_RUN, ACTION_HELP, ACTION_VERSION };
enum bind_to { BIND_CORE, BIND_NUMA, BIND_NONE, BIND_DEFAULT };
enum mem_bind { MEM_LOCAL, MEM_INTERLEAVE, MEM_NONE };
enum mpi_how { MPI_AUTO, MPI_PMIX, MPI_PMI1, MPI_NONE };
enum orphans { ORPHANS_WARN, ORPHANS_WAIT, ORPHANS_KILL };
enum pty_use { PTY_AUTO, PTY_ALWAYS, PTY_NEVER };
enum stdin_to { STDIN_ALL, STDIN_NONE, STDIN_RANK };

/* One program of the job: the words between two ':' */
struct app {
	unsigned int tasks;
	unsigned int first_rank;
	char **argv;		/* NULL-terminated part of main()'s */
	const char *wdir;	/* NULL: pvasrun's own */
	const char **exports;	/* the values of -x */
	unsigned int nr_exports;
	/* These are set by precheck.c, in a child of pvasrun: see answers.c. */
	char *path;		/* of the program */
	const char *condition;	/* on which it can be a task, or NULL */
	unsigned int elf;	/* elf_needed() of @path */
	char **own_argv;	/* @argv if it has been changed, else NULL */
	unsigned int own_words;	/* of @own_argv, in the place of the first */
};

/* The size of the job that MPI is told of; only the tasks of its first node exist. */
struct pretence {
	unsigned int nodes;	/* 0: MPI is told the truth */
	unsigned int per_node;
	bool full;		/* PMIx has an entry for each rank, as in a real job */
};

/* --ram and --far */
struct far_options {
	uint64_t ram;		/* 0: no far memory */
	uint64_t size, page, threshold;	/* 0: choose */
	unsigned int copies;	/* 0: one */
	const char *stores, *key;	/* NULL: memory, compressed; none */
	const char *protocol;	/* NULL: pvas */
	struct far_host *start;	/* where to start memory servers, and on how many hosts */
	unsigned int nr_start;
};

struct options {
	enum action action;
	char **check;		/* --check: names of programs; --check-run: argv of one */
	struct app *apps;
	unsigned int nr_apps;
	unsigned int tasks;	/* of all apps */
	enum bind_to bind_to;
	enum mem_bind mem_bind;
	enum stdin_to stdin_to;
	unsigned int stdin_rank;
	bool tag_output;
	bool no_kill;
	bool map;
	bool verbose;
	bool quiet;
	int backend;		/* enum pvas_backend */
	enum mpi_how mpi;
	enum pty_use pty;
	enum orphans orphans;	/* processes that outlive their task */
	bool no_btl;
	bool no_aslr;
	struct pretence pretend;	/* --pretend */
	struct far_options far;
	uint64_t partition_size;	/* 0: choose */
	int64_t timeout_ms;	/* 0: none */
	int64_t timeout_at;	/* the end of it, of now_ms(); 0: never */
	const char *timeout_text;
};

/* As MPI is told */
static inline unsigned int options_world_size(const struct options *opt)
{
	return opt->pretend.nodes ? opt->pretend.nodes * opt->tasks : opt->tasks;
}

/*
 * Parse the command line. argv is changed: each ':' becomes the NULL that ends the
 * arguments before it. Returns 0, or -errno with a line in @why. Call options_free() in
 * both cases.
 */
int options_parse(struct options *opt, int argc, char **argv, char *why, size_t len);
void options_free(struct options *opt);

/* help.c: the table of options, with their help texts */
enum {
	KEY_BIND_TO = 256, KEY_MEM_BIND, KEY_WDIR, KEY_STDIN, KEY_TAG_OUTPUT, KEY_TIMEOUT,
	KEY_PARTITION_SIZE, KEY_BACKEND, KEY_NO_KILL, KEY_MAP, KEY_MPI, KEY_NO_BTL,
	KEY_NO_ASLR,
	KEY_ORPHANS, KEY_PTY, KEY_NO_PTY, KEY_CHECK, KEY_CHECK_RUN, KEY_PRETEND,
	KEY_RAM, KEY_FAR, KEY_FAR_SIZE, KEY_FAR_PAGE, KEY_FAR_THRESHOLD, KEY_FAR_COPIES,
	KEY_FAR_KEY, KEY_FAR_START, KEY_FAR_PROTOCOL,
};

struct option_row {
	const char *name;
	int key;		/* the short option's letter, or KEY_* */
	bool has_value;
	bool per_app;		/* allowed before each program, not only the first */
	const char *usage;	/* for --help; NULL: an alias of the previous row */
	const char *text;
};

#define MAX_OPTION_ROWS 40

extern const struct option_row option_rows[];
extern const unsigned int nr_option_rows;

/* options_far.c: the options of far memory. NULL or what is wrong with the value */
const char *options_take_far(struct far_options *far, int key, const char *text);

/* Do they fit together? NULL or why not */
const char *options_check_far(struct options *opt);

void help_print(FILE *to);
void version_print(FILE *to);

#endif
