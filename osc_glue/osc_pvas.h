/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The component osc/pvas: one-sided communication by loads, stores and atomic instructions.
 * README.md has the design.
 *
 * Threads: with MPI_THREAD_MULTIPLE, calls that move data may run at the same time, also in
 * one window. They change @access of a target by compare-and-exchange. They change @stored,
 * @until_poll, @next_check and @hint without any order, so these are only hints; counters may miss
 * some calls. MPI lets no two threads open and close epochs of one window at the same time.
 */
#ifndef OSC_PVAS_H
#define OSC_PVAS_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/win/win.h"

#include "../btl_glue/common.h"

#define MCA_OSC_PVAS_NAME "osc pvas"

/* Of struct mca_osc_pvas_modex, struct mca_osc_pvas_state, and what is exchanged for a window */
#ifndef MCA_OSC_PVAS_MODEX_VERSION
#define MCA_OSC_PVAS_MODEX_VERSION 2
#endif

/* Two cache lines: the processor fetches lines in pairs. */
#define MCA_OSC_PVAS_LINES 128

/* Rounds of a barrier among as many ranks as a space can have */
#define MCA_OSC_PVAS_ROUNDS 13

/* ---- what ranks read and write in each other's memory ---- */

struct mca_osc_pvas_modex {
	uint32_t version;
	uint32_t space;
	uint32_t index;
	uint32_t gen;
	int32_t pid;
	int32_t priority;
};

/* A region that is attached to a dynamic window; @bytes 0: none */
struct mca_osc_pvas_region {
	char *base;
	size_t bytes;
};

/**
 * struct mca_osc_pvas_regions - those of a rank, in its memory
 * @older:	smaller lists, which peers may still be reading
 */
struct mca_osc_pvas_regions {
	struct mca_osc_pvas_regions *older;
	size_t nr;
	struct mca_osc_pvas_region region[];
};

struct mca_osc_pvas_flag {
	_Alignas(64) uint64_t count;
};

/**
 * struct mca_osc_pvas_state - the part of a rank in a window that its peers use
 * @lock:	rank + 1 of the exclusive holder << 32 | number of shared holders
 * @wanted:	somebody waits for the exclusive lock
 * @acc_lock:	rank + 1 of who accumulates by more than an atomic instruction
 * @atomics:	somebody has used such an instruction here, and may do so again
 * @busy:	threads of this rank that use such an instruction, on any target
 * @completed:	times that an origin has completed an access epoch
 * @shared:	rank 0's: where contiguous shared memory begins; MAP_FAILED: there is none
 * @arrived:	barriers in which the peer of each round has arrived
 * @posted:	by rank: times that it has posted for us
 */
struct mca_osc_pvas_state {
	_Alignas(MCA_OSC_PVAS_LINES) uint64_t lock;
	uint32_t wanted;
	_Alignas(MCA_OSC_PVAS_LINES) uint64_t acc_lock;
	uint32_t atomics;
	_Alignas(MCA_OSC_PVAS_LINES) uint64_t busy;
	_Alignas(MCA_OSC_PVAS_LINES) uint64_t completed;
	_Alignas(MCA_OSC_PVAS_LINES) char *shared;
	struct mca_osc_pvas_regions *regions;
	_Alignas(MCA_OSC_PVAS_LINES) struct mca_osc_pvas_flag arrived[MCA_OSC_PVAS_ROUNDS];
	_Alignas(MCA_OSC_PVAS_LINES) uint32_t posted[];
};

/* ---- what a rank keeps for itself ---- */

/* Why this rank may access a target */
enum mca_osc_pvas_access {
	MCA_OSC_PVAS_NONE,		/* or by a fence */
	MCA_OSC_PVAS_BUSY,		/* another thread gets the lock */
	/* From here on it may. */
	MCA_OSC_PVAS_STARTED,
	MCA_OSC_PVAS_SHARED,
	MCA_OSC_PVAS_EXCLUSIVE,
	MCA_OSC_PVAS_UNCHECKED,		/* MPI_MODE_NOCHECK: no lock was taken */
	/* From here on by lock_all. */
	MCA_OSC_PVAS_ALL_SHARED,
	MCA_OSC_PVAS_ALL_UNCHECKED,
};

