// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: epochs ROUNDS
 *
 * All kinds of epochs, each in many rounds, with checks of what came when; and calls outside of
 * their epochs, with the class of their errors.
 */
#include "common.h"

#include <sched.h>

#define CELLS 64

static int64_t *mem;
static MPI_Win win;
static int rounds, right, left;

static void clear(void)
{
	int i;

	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
	for (i = 0; i < CELLS; i++)
		mem[i] = 0;
	MPI_Win_unlock(rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void fences(void)
{
	int64_t out, in;
	int i;

	clear();
	MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
	for (i = 1; i <= rounds; i++) {
		out = 1000 * i + rank;
		MPI_Put(&out, 1, MPI_INT64_T, right, i % CELLS, 1, MPI_INT64_T, win);
		MPI_Win_fence(0, win);
		expect(mem[i % CELLS] == 1000 * i + left, "fence %d: %lld", i,
		       (long long)mem[i % CELLS]);
		MPI_Get(&in, 1, MPI_INT64_T, left, i % CELLS, 1, MPI_INT64_T, win);
		MPI_Win_fence(i == rounds ? MPI_MODE_NOSUCCEED : 0, win);
		expect(in == 1000 * i + (left + size - 1) % size, "fence %d: got %lld", i,
		       (long long)in);
	}
}

/* Each rank is origin for its right neighbour and target of its left one. */
static void pscw(MPI_Group origins, MPI_Group targets, int with_test)
{
	int64_t out;
	int i, flag;

	clear();
	for (i = 1; i <= rounds; i++) {
		MPI_Win_post(origins, 0, win);
		MPI_Win_start(targets, 0, win);
		out = 1000 * i + rank;
		MPI_Put(&out, 1, MPI_INT64_T, right, 0, 1, MPI_INT64_T, win);
		MPI_Win_complete(win);
		for (flag = 0; with_test && !flag;)
			MPI_Win_test(win, &flag);
		if (!with_test)
			MPI_Win_wait(win);
		expect(mem[0] == 1000 * i + left, "post %d: %lld", i, (long long)mem[0]);
	}
}

/* One rank after another is the target of all. */
static void pscw_all(MPI_Group world)
{
	MPI_Group none;
	int64_t one = 1;
	int i, target;

	clear();
	for (i = 0; i < rounds; i++) {
		target = i % size;
		if (rank == target)
			MPI_Win_post(world, 0, win);
		MPI_Group_incl(world, 1, &target, &none);
		MPI_Win_start(none, 0, win);
		MPI_Accumulate(&one, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, MPI_SUM, win);
		MPI_Win_complete(win);
		MPI_Group_free(&none);
		if (rank == target) {
			MPI_Win_wait(win);
			expect(mem[1] == size * (i / size + 1), "exposure %d: %lld", i,
			       (long long)mem[1]);
		}
	}
}

static void groups(void)
{
	MPI_Group world, origins, targets;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &left, &origins);
	MPI_Group_incl(world, 1, &right, &targets);
	pscw(origins, targets, 0);
	pscw(origins, targets, 1);
	pscw_all(world);
	MPI_Win_post(MPI_GROUP_EMPTY, 0, win);
	MPI_Win_start(MPI_GROUP_EMPTY, 0, win);
	MPI_Win_complete(win);
	MPI_Win_wait(win);
	MPI_Group_free(&world);
	MPI_Group_free(&origins);
	MPI_Group_free(&targets);
}

/* Two cells that are equal whenever nobody has the exclusive lock */
static void locks(void)
{
	int64_t two[2];
	int i, target;

	clear();
	for (i = 0; i < rounds; i++) {
		target = i % size;
		if ((i + rank) % 3) {
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
			MPI_Get(two, 2, MPI_INT64_T, target, 0, 2, MPI_INT64_T, win);
			MPI_Win_flush(target, win);
			expect(two[0] == two[1], "exclusive: %lld, %lld", (long long)two[0],
			       (long long)two[1]);
			two[0]++;
			MPI_Put(&two[0], 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
			MPI_Win_flush_local(target, win);
			if (i % 8 == 0)
				sched_yield();
			MPI_Put(&two[0], 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, win);
		} else if (i % 2) {
			MPI_Win_lock_all(0, win);
			MPI_Get(two, 2, MPI_INT64_T, target, 0, 2, MPI_INT64_T, win);
			MPI_Win_flush_local_all(win);
			expect(two[0] == two[1], "lock_all: %lld, %lld", (long long)two[0],
			       (long long)two[1]);
			MPI_Win_flush_all(win);
		} else {
			MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
			MPI_Get(two, 2, MPI_INT64_T, target, 0, 2, MPI_INT64_T, win);
			MPI_Win_flush(target, win);
			expect(two[0] == two[1], "shared: %lld, %lld", (long long)two[0],
			       (long long)two[1]);
		}
		if ((i + rank) % 3 == 0 && i % 2)
			MPI_Win_unlock_all(win);
		else
			MPI_Win_unlock(target, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0, target = 0; i < rounds; i++)
		for (left = 0; left < size; left++)
			target += i % size == rank && (i + left) % 3;
	left = (rank + size - 1) % size;
	expect(mem[0] == target, "%lld exclusive locks, not %d", (long long)mem[0], target);
}

/* A rank polls for what another one puts, with loads and MPI_Win_sync(), or gets and flushes. */
static void polling(void)
{
	int64_t value = 0;
	int i;

	clear();
	MPI_Win_lock_all(0, win);
	for (i = 1; i <= rounds; i++) {
		if (rank == (i - 1) % size) {
			value = i;
			MPI_Put(&value, 1, MPI_INT64_T, i % size, 5, 1, MPI_INT64_T, win);
			MPI_Win_flush(i % size, win);
		}
		if (rank == i % size && i % 2)
			while (((volatile int64_t *)mem)[5] != i)
				MPI_Win_sync(win);
		else if (rank == i % size)
			for (value = 0; value != i;) {
				MPI_Get(&value, 1, MPI_INT64_T, rank, 5, 1, MPI_INT64_T, win);
				MPI_Win_flush(rank, win);
			}
	}
	MPI_Win_unlock_all(win);
}

/* One poll of a flag in rank 1, by operations that complete without a flush */
static int flag_by_request(int way)
{
	int64_t flag = 0;
	MPI_Request request;
	int done = 0;

	if (way % 2)
		MPI_Rget_accumulate(NULL, 0, MPI_INT64_T, &flag, 1, MPI_INT64_T, 1, 6, 1,
				    MPI_INT64_T, MPI_NO_OP, win, &request);
	else
		MPI_Rget(&flag, 1, MPI_INT64_T, 1, 6, 1, MPI_INT64_T, win, &request);
	if (way < 2)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	while (way >= 2 && !done)
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
	return flag == way + 1;
}

/* The peer sets the flag when its message has arrived: the rank that polls must make progress. */
static void polling_by_requests(int way)
{
	const int bytes = 8 << 20;
	char *buf = calloc(1, bytes);
	MPI_Request message;
	double began = MPI_Wtime();
	int64_t flag = way + 1;

	MPI_Win_lock_all(0, win);
	if (rank == 0) {
		MPI_Irecv(buf, bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &message);
		MPI_Barrier(MPI_COMM_WORLD);
		while (!flag_by_request(way) && MPI_Wtime() - began < 20)
			;
		expect(MPI_Wtime() - began < 20, "way %d: no message arrives in a loop of requests",
		       way);
		MPI_Wait(&message, MPI_STATUS_IGNORE);
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 1) {
			MPI_Ssend(buf, bytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
			MPI_Accumulate(&flag, 1, MPI_INT64_T, 1, 6, 1, MPI_INT64_T, MPI_REPLACE,
				       win);
		}
	}
	MPI_Win_unlock_all(win);
	free(buf);
}

/* ---- errors ---- */

#define fails(wanted, call)								\
	do {										\
		int class_ = class_of(call);						\
											\
		expect(class_ == (wanted), "%s: error class %d, not %d", #call, class_,	\
		       (wanted));							\
	} while (0)

static void out_of_range(void)
{
	int64_t cell = 0, result;
	MPI_Datatype back, far, farther;

	MPI_Type_create_hvector(2, 1, -8, MPI_INT64_T, &back);
	MPI_Type_commit(&back);
	/* The sum of its distances is 2^64, and so 0. */
	MPI_Type_create_resized(MPI_INT64_T, 0, (MPI_Aint)1 << 62, &farther);
	MPI_Type_contiguous(2, farther, &far);
	MPI_Type_commit(&farther);
	MPI_Type_commit(&far);
	fails(MPI_ERR_RMA_SYNC, MPI_Put(&cell, 1, MPI_INT64_T, right, 0, 5, farther, win));
	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	fails(MPI_ERR_RMA_RANGE, MPI_Put(&cell, 1, MPI_INT64_T, right, CELLS, 1, MPI_INT64_T, win));
	fails(MPI_ERR_RMA_RANGE, MPI_Get(&cell, 1, MPI_INT64_T, right, (MPI_Aint)1 << 60, 1,
					 MPI_INT64_T, win));
	fails(MPI_ERR_RMA_RANGE, MPI_Put(&cell, 1, MPI_INT64_T, right, 0, 1, back, win));
	fails(MPI_ERR_RMA_RANGE, MPI_Accumulate(&cell, 1, MPI_INT64_T, right, CELLS, 1, MPI_INT64_T,
						MPI_SUM, win));
	fails(MPI_ERR_RMA_RANGE, MPI_Fetch_and_op(&cell, &result, MPI_INT64_T, right, CELLS,
						  MPI_SUM, win));
	fails(MPI_ERR_RMA_RANGE, MPI_Compare_and_swap(&cell, &cell, &result, MPI_INT64_T, right,
						      CELLS, win));
	fails(MPI_ERR_RMA_RANGE, MPI_Put(&cell, 1, MPI_INT64_T, right, 0, 1, far, win));
	/* The first element is inside, the second one is not; or the offset wraps around to 0. */
	fails(MPI_ERR_RMA_RANGE, MPI_Put(mem, 2, MPI_INT64_T, right, CELLS - 1, 2, MPI_INT64_T,
					 win));
	fails(MPI_ERR_RMA_RANGE, MPI_Accumulate(mem, 2, MPI_INT64_T, right, CELLS - 1, 2,
						MPI_INT64_T, MPI_SUM, win));
	fails(MPI_ERR_RMA_RANGE, MPI_Put(&cell, 1, MPI_INT64_T, right, (MPI_Aint)1 << 61, 1,
					 MPI_INT64_T, win));
	fails(MPI_ERR_RMA_RANGE, MPI_Fetch_and_op(&cell, &result, MPI_INT64_T, right,
						  (MPI_Aint)1 << 61, MPI_SUM, win));
	fails(MPI_SUCCESS, MPI_Put(&cell, 0, MPI_INT64_T, right, CELLS, 0, MPI_INT64_T, win));
	fails(MPI_SUCCESS, MPI_Put(&cell, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win));
	fails(MPI_ERR_TRUNCATE, MPI_Put(mem, 2, MPI_INT64_T, right, 0, 1, MPI_INT64_T, win));
	fails(MPI_ERR_TYPE, MPI_Compare_and_swap(&cell, &cell, &result, MPI_DOUBLE, right, 0, win));
	fails(MPI_ERR_RMA_RANGE, MPI_Put(mem, 5, MPI_INT64_T, right, 0, 5, farther, win));
	MPI_Win_unlock(right, win);
	MPI_Type_free(&back);
	MPI_Type_free(&far);
	MPI_Type_free(&farther);
}

/* Calls with MPI_PROC_NULL, in an epoch with another rank, do nothing. Open MPI refuses locks. */
static void nobody(void)
{
	const int none = MPI_PROC_NULL;
	int64_t cell = 7, result = 7;
	MPI_Request request[2];

	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	fails(MPI_SUCCESS, MPI_Get(&cell, 1, MPI_INT64_T, none, 0, 1, MPI_INT64_T, win));
	fails(MPI_SUCCESS, MPI_Accumulate(&cell, 1, MPI_INT64_T, none, 0, 1, MPI_INT64_T, MPI_SUM,
					  win));
	fails(MPI_SUCCESS, MPI_Fetch_and_op(&cell, &result, MPI_INT64_T, none, 0, MPI_SUM, win));
	fails(MPI_SUCCESS, MPI_Compare_and_swap(&cell, &cell, &result, MPI_INT64_T, none, 0, win));
	fails(MPI_SUCCESS, MPI_Rput(&cell, 1, MPI_INT64_T, none, 0, 1, MPI_INT64_T, win,
				    &request[0]));
	fails(MPI_SUCCESS, MPI_Rget(&cell, 1, MPI_INT64_T, none, 0, 1, MPI_INT64_T, win,
				    &request[1]));
	fails(MPI_SUCCESS, MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
	fails(MPI_SUCCESS, MPI_Win_flush(none, win));
	fails(MPI_SUCCESS, MPI_Win_flush_local(none, win));
	MPI_Win_unlock(right, win);
	expect(cell == 7 && result == 7, "data came from nobody");
}

static void errors_of_epochs(void)
{
	MPI_Group world;
	int64_t cell = 0;
	int flag;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	fails(MPI_ERR_RMA_SYNC, MPI_Put(&cell, 1, MPI_INT64_T, right, 0, 1, MPI_INT64_T, win));
	fails(MPI_ERR_RMA_SYNC, MPI_Win_unlock(right, win));
	fails(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
	fails(MPI_ERR_RMA_SYNC, MPI_Win_flush(right, win));
	fails(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win));
	fails(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
	fails(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
	fails(MPI_ERR_RMA_SYNC, MPI_Win_test(win, &flag));
	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	fails(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
	fails(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
	fails(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
	fails(MPI_ERR_RMA_SYNC, MPI_Win_start(world, 0, win));
	fails(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
	if (size > 1)
		fails(MPI_ERR_RMA_SYNC, MPI_Put(&cell, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T,
						win));
	MPI_Win_unlock(right, win);
	MPI_Win_lock_all(0, win);
	fails(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
	fails(MPI_ERR_RMA_SYNC, MPI_Win_unlock(right, win));
	MPI_Win_unlock_all(win);
	MPI_Win_post(world, 0, win);
	fails(MPI_ERR_RMA_SYNC, MPI_Win_post(world, 0, win));
	MPI_Win_start(world, 0, win);
	fails(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
	MPI_Win_complete(win);
	MPI_Win_wait(win);
	MPI_Group_free(&world);
}

int main(int argc, char **argv)
{
	int way;

	begin(&argc, &argv);
	rounds = argc > 1 ? atoi(argv[1]) : 100;
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	MPI_Win_allocate(CELLS * sizeof(*mem), sizeof(*mem), MPI_INFO_NULL, MPI_COMM_WORLD, &mem,
			 &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	errors_of_epochs();
	out_of_range();
	nobody();
	fences();
	groups();
	locks();
	polling();
	clear();
	for (way = 0; size > 1 && way < 4; way++)
		polling_by_requests(way);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_free(&win);
	return finish();
}
