// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * There is no memory for a window in one rank: each allocation that the component makes while it
 * makes a window fails in turn. All ranks then get an error, or all a window, and none waits.
 */
#include "common.h"

#include <dlfcn.h>
#include <errno.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

/* Until the allocation that fails; 0: none */
static int until_failure;

/* @caller: only the component's are to fail, not Open MPI's. */
static int has_failed(void *caller)
{
	Dl_info info;

	return until_failure && dladdr(caller, &info) &&
	       strstr(info.dli_fname, "mca_osc_pvas") && !--until_failure;
}

void *malloc(size_t bytes)
{
	return has_failed(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return has_failed(__builtin_return_address(0)) ? NULL : __libc_calloc(n, bytes);
}

int posix_memalign(void **at, size_t alignment, size_t bytes)
{
	*at = has_failed(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, bytes);
	return *at ? 0 : ENOMEM;
}

static int make(int kind, MPI_Win *win)
{
	static char cells[64];
	void *base;

	switch (kind) {
	case MPI_WIN_FLAVOR_CREATE:
		return MPI_Win_create(cells, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, win);
	case MPI_WIN_FLAVOR_ALLOCATE:
		return MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, win);
	case MPI_WIN_FLAVOR_SHARED:
		return MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, win);
	default:
		return MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win);
	}
}

/* How many of the component's allocations failed, one by one, until there was no other one */
static int fail_each(int kind, int victim)
{
	int n, failed, errors_of_all, all_made = 0;
	MPI_Win win;

	for (n = 1; !all_made && n < 20; n++) {
		until_failure = rank == victim ? n : 0;
		failed = make(kind, &win) != MPI_SUCCESS;
		all_made = rank != victim || until_failure;
		until_failure = 0;
		MPI_Allreduce(MPI_IN_PLACE, &all_made, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
		MPI_Allreduce(&failed, &errors_of_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		expect(errors_of_all == (all_made ? 0 : size),
		       "kind %d, allocation %d of rank %d: %d ranks have an error", kind, n, victim,
		       errors_of_all);
		if (!failed)
			MPI_Win_free(&win);
	}
	return n - 2;
}

int main(int argc, char **argv)
{
	const int kinds[] = { MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE,
			      MPI_WIN_FLAVOR_SHARED, MPI_WIN_FLAVOR_DYNAMIC };
	int i, victim, failed;

	begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (i = 0; i < 4; i++)
		for (victim = 0; victim < size; victim++) {
			failed = fail_each(kinds[i], victim);
			expect(failed >= 3 && failed < 18, "kind %d: %d allocations failed",
			       kinds[i], failed);
		}
	return finish();
}