enum mca_osc_pvas_fence { MCA_OSC_PVAS_CLOSED, MCA_OSC_PVAS_OPEN, MCA_OSC_PVAS_USED };

enum mca_osc_pvas_lock_all {
	MCA_OSC_PVAS_NO_LOCK_ALL,
	MCA_OSC_PVAS_LOCK_ALL,
	MCA_OSC_PVAS_LOCK_ALL_UNCHECKED,
};

/**
 * struct mca_osc_pvas_target - a rank of a window
 * @bytes:	of its memory; 0 in a dynamic window
 * @part:	its partition, and @gen, that partition's task
 * @vpid:	its rank in MPI_COMM_WORLD
 * @announced:	we have set @atomics of its state
 * @hint:	the region of a dynamic window that was used last, or any other one
 * @nr_posted:	times that we have posted for it
 * @nr_started:	times that it has posted, and we have started
 */
struct mca_osc_pvas_target {
	_Alignas(64) char *base;
	size_t bytes;
	ptrdiff_t disp_unit;
	struct mca_osc_pvas_state *state;
	const struct pvas_part *part;
	uint32_t gen;
	uint32_t vpid;
	uint8_t access;
	bool announced;
	uint32_t hint;
	uint32_t nr_posted;
	uint32_t nr_started;
};

/**
 * struct mca_osc_pvas_module - a window
 * @own:	our state
 * @targets:	by rank
 * @nr_locks:	targets that are locked one by one
 * @started:	ranks of the access epoch that MPI_Win_start has begun; @nr_started: -1: none
 * @exposed:	MPI_Win_post has begun an exposure epoch
 * @expected:	@completed of our state at its end
 * @barriers:	barriers so far
 * @nr_empty:	regions of no bytes that are attached
 * @next_check:	when peers are to be checked again
 * @until_poll:	calls that can be polls until the next call of Open MPI's progress function
 * @stored:	there may be stores that are not yet visible to all; not used with threads
 * @memory:	what we have mapped for the window, of @mapped bytes
 */
struct mca_osc_pvas_module {
	ompi_osc_base_module_t super;
	int rank;
	int size;
	int flavor;
	bool noncontig;
	struct mca_osc_pvas_state *own;
	struct mca_osc_pvas_target *targets;

	enum mca_osc_pvas_fence fence;
	enum mca_osc_pvas_lock_all lock_all;
	int nr_locks;
	int nr_started;
	int *started;
	bool exposed;
	uint64_t expected;
	uint64_t barriers;

	int nr_empty;
	uint64_t next_check;
	int until_poll;
	bool stored;
	void *memory;
	size_t mapped;
};

struct mca_osc_pvas_counters {
	unsigned long long puts;
	unsigned long long gets;
	unsigned long long accumulates;
	unsigned long long locked_accumulates;
	unsigned long long locks;
	unsigned long long bytes_copied;
	unsigned long long waits;
	unsigned long long windows;
	unsigned long long bytes_held;
};

/* @making: a window that Open MPI does not know yet */
struct mca_osc_pvas_component {
	ompi_osc_base_component_t super;

	int priority;
	unsigned int spin;
	int poll_interval;
	bool yield;

	bool ready;
	const struct mca_osc_pvas_module *making;
	struct mca_osc_pvas_modex modex;
	struct mca_btl_pvas_faults faults;
	struct mca_osc_pvas_counters counters;
};

/* The symbol that Open MPI looks up */
extern struct mca_osc_pvas_component mca_osc_pvas_component
	__attribute__((visibility("default")));

#define mca_osc_pvas_count(counter, n) (mca_osc_pvas_component.counters.counter += (n))

static inline struct mca_osc_pvas_module *mca_osc_pvas_module_of(const ompi_win_t *win)
{
	return (struct mca_osc_pvas_module *)win->w_osc_module;
}

