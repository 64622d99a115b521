// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: bound
 *
 * Which part of a one-sided operation with a flush is Open MPI's own: the time, and the number of
 * instructions, of each call with three components between rank 0 and rank 1.
 *
 *	empty	functions that do nothing: MPI's entry and checks of the arguments
 *	bare	a store, a load or an atomic instruction, and a fence in the flush: no epoch, no
 *		range, no peer and no datatype is checked, and nobody is kept away
 *	chosen	the component that Open MPI has chosen for the window
 *
 * One line for each call: name, and for each component nanoseconds (the median of many pieces)
 * and instructions (counted by a SIGTRAP each).
 */
#include "ompi_config.h"

#include "ompi/mca/osc/osc.h"
#include "ompi/win/win.h"

#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PIECES 41
#define REPEAT 2000
#define TRAP_FLAG 0x100

static MPI_Win win;
static int64_t *at;		/* rank 1's window */
static int64_t cells[3];
static volatile long instructions;

/* ---- the components ---- */

static int no_put(const void *origin, int n, struct ompi_datatype_t *origin_type, int rank,
		  ptrdiff_t disp, int count, struct ompi_datatype_t *type, ompi_win_t *w)
{
	(void)origin, (void)n, (void)origin_type, (void)rank, (void)disp, (void)count, (void)type;
	(void)w;
	return 0;
}

static int no_get(void *origin, int n, struct ompi_datatype_t *origin_type, int rank,
		  ptrdiff_t disp, int count, struct ompi_datatype_t *type, ompi_win_t *w)
{
	return no_put(origin, n, origin_type, rank, disp, count, type, w);
}

static int no_fetch(const void *origin, void *result, struct ompi_datatype_t *type, int rank,
		    ptrdiff_t disp, struct ompi_op_t *op, ompi_win_t *w)
{
	(void)origin, (void)result, (void)type, (void)rank, (void)disp, (void)op, (void)w;
	return 0;
}

static int no_flush(int rank, ompi_win_t *w)
{
	(void)rank, (void)w;
	return 0;
}

static int bare_put(const void *origin, int n, struct ompi_datatype_t *origin_type, int rank,
		    ptrdiff_t disp, int count, struct ompi_datatype_t *type, ompi_win_t *w)
{
	at[disp] = *(const int64_t *)origin;
	return no_put(origin, n, origin_type, rank, disp, count, type, w);
}

static int bare_get(void *origin, int n, struct ompi_datatype_t *origin_type, int rank,
		    ptrdiff_t disp, int count, struct ompi_datatype_t *type, ompi_win_t *w)
{
	*(int64_t *)origin = at[disp];
	return no_put(origin, n, origin_type, rank, disp, count, type, w);
}

static int bare_fetch(const void *origin, void *result, struct ompi_datatype_t *type, int rank,
		      ptrdiff_t disp, struct ompi_op_t *op, ompi_win_t *w)
{
	*(int64_t *)result = __atomic_fetch_add(&at[disp], *(const int64_t *)origin,
						__ATOMIC_SEQ_CST);
	return no_fetch(origin, result, type, rank, disp, op, w);
}

static int bare_flush(int rank, ompi_win_t *w)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return no_flush(rank, w);
}

/* ---- measuring ---- */

static void put(void) { MPI_Put(cells, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, win); }
static void get(void) { MPI_Get(cells, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, win); }
static void fetch(void) { MPI_Fetch_and_op(cells, cells + 1, MPI_INT64_T, 1, 0, MPI_SUM, win); }

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
	{ "put-8", put }, { "get-8", get }, { "fetch_and_op-8", fetch },
};

static void count_one(int sig)
{
	(void)sig;
	instructions++;
}

static void set_trap(int on)
{
	unsigned long flags = __builtin_ia32_readeflags_u64();

	__builtin_ia32_writeeflags_u64(on ? flags | TRAP_FLAG : flags & ~(unsigned long)TRAP_FLAG);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(void (*call)(void))
{
	double ns[PIECES], began;
	int i, k;

	for (i = -2; i < PIECES; i++) {
		began = MPI_Wtime();
		for (k = 0; k < REPEAT; k++) {
			call();
			MPI_Win_flush(1, win);
		}
		if (i >= 0)
			ns[i] = (MPI_Wtime() - began) * 1e9 / REPEAT;
	}
	qsort(ns, PIECES, sizeof(*ns), by_value);
	instructions = 0;
	set_trap(1);
	call();
	MPI_Win_flush(1, win);
	set_trap(0);
	printf(" %.1f %ld", ns[PIECES / 2], instructions);
}

/* The component that has done so far is left in place at the end. */
static void measure_all(void)
{
	ompi_osc_base_module_t *chosen = win->w_osc_module, other = *chosen;
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		printf("%s", calls[i].name);
		other.osc_put = no_put;
		other.osc_get = no_get;
		other.osc_fetch_and_op = no_fetch;
		other.osc_flush = no_flush;
		win->w_osc_module = &other;
		measure(calls[i].call);
		other.osc_put = bare_put;
		other.osc_get = bare_get;
		other.osc_fetch_and_op = bare_fetch;
		/* Neither a load nor an atomic instruction needs a fence. */
		other.osc_flush = calls[i].call == put ? bare_flush : no_flush;
		measure(calls[i].call);
		win->w_osc_module = chosen;
		measure(calls[i].call);
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = count_one };
	int64_t *mem;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	sigaction(SIGTRAP, &act, NULL);
	MPI_Win_allocate(4096, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	/* Tasks of one space use each other's addresses. */
	at = mem;
	MPI_Bcast(&at, sizeof(at), MPI_BYTE, 1, MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		measure_all();
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
