// SPDX-License-Identifier: GPL-2.0-only
/*
 * Heat in a plate: N members solve the 2-D heat equation together, by Jacobi's
 * method, each for a block of rows. There is no halo to exchange: at the edge
 * of its block a member reads the row in its neighbour's memory.
 *
 * usage: heat [--size S] [--steps T] [--verify] [--spoil RANK] [--report FILE]
 *
 *	pvasrun -n 240 heat --verify	as tasks of one address space
 *	plainrun -n 240 heat --verify	as plain processes with a shared segment
 *	heat --verify			alone
 *
 * Exit status: 0, 1 a failure or a wrong answer, 2 wrong usage.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report.h"
#include "team.h"

/* The share of the difference to a neighbour that flows in a step; stable up to 0.25. */
#define FLOW 0.2

struct options {
	unsigned long size, steps;
	int verify;
	long spoil;
	const char *report;
};

/**
 * struct plate - a member's view of the plate
 * @width:	doubles in a row: @size and a cold cell at either end
 * @share:	number of rows that each member has room for
 * @first:	index of its first row
 * @rows:	number of its rows
 * @mine:	its rows, twice: before and after a step
 * @above:	those of the neighbour above, NULL at the top
 * @below:	those of the neighbour below, NULL at the bottom
 * @cold:	a row of the cold edge of the plate
 */
