// SPDX-License-Identifier: GPL-2.0-only
/*
 * hostile - several users attack at once; an oracle knows what must never happen
 *
 *	hostile [-t seconds | -n rounds] [-s seed] [-f first round] [-p plan,...]
 *		[-r seconds of a round] [-k] [-v]
 *
 * As root, with the module. Each round is drawn from the seed and the round's
 * number; -f begins with a later one. Ends at the first round that finds
 * something, with -k only when the time is over; -v prints what comes again.
 * Exit status: 0 nothing was found, 1 something was, 4 no module or not root.
 */
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pvas.h>

#include "../left.h"
#include "hostile.h"

#define LEAST_TRIES 40	/* of which one has to succeed */

char self_path[PATH_MAX];

/* ---- roles: this program as a task ---- */

/*
 * Leaves a mapping whose page the file's server never takes: whoever writes it back, or waits for
 * that, hangs.
 */
static int deaf(struct actor *a)
{
	int fd = open(DEAF_DIR "/file", O_RDWR | O_CLOEXEC);
	char *p;

	count_exec(a, offsetof(struct op_log, deaf));
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || p == MAP_FAILED)
		return 1;
	*p = 'x';
	count_exec(a, offsetof(struct op_log, silent));
	return 0;
}

static int role(char **argv)
{
	const char *name = argv[0];
	uint64_t seed = strtoull(argv[1], NULL, 10);
	unsigned int round = atoi(argv[2]), session = atoi(argv[3]), plan = atoi(argv[4]);
	unsigned int number = atoi(argv[5]);
	struct actor a = { .task = true, .in_space = true, .bias = atoi(argv[6]) };
	void *base;
	size_t len;

	if (!strcmp(name, "true"))
		return 0;
	if (!strcmp(name, "victim"))
		return victim_task(mix(seed ^ round, 50 + number), false);
	if (!strcmp(name, "careless"))
		return victim_task(0, true);
	if (!strcmp(name, "bystander"))
		return bystander(session);
	if (pvas_partition_get(pvas_task_get_index(), &base, &len))
		return 1;
	a.base = (uintptr_t)base;
	a.end = a.base + len;
	actor_init(&a, session, plan, number, seed, round);
	if (!strcmp(name, "deaf"))
		return deaf(&a);
	if (argv[7])
		count_exec(&a, offsetof(struct op_log, stayed));
	op_scan(&a);
	/* Many don't survive their own ops: some exec soon. */
	actor_run(&a, pick(&a, 2) ? pick(&a, 6) : 10 + pick(&a, 150));
	exec_again(&a, argv);
	_exit(0);
}

/* ---- rounds ---- */

static void run_round(uint64_t seed, unsigned int round, double seconds, const char *names)
{
	double end;

	board_reset(seed, round);
	start_victims(seed, round);
	start_canaries();
	/* Some attacks take longer to build up. */
	seconds *= start_sessions(seed, round, names);
	for (end = now() + seconds; now() < end; usleep(20000))
		print_findings();
	stop_sessions();
	stop_canaries();
	stop_victims();
	print_findings();
	left_check();
	print_findings();
}

/* The first job hooks the kernel and fills caches: not a leak. */
static void warm_up(void)
{
	board_reset(0, 0);
	start_victims(0, 0);
	start_canaries();
	sleep(2);
	stop_canaries();
	stop_victims();
	print_findings();
}

static int usage(void)
{
	fprintf(stderr, "usage: hostile [-t seconds | -n rounds] [-s seed] [-f first round] "
		"[-p plan,...] [-r seconds of a round] [-k] [-v]\n");
	return 2;
}

struct options {
	double seconds, round_seconds;
	unsigned int first, rounds;
	const char *plans;
	uint64_t seed;
	bool keep;
};

static bool get_options(struct options *o, int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "t:n:s:f:p:r:kv")) != -1) {
		switch (c) {
		case 't': o->seconds = atof(optarg); break;
		case 'n': o->rounds = atoi(optarg); o->seconds = 1e9; break;
		case 's': o->seed = strtoull(optarg, NULL, 0); break;
		case 'f': o->first = atoi(optarg); break;
		case 'p': o->plans = optarg; break;
		case 'r': o->round_seconds = atof(optarg); break;
		case 'k': o->keep = true; break;
		case 'v': print_all = true; break;
		default: return false;
		}
	}
	return true;
}

/* Attacks that nothing comes of would find nothing. */
static void judge_tally(const struct tally *round, struct tally *sum)
{
	if (!round->ops && !round->deaf)
		found(F_IDLE, 0, 0, 0, 0, NULL);
	sum->creators += round->creators;
	sum->spaces += round->spaces;
	sum->execs += round->execs;
	sum->stayed += round->stayed;
	if (sum->creators >= LEAST_TRIES && !sum->spaces)
		found(F_NO_SPACE, 0, sum->creators, round->error, 0, NULL);
	sum->deaf += round->deaf;
	sum->silent += round->silent;
	if (sum->deaf >= LEAST_TRIES && !sum->silent)
		found(F_NO_DEAF, 0, sum->deaf, 0, 0, NULL);
	if (sum->execs >= LEAST_TRIES && !sum->stayed)
		found(F_NO_EXEC, 0, sum->execs, 0, 0, NULL);
}

static void run_rounds(const struct options *o)
{
	double begin = now();
	struct tally tally, sum = { 0 };
	unsigned int i;

	for (i = 0; i < o->rounds && now() - begin < o->seconds; i++) {
		run_round(o->seed, o->first + i, o->round_seconds, o->plans);
		count_ops(&tally);
		judge_tally(&tally, &sum);
		print_findings();
		printf("# round %u: %.0f s, %u processes, %u ops, %u of %u spaces, %u of %u execs, "
		       "%u of %u deaf, %u findings\n", o->first + i, now() - begin, tally.processes,
		       tally.ops, tally.spaces, tally.creators, tally.stayed, tally.execs,
		       tally.silent, tally.deaf, count_found());
		fflush(stdout);
		if (count_found() && !o->keep)
			break;
	}
	printf("hostile: seed %lu, %.0f s: %u findings\n", o->seed, now() - begin, count_found());
}

int main(int argc, char **argv)
{
	struct options o = { .seconds = 60, .round_seconds = 8, .first = 1, .rounds = UINT_MAX,
			     .seed = 1 };
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (readlink("/proc/self/exe", self_path, sizeof(self_path) - 1) < 0)
		return 2;
	if (argc > 8 && !strcmp(argv[1], "--role"))
		return role(argv + 2);
	if (!get_options(&o, argc, argv))
		return usage();
	if (geteuid() || count_spaces() < 0 || board_make()) {
		printf("hostile: needs root and the module\n");
		return 4;
	}
	/* A user's mount does not load it, and the machine has no udev. */
	if (system("modprobe -q fuse; chmod 666 /dev/fuse"))
		fprintf(stderr, "hostile: no FUSE\n");
	warm_up();
	left_baseline();
	run_rounds(&o);
	return count_found() != 0;
}
