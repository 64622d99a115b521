// SPDX-License-Identifier: LGPL-2.1-or-later
/* Windows of each kind: sizes of which some are 0, displacement units, shared memory, regions. */
#include "common.h"

static int right;

static void check_attributes(MPI_Win win, int kind)
{
	int *value, found;

	MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &found);
	expect(found && *value == kind, "kind %d", *value);
	MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &found);
	expect(found && *value == MPI_WIN_UNIFIED, "model %d", *value);
}

/* Each rank has another size and unit; some have nothing. */
static void sizes(int allocate)
{
	const int unit = 1 + rank % 3, theirs = 1 + right % 3;
	const MPI_Aint bytes = rank % 3 ? 1000 * rank : 0;
	const MPI_Aint room = right % 3 ? 1000 * right : 0;
	char *memory = NULL, *buf = malloc(4096), value = rank;
	MPI_Win win;
	int rc;

	if (allocate)
		MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	else
		MPI_Win_create(memory = malloc(bytes + 1), bytes, unit, MPI_INFO_NULL,
			       MPI_COMM_WORLD, &win);
	check_attributes(win, allocate ? MPI_WIN_FLAVOR_ALLOCATE : MPI_WIN_FLAVOR_CREATE);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	rc = MPI_Put(&value, 1, MPI_CHAR, right, room / theirs, 1, MPI_CHAR, win);
	expect(room % theirs || class_of(rc) == MPI_ERR_RMA_RANGE, "put behind the end: %d", rc);
	if (room)
		MPI_Put(&value, 1, MPI_CHAR, right, room / theirs - 1, 1, MPI_CHAR, win);
	MPI_Win_unlock(right, win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (bytes)
		expect(memory[(bytes / unit - 1) * unit] == (rank + size - 1) % size,
		       "nothing came into %ld bytes", (long)bytes);
	MPI_Win_free(&win);
	if (!allocate)
		free(memory);
	free(buf);
}

/* One after another, unless all ranks allow pages of their own: each may give another info. */
enum noncontig { BY_NOBODY, BY_SOME, BY_ALL };

static void shared(enum noncontig wanted)
{
	const int ours = wanted == BY_ALL || (wanted == BY_SOME && rank % 2);
	const MPI_Aint bytes = 8 * (rank % 2 ? rank : rank + 3);
	char *base, *theirs, *end = NULL;
	MPI_Aint size_of;
	MPI_Info info;
	MPI_Win win;
	int unit, r;

	MPI_Info_create(&info);
	MPI_Info_set(info, "alloc_shared_noncontig", ours ? "true" : "false");
	MPI_Win_allocate_shared(bytes, 8, info, MPI_COMM_WORLD, &base, &win);
	check_attributes(win, MPI_WIN_FLAVOR_SHARED);
	MPI_Win_lock_all(0, win);
	((int64_t *)base)[0] = 100 + rank;
	MPI_Win_sync(win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (r = 0; r < size; r++) {
		MPI_Win_shared_query(win, r, &size_of, &unit, &theirs);
		expect(size_of == 8 * (r % 2 ? r : r + 3) && unit == 8, "rank %d has %ld", r,
		       (long)size_of);
		expect(r != rank || theirs == base, "rank %d is elsewhere", r);
		expect(wanted == BY_ALL || !r || theirs == end, "rank %d is not behind the last one", r);
		expect(((int64_t *)theirs)[0] == 100 + r, "rank %d has %ld", r,
		       (long)((int64_t *)theirs)[0]);
		end = theirs + size_of;
	}
	MPI_Win_shared_query(win, MPI_PROC_NULL, &size_of, &unit, &theirs);
	expect(((int64_t *)theirs)[0] == 100, "the lowest rank is %ld",
	       (long)((int64_t *)theirs)[0]);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	MPI_Info_free(&info);
}

#define REGIONS 50

static void regions(void)
{
	MPI_Aint ours[REGIONS], theirs[REGIONS];
	int64_t *memory[REGIONS], value;
	MPI_Win win;
	int i, rc;

	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	check_attributes(win, MPI_WIN_FLAVOR_DYNAMIC);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	for (i = 0; i < REGIONS; i++) {
		memory[i] = calloc(100, 8);
		rc = MPI_Win_attach(win, memory[i], 800);
		expect(!rc, "region %d: %d", i, rc);
		MPI_Get_address(memory[i], &ours[i]);
	}
	rc = class_of(MPI_Win_attach(win, memory[3] + 1, 8));
	expect(rc == MPI_ERR_RMA_ATTACH, "overlapping regions: %d", rc);
	MPI_Sendrecv(ours, REGIONS, MPI_AINT, (rank + size - 1) % size, 0, theirs, REGIONS,
		     MPI_AINT, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Win_lock_all(0, win);
	for (i = 0; i < REGIONS; i++) {
		value = 1000 * rank + i;
		MPI_Put(&value, 1, MPI_INT64_T, right, theirs[i] + 792, 1, MPI_INT64_T, win);
		rc = class_of(MPI_Put(&value, 1, MPI_INT64_T, right, theirs[i] + 796, 1,
				      MPI_INT64_T, win));
		expect(rc == MPI_ERR_RMA_RANGE, "put behind a region: %d", rc);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < REGIONS; i++) {
		expect(memory[i][99] == 1000 * ((rank + size - 1) % size) + i, "region %d has %ld",
		       i, (long)memory[i][99]);
		rc = MPI_Win_detach(win, memory[i]);
		expect(!rc, "detach: %d", rc);
	}
	expect(MPI_Win_detach(win, memory[0]) != MPI_SUCCESS, "detached twice");
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	rc = class_of(MPI_Get(&value, 1, MPI_INT64_T, right, theirs[7], 1, MPI_INT64_T, win));
	expect(rc == MPI_ERR_RMA_RANGE, "get from a detached region: %d", rc);
	rc = class_of(MPI_Put(&value, 1, MPI_INT64_T, right, 8, 1, MPI_INT64_T, win));
	expect(rc == MPI_ERR_RMA_RANGE, "put to address 8: %d", rc);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	for (i = 0; i < REGIONS; i++)
		free(memory[i]);
}

static void wrong_kind(void)
{
	MPI_Aint bytes;
	MPI_Win win;
	int cell, unit, rc;
	void *base;

	MPI_Win_create(&cell, sizeof(cell), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	rc = class_of(MPI_Win_attach(win, &rc, sizeof(rc)));
	expect(rc == MPI_ERR_RMA_FLAVOR, "attach: %d", rc);
	rc = class_of(MPI_Win_shared_query(win, 0, &bytes, &unit, &base));
	expect(rc == MPI_ERR_RMA_FLAVOR, "shared_query: %d", rc);
	MPI_Win_free(&win);
}

/* Nothing is left of windows, and many can be there at once. */
static void many(void)
{
	struct counter held;
	MPI_Win win[16];
	long long before;
	void *base;
	int i, k;

	counter_find(&held, "bytes_held");
	before = counter_read(&held);
	for (k = 0; k < 2; k++) {
		for (i = 0; i < 16; i++)
			MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win[i]);
		expect(counter_read(&held) == before + 16 * 4096, "%lld bytes are held",
		       counter_read(&held));
		for (i = 0; i < 16; i++)
			MPI_Win_free(&win[i]);
	}
	expect(counter_read(&held) == before, "%lld bytes are left", counter_read(&held) - before);
}

/* More than there can be, in one rank: all get the error. */
static void too_large(void)
{
	MPI_Win win = MPI_WIN_NULL;
	void *base;
	int i;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	expect(MPI_Win_allocate(rank ? 8 : (MPI_Aint)1 << 60, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
				&base, &win) != MPI_SUCCESS, "there are 2^60 bytes");
	for (i = 0; i < 100; i++)
		expect(MPI_Win_allocate_shared((MPI_Aint)1 << 62, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
					       &base, &win) != MPI_SUCCESS, "there are 2^62 bytes");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Open MPI frees it in MPI_Finalize; some ranks have an open epoch then. */
static void forget_one(void)
{
	MPI_Win win;
	void *base;

	MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	if (rank % 2)
		MPI_Win_lock_all(0, win);
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	counters_begin();
	right = (rank + 1) % size;
	sizes(0);
	sizes(1);
	shared(BY_NOBODY);
	shared(BY_SOME);
	shared(BY_ALL);
	regions();
	wrong_kind();
	many();
	too_large();
	forget_one();
	return finish();
}
