// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: selected [none]
 *
 * The component does windows of all kinds, of the world, a part of it and self; or, with "none",
 * none of the world. Parameters and counters are there.
 */
#include "common.h"

static struct counter windows, puts_, locks;

static void use(MPI_Comm comm, MPI_Win win)
{
	int n, me, value, right;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	right = (me + 1) % n;
	value = 100 + me;
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
	MPI_Put(&value, 1, MPI_INT, right, 0, 1, MPI_INT, win);
	MPI_Win_unlock(right, win);
	MPI_Barrier(comm);
	MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
	MPI_Get(&value, 1, MPI_INT, me, 0, 1, MPI_INT, win);
	MPI_Win_unlock(me, win);
	expect(value == 100 + (me + n - 1) % n, "%d was put", value);
	MPI_Barrier(comm);
}

static void all_kinds(MPI_Comm comm, int ours)
{
	long long before = counter_read(&windows), done;
	MPI_Win win[3];
	int cell, *at[2], i;

	MPI_Win_create(&cell, sizeof(cell), 1, MPI_INFO_NULL, comm, &win[0]);
	MPI_Win_allocate(sizeof(cell), 1, MPI_INFO_NULL, comm, &at[0], &win[1]);
	MPI_Win_allocate_shared(sizeof(cell), 1, MPI_INFO_NULL, comm, &at[1], &win[2]);
	done = counter_read(&windows) - before;
	expect(done == (ours ? 3 : 0), "%lld windows are the component's", done);
	for (i = 0; i < 3; i++) {
		use(comm, win[i]);
		MPI_Win_free(&win[i]);
	}
	expect(counter_read(&windows) == before, "windows are left");
}

int main(int argc, char **argv)
{
	MPI_Comm part;
	int ours;

	begin(&argc, &argv);
	ours = argc < 2;
	counters_begin();
	counter_find(&windows, "windows");
	counter_find(&puts_, "puts");
	counter_find(&locks, "locks");
	all_kinds(MPI_COMM_WORLD, ours);
	if (ours) {
		all_kinds(MPI_COMM_SELF, 1);
		MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
		all_kinds(part, 1);
		MPI_Comm_free(&part);
		expect(counter_read(&puts_) == 9, "%lld puts", counter_read(&puts_));
		expect(counter_read(&locks) == 18, "%lld locks", counter_read(&locks));
	}
	return finish();
}