/* peers.c */
bool mca_osc_pvas_find_self(void);
bool mca_osc_pvas_publish(void);
bool mca_osc_pvas_same_space(struct ompi_communicator_t *comm);
bool mca_osc_pvas_find_member(const struct ompi_group_t *group, int rank,
			      struct mca_osc_pvas_target *target);
void mca_osc_pvas_lost(uint32_t index);
void mca_osc_pvas_end_job(const struct mca_osc_pvas_module *m, int rank);
void mca_osc_pvas_watch(struct mca_osc_pvas_module *m);

/* The partition table is in the space header, and changes when a task begins or ends. */
static inline bool mca_osc_pvas_runs(const struct pvas_part *part, uint32_t gen)
{
	return __atomic_load_n(&part->state, __ATOMIC_ACQUIRE) == PVAS_PART_RUNNING &&
	       __atomic_load_n(&part->gen, __ATOMIC_RELAXED) == gen;
}

static inline bool mca_osc_pvas_alive(const struct mca_osc_pvas_target *target)
{
	return mca_osc_pvas_runs(target->part, target->gen);
}

/* window.c */
int mca_osc_pvas_select(ompi_win_t *win, void **base, size_t size, int disp_unit,
			struct ompi_communicator_t *comm, struct opal_info_t *info, int flavor,
			int *model);
int mca_osc_pvas_free(ompi_win_t *win);
int mca_osc_pvas_shared_query(ompi_win_t *win, int rank, size_t *size, int *disp_unit,
			      void *baseptr);

/* region.c */
int mca_osc_pvas_attach(ompi_win_t *win, void *base, size_t bytes);
int mca_osc_pvas_detach(ompi_win_t *win, const void *base);
bool mca_osc_pvas_is_attached(struct mca_osc_pvas_target *target, const char *from,
			      const char *to);
void mca_osc_pvas_free_regions(struct mca_osc_pvas_regions *regions);

/* wait.c */
void mca_osc_pvas_pause(struct mca_osc_pvas_module *m, unsigned int *polls);
void mca_osc_pvas_poll_now(struct mca_osc_pvas_module *m);
void mca_osc_pvas_barrier(struct mca_osc_pvas_module *m);

/* Wait until @condition holds. */
#define mca_osc_pvas_wait_until(m, condition)			\
	do {							\
		unsigned int polls_ = 0;			\
								\
		while (!(condition))				\
			mca_osc_pvas_pause((m), &polls_);	\
	} while (0)

#define mca_osc_pvas_load(where) __atomic_load_n(where, __ATOMIC_ACQUIRE)

/*
 * Some programs wait for a peer by a get and a flush, again and again, by MPI_Win_sync(), or by a
 * get with a request that is complete at once.
 * That peer may need this rank's progress, or its processor, or may have ended.
 */
static inline void mca_osc_pvas_poll(struct mca_osc_pvas_module *m)
{
	const int left = __atomic_load_n(&m->until_poll, __ATOMIC_RELAXED) - 1;

	__atomic_store_n(&m->until_poll, left, __ATOMIC_RELAXED);
	if (__builtin_expect(left <= 0, 0))
		mca_osc_pvas_poll_now(m);
}

