// SPDX-License-Identifier: GPL-2.0-only
/*
 * An MPI program for the tests, for any MPI library: "rank TEST". It prints one line on
 * success, and exits with status 3 on failure.
 */
#include <fenv.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int rank, size;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "rank %d: %s\n", rank, what);
	_exit(3);
}

/* One line for the whole job */
static void all_well(const char *what)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		printf("%s: %d ranks\n", what, size);
	fflush(stdout);
}

static void ring(void)
{
	int token = 0, sent = 1, next = (rank + 1) % size, before = (rank + size - 1) % size;
	MPI_Request request;

	/* not MPI_Send(): a single rank sends to itself */
	if (!rank)
		MPI_Isend(&sent, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &request);
	MPI_Recv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	must(token == (rank ? rank : size), "the token is wrong");
	sent = token + 1;
	if (rank)
		MPI_Isend(&sent, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	all_well("ring");
}

#define COUNT 20000	/* ints: longer than any eager message */

/* MPI_Init leaves no floating-point exceptions behind (-ffpe-trap would make them fatal) */
static void fpe(void)
{
	must(!fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW), "a floating-point exception");
	all_well("fpe");
}

static void print(void)
{
	printf("printed %d\n", rank);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank)
		abort();
	pause();
}

static void alltoall(void)
{
	int *out = malloc(sizeof(int) * COUNT * size), *in = malloc(sizeof(int) * COUNT * size);
	int peer, i;

	for (peer = 0; peer < size; peer++)
		for (i = 0; i < COUNT; i++)
			out[peer * COUNT + i] = rank * 1000 + peer + i;
	MPI_Alltoall(out, COUNT, MPI_INT, in, COUNT, MPI_INT, MPI_COMM_WORLD);
	for (peer = 0; peer < size; peer++)
		for (i = 0; i < COUNT; i++)
			must(in[peer * COUNT + i] == peer * 1000 + rank + i, "data are wrong");
	free(in);
	free(out);
	all_well("alltoall");
}

/* The description of the job: all ranks on one node, and the program of each */
static void job(void)
{
	MPI_Comm node;
	int nr, *appnum, found, *universe;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &nr);
	must(nr == size, "not all ranks are on this node");
	MPI_Comm_free(&node);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &found);
	must(found, "no MPI_APPNUM");
	printf("rank %d appnum %d\n", rank, *appnum);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &found);
	must(found && *universe == size, "MPI_UNIVERSE_SIZE is wrong");
	all_well("job");
}

/* With all ranks in one space, Open MPI maps no shared-memory files. */
static void no_shm(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];

	must(maps != NULL, "no /proc/self/maps");
	while (fgets(line, sizeof(line), maps))
		must(!strstr(line, "/dev/shm/"), "there is something in /dev/shm");
	fclose(maps);
	all_well("no_shm");
}

/* The components of Open MPI that the launcher selects, and the state after MPI_Init */
static void selection(int slack)
{
	const char *btl = getenv("OMPI_MCA_btl"), *pml = getenv("OMPI_MCA_pml");
	const char *osc = getenv("OMPI_MCA_osc");

	must(slack == prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), "the timer slack has changed");
	if (!rank)
		printf("btl %s, pml %s, osc %s\n", btl ? btl : "-", pml ? pml : "-",
		       osc ? osc : "-");
	all_well("selection");
}

static void window(void)
{
	MPI_Win win;
	int *mine, *first, unit;
	MPI_Aint bytes;

	MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine,
				&win);
	MPI_Win_fence(0, win);
	*mine = rank + 100;
	MPI_Win_fence(0, win);
	MPI_Win_shared_query(win, 0, &bytes, &unit, &first);
	must(first[0] == 100 && first[rank] == rank + 100, "shared window is wrong");
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
	all_well("window");
}

static void names(void)
{
	char port[MPI_MAX_PORT_NAME] = "a-port", found[MPI_MAX_PORT_NAME] = "";
	int err;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	if (!rank)
		must(!MPI_Publish_name("pvas test", MPI_INFO_NULL, port), "cannot publish");
	MPI_Barrier(MPI_COMM_WORLD);
	must(!MPI_Lookup_name("pvas test", MPI_INFO_NULL, found), "not found");
	must(!strcmp(found, port), "another value than was published");
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		must(!MPI_Unpublish_name("pvas test", MPI_INFO_NULL, port), "cannot unpublish");
	MPI_Barrier(MPI_COMM_WORLD);
	err = MPI_Lookup_name("pvas test", MPI_INFO_NULL, found);
	must(err != MPI_SUCCESS, "found what is unpublished");
	all_well("names");
}

static void spawn(const char *self)
{
	MPI_Comm children;

	MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
		       MPI_ERRCODES_IGNORE);
	must(0, "there are children");
}

/* Rank 1 exits or dies in a wrong way, while the others wait for it. */
static void end_badly(const char *how)
{
	if (rank == 1) {
		if (!strcmp(how, "abort"))
			MPI_Abort(MPI_COMM_WORLD, 42);
		if (!strcmp(how, "abort0"))
			MPI_Abort(MPI_COMM_WORLD, 0);
		if (!strcmp(how, "early"))
			_exit(0);
		if (!strcmp(how, "status"))
			_exit(9);
		if (!strcmp(how, "kill"))
			raise(SIGKILL);
	}
	if (!strcmp(how, "hang"))
		pause();
	MPI_Barrier(MPI_COMM_WORLD);
	must(0, "the barrier let us through");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "ring";
	int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);

	if (!strcmp(what, "sleep")) {
		sleep(60);
		return 0;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (!strcmp(what, "ring"))
		ring();
	else if (!strcmp(what, "print"))
		print();
	else if (!strcmp(what, "fpe"))
		fpe();
	else if (!strcmp(what, "alltoall"))
		alltoall();
	else if (!strcmp(what, "job"))
		job();
	else if (!strcmp(what, "no_shm"))
		no_shm();
	else if (!strcmp(what, "selection"))
		selection(slack);
	else if (!strcmp(what, "window"))
		window();
	else if (!strcmp(what, "names"))
		names();
	else if (!strcmp(what, "spawn"))
		spawn(argv[0]);
	else
		end_badly(what);
	MPI_Finalize();
	return 0;
}