struct plate {
	size_t size, width, share, first, rows;
	double *mine, *above, *below, *cold;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static size_t first_row(size_t size, unsigned int rank, unsigned int members)
{
	return size * rank / members;
}

/* A pattern without symmetry, so that a misplaced row is detected. */
static double start_value(size_t row, size_t col)
{
	return (row * 131 + col * 17) % 1009 / 10.0;
}

/* The serial solution uses it, too, so that both agree to the last bit. */
static void step_row(double *to, const double *up, const double *row, const double *down, size_t n)
{
	size_t i;

	for (i = 1; i <= n; i++)
		to[i] = row[i] + FLOW * (up[i] + down[i] + row[i - 1] + row[i + 1] - 4 * row[i]);
}

static void set_rows(double *rows, size_t width, size_t first, size_t n)
{
	size_t r, c;

	for (r = 0; r < n; r++)
		for (c = 1; c < width - 1; c++)
			rows[r * width + c] = start_value(first + r, c);
}

/* The rows of a member in its memory, before (0) or after (1) a step. */
static double *half(const struct plate *p, double *memory, int which)
{
	return memory + which * p->share * p->width;
}

/* The row @r of the plate, of this member or a neighbour. */
static const double *row_at(const struct plate *p, long r, int which)
{
	if (r < 0 || (size_t)r >= p->size)
		return p->cold;
	if ((size_t)r < p->first)
		return half(p, p->above, which);
	if ((size_t)r >= p->first + p->rows)
		return half(p, p->below, which);
	return half(p, p->mine, which) + (r - p->first) * p->width;
}

static void step(const struct plate *p, int from)
{
	double *to = half(p, p->mine, !from);
	long r;

	for (r = p->first; (size_t)r < p->first + p->rows; r++, to += p->width)
		step_row(to, row_at(p, r - 1, from), row_at(p, r, from), row_at(p, r + 1, from),
			 p->size);
}

static int find_neighbours(struct team *team, struct plate *p)
{
	size_t above = first_row(p->size, team->rank - 1, team->size);

	p->mine = team_memory(team, team->rank);
	p->cold = calloc(p->width, sizeof(double));
	if (!p->mine || !p->cold)
		return -ENOMEM;
	if (team->rank) {
		p->above = team_memory(team, team->rank - 1);
		if (!p->above)
			return -ESRCH;
		/* Only its last row is needed. */
		p->above += (p->first - 1 - above) * p->width;
	}
	if (team->rank < team->size - 1) {
		p->below = team_memory(team, team->rank + 1);
		if (!p->below)
			return -ESRCH;
	}
	return 0;
}

static double solve(struct team *team, const struct plate *p, unsigned long steps)
{
	unsigned long t;
	double begin;

	set_rows(half(p, p->mine, 0), p->width, p->first, p->rows);
	team_barrier(team);
	begin = now();
	for (t = 0; t < steps; t++) {
		step(p, t % 2);
		team_barrier(team);
	}
	return now() - begin;
}

/* The serial solution: the whole plate after @steps, or NULL. */
static double *solve_serially(const struct plate *p, unsigned long steps)
{
	size_t cells = (p->size + 2) * p->width, r;
	double *from = calloc(cells, sizeof(double)), *to = calloc(cells, sizeof(double)), *swap;

	if (!from || !to) {
		free(from);
		free(to);
		return NULL;
	}
	set_rows(from + p->width, p->width, 0, p->size);
	for (; steps; steps--) {
		for (r = 1; r <= p->size; r++)
			step_row(to + r * p->width, from + (r - 1) * p->width, from + r * p->width,
				 from + (r + 1) * p->width, p->size);
		swap = from;
		from = to;
		to = swap;
	}
	free(to);
	return from;
}

/* Rank 0 compares all rows, in the memory of their members. 0 if every bit is right. */
static int verify(struct team *team, const struct plate *p, unsigned long steps)
{
	double *right = solve_serially(p, steps);
	unsigned int m;
	int err = 0;

	if (!right) {
		fprintf(stderr, "heat: the serial answer: no memory (use a smaller --size)\n");
		return -ENOMEM;
	}
	for (m = 0; m < team->size && !err; m++) {
		size_t first = first_row(p->size, m, team->size);
		size_t rows = first_row(p->size, m + 1, team->size) - first;
		double *memory = team_memory(team, m);

		if (!memory)
			err = -ESRCH;
		else if (memcmp(half(p, memory, steps % 2), right + (first + 1) * p->width,
				rows * p->width * sizeof(double)))
			err = -EBADMSG;
		if (err == -EBADMSG)
			fprintf(stderr, "heat: rows %zu to %zu of rank %u: wrong answer\n", first,
				first + rows - 1, m);
	}
	free(right);
	return err;
}

/* Called in rank 0 while all others wait, with all their memory in use. */
static int look_at_all(struct team *team, const struct plate *p, const struct options *opt,
		       double seconds)
{
	int err = 0;

	if (opt->report)
		err = report_team(team, opt->report) ?:
		      report_seconds(opt->report, "solve_s", seconds);
	if (!err && opt->verify)
		err = verify(team, p, opt->steps);
	if (err)
		return err;
	printf("heat: %u %s, %lu x %lu cells, %lu steps: %.2f s%s\n", team->size,
	       team->kind == TEAM_TASKS ? "tasks" : "plain processes", opt->size, opt->size, opt->steps,
	       seconds, opt->verify ? ", bit for bit the serial answer" : "");
	return 0;
}

static int run(struct team *team, const struct options *opt)
{
	struct plate p = { .size = opt->size, .width = opt->size + 2 };
	double seconds;
	int err;

	p.share = (p.size + team->size - 1) / team->size;
	p.first = first_row(p.size, team->rank, team->size);
	p.rows = first_row(p.size, team->rank + 1, team->size) - p.first;
	err = team_join(team, 2 * p.share * p.width * sizeof(double)) ?:
	      find_neighbours(team, &p);
	if (err)
		return err;
	seconds = solve(team, &p, opt->steps);
	if (opt->spoil == (long)team->rank)
		half(&p, p.mine, opt->steps % 2)[1] += 1;
	team_hold(team);
	if (!team->rank) {
		err = look_at_all(team, &p, opt, seconds);
		team_release(team);
	}
	team_leave(team);
	return err;
}

static int usage(const char *wrong)
{
	fprintf(stderr, "heat: %s (usage: heat [--size S] [--steps T] [--verify] [--spoil RANK] [--report FILE])\n",
		wrong);
	return 2;
}

static int get_number(const char *text, unsigned long *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*value = strtoul(text, &end, 10);
	return errno || *end || *value > 100000 ? -EINVAL : 0;
}

static int get_options(int argc, char **argv, struct options *opt)
{
	static const struct option names[] = {
		{ "size", required_argument, NULL, 's' },
		{ "steps", required_argument, NULL, 't' },
		{ "verify", no_argument, NULL, 'v' },
		{ "spoil", required_argument, NULL, 'b' },
		{ "report", required_argument, NULL, 'r' },
		{ 0 },
	};
	unsigned long rank;
	int c, err = 0;

	while (!err && (c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 's':
			err = get_number(optarg, &opt->size);
			break;
		case 't':
			err = get_number(optarg, &opt->steps);
			break;
		case 'v':
			opt->verify = 1;
			break;
		case 'b':
			err = get_number(optarg, &rank);
			opt->spoil = rank;
			break;
		case 'r':
			opt->report = optarg;
			break;
		default:
			err = -EINVAL;
		}
	}
	return err || optind < argc ? usage("cannot use these arguments") : 0;
}

int main(int argc, char **argv)
{
	struct options opt = { .size = 720, .steps = 60, .spoil = -1 };
	struct team team;
	int err = get_options(argc, argv, &opt);

	if (err)
		return err;
	if (team_init(&team))
		return 1;
	if (opt.size < team.size)
		return team.rank ? 2 : usage("--size is less than the number of members");
	return run(&team, &opt) ? 1 : 0;
}