/* All our stores so far are visible to all, before any later load. */
static inline void mca_osc_pvas_complete_all(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* The caller is about to store into the window. */
static inline void mca_osc_pvas_will_store(struct mca_osc_pvas_module *m)
{
	__atomic_store_n(&m->stored, true, __ATOMIC_RELAXED);
}

/*
 * A flush: gets, and atomic instructions, need no fence. Threads always make one: another one's
 * flush may have cleared @stored, and its fence says nothing about this thread's stores.
 */
static inline void mca_osc_pvas_complete(struct mca_osc_pvas_module *m)
{
	if (opal_using_threads() || __atomic_load_n(&m->stored, __ATOMIC_RELAXED))
		mca_osc_pvas_complete_all();
	__atomic_store_n(&m->stored, false, __ATOMIC_RELAXED);
}

/* passive.c */
int mca_osc_pvas_begin_access(struct mca_osc_pvas_module *m, struct mca_osc_pvas_target *target);
int mca_osc_pvas_lock(int type, int rank, int assertion, ompi_win_t *win);
int mca_osc_pvas_unlock(int rank, ompi_win_t *win);
int mca_osc_pvas_lock_all(int assertion, ompi_win_t *win);
int mca_osc_pvas_unlock_all(ompi_win_t *win);
int mca_osc_pvas_sync(ompi_win_t *win);
int mca_osc_pvas_flush(int rank, ompi_win_t *win);
int mca_osc_pvas_flush_all(ompi_win_t *win);

/* active.c */
int mca_osc_pvas_fence(int assertion, ompi_win_t *win);
int mca_osc_pvas_start(struct ompi_group_t *group, int assertion, ompi_win_t *win);
int mca_osc_pvas_complete_epoch(ompi_win_t *win);
int mca_osc_pvas_post(struct ompi_group_t *group, int assertion, ompi_win_t *win);
int mca_osc_pvas_wait(ompi_win_t *win);
int mca_osc_pvas_test(ompi_win_t *win, int *flag);

/* put_get.c */
int mca_osc_pvas_put(const void *origin, int origin_count, struct ompi_datatype_t *origin_type,
		     int rank, ptrdiff_t disp, int count, struct ompi_datatype_t *type,
		     ompi_win_t *win);
int mca_osc_pvas_get(void *origin, int origin_count, struct ompi_datatype_t *origin_type,
		     int rank, ptrdiff_t disp, int count, struct ompi_datatype_t *type,
		     ompi_win_t *win);
int mca_osc_pvas_rput(const void *origin, int origin_count, struct ompi_datatype_t *origin_type,
		      int rank, ptrdiff_t disp, int count, struct ompi_datatype_t *type,
		      ompi_win_t *win, struct ompi_request_t **request);
int mca_osc_pvas_rget(void *origin, int origin_count, struct ompi_datatype_t *origin_type,
		      int rank, ptrdiff_t disp, int count, struct ompi_datatype_t *type,
		      ompi_win_t *win, struct ompi_request_t **request);

/* accumulate.c */
int mca_osc_pvas_accumulate(const void *origin, int origin_count,
			    struct ompi_datatype_t *origin_type, int rank, ptrdiff_t disp,
			    int count, struct ompi_datatype_t *type, struct ompi_op_t *op,
			    ompi_win_t *win);
int mca_osc_pvas_get_accumulate(const void *origin, int origin_count,
				struct ompi_datatype_t *origin_type, void *result,
				int result_count, struct ompi_datatype_t *result_type, int rank,
				ptrdiff_t disp, int count, struct ompi_datatype_t *type,
				struct ompi_op_t *op, ompi_win_t *win);
int mca_osc_pvas_raccumulate(const void *origin, int origin_count,
			     struct ompi_datatype_t *origin_type, int rank, ptrdiff_t disp,
			     int count, struct ompi_datatype_t *type, struct ompi_op_t *op,
			     ompi_win_t *win, struct ompi_request_t **request);
int mca_osc_pvas_rget_accumulate(const void *origin, int origin_count,
				 struct ompi_datatype_t *origin_type, void *result,
				 int result_count, struct ompi_datatype_t *result_type, int rank,
				 ptrdiff_t disp, int count, struct ompi_datatype_t *type,
				 struct ompi_op_t *op, ompi_win_t *win,
				 struct ompi_request_t **request);
int mca_osc_pvas_fetch_and_op(const void *origin, void *result, struct ompi_datatype_t *type,
			      int rank, ptrdiff_t disp, struct ompi_op_t *op, ompi_win_t *win);
int mca_osc_pvas_compare_and_swap(const void *origin, const void *compare, void *result,
				  struct ompi_datatype_t *type, int rank, ptrdiff_t disp,
				  ompi_win_t *win);

#endif /* OSC_PVAS_H */
