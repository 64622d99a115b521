/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pager's data. README.md has its design: the states of a page, and the order of
 * operations by which no store is lost.
 */
#ifndef PVAS_FAR_FAR_H
#define PVAS_FAR_FAR_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "list.h"
#include "protocol.h"
#include "pvas_far.h"
#include "stripe.h"
#include "uffd.h"

#define FAR_PUBLIC __attribute__((visibility("default")))

/* Where a page's contents are */
enum far_state {
	FAR_FREE,	/* not allocated */
	FAR_EMPTY,	/* nowhere: it reads as zeros */
	FAR_STORED,	/* in the stores only */
	FAR_SLOT,	/* in a slot, not mapped: read ahead, or on its way out */
	FAR_MAPPED,	/* mapped; write-protected if not FAR_DIRTY */
	FAR_BUSY,	/* one thread is changing that, without the lock; all others wait */
};

/* Of a page; kept while it is busy */
enum {
	FAR_DIRTY = 1 << 0,	/* memory is newer than the stores */
	FAR_IN_STORE = 1 << 1,	/* the stores have a copy, perhaps an old one */
	FAR_REFERENCED = 1 << 2, /* a thread asked for it since the clock passed */
	FAR_WANTED = 1 << 3,	/* threads wait for it while it is busy */
	FAR_COLD = 1 << 4,	/* no second chance */
	FAR_SEQUENTIAL = 1 << 5,
	FAR_START = 1 << 6,	/* the first page of an allocation */
	FAR_AHEAD = 1 << 7,	/* read ahead, not touched yet */
};

#define FAR_NO_SLOT UINT32_MAX

/**
 * struct far_page - a page of far memory
 * @slot:	in FAR_SLOT: which
 * @pins:	pvas_far_pin()s of it; a pinned page is not taken
 * @state:	enum far_state
 * @flags:	FAR_DIRTY and so on
 */
struct far_page {
	uint32_t slot;
	uint16_t pins;
	uint8_t state;
	uint8_t flags;
};

/**
 * struct far_slot - memory for one page that is not mapped
 * @page:	the page in it
 * @list:	the list that it is in: free, ready, clean or dirty; NULL: in use by a thread
 * @since:	when it came there: stream_clock, which counts faults
 */
struct far_slot {
	uint64_t page;
	uint64_t since;
	struct far_list *list;
};

/**
 * struct far_job - a page to be fetched ahead
 */
struct far_job {
	uint64_t page;
	uint32_t slot;
};

/* The accesses of one thread in one place: see ahead.c */
enum { FAR_STREAMS = 64, FAR_STRIDES = 8 };

struct far_stream {
	pid_t tid;
	unsigned int count;		/* of strides seen */
	unsigned int window;		/* pages to fetch ahead */
	uint64_t last;			/* page */
	uint64_t used;			/* when */
	int64_t stride[FAR_STRIDES];
};

/* The times of a page's exchange */
struct far_trip {
	uint64_t at[FAR_MOMENTS];
};

enum { FAR_WORKERS = 2, FAR_THREADS_MAX = 64 };

/* Pages are moved in batches of so many, or of so many bytes if that is less, but for one page. */
enum { FAR_BATCH = 64, FAR_BATCH_BYTES = 1 << 20 };

/**
 * struct far_pager - the pager
 *
 * @lock protects all that changes after pvas_far_open(), but a busy page's contents, and a
 * slot's that is in no list: these belong to the thread that made them so.
 *
 * @base:	far memory: one range, registered as a whole; allocations are parts of it. Of a
 *		job: the far part of the first partition; its allocations are registered
 * @pages:	how many it has, or all far parts together have
 * @part_pages:	of these, how many lie in a row; the others follow at
 * @stride:	the distance in bytes from one row to the next
 * @rows:	it is a job's
 * @batch:	how many pages in a row are taken at once
 * @unit:	how many pages in a row one fault may map: 1, or @batch if the program's accesses
 *		choose the unit of transfer
 * @place:	of each page, its number in the stores; NULL: they are the same
 * @page:	one a page
 * @page_link:	places in @resident
 * @resident:	mapped pages, in the order of the clock: its hand is at the head
 * @frames:	how many pages may be mapped
 * @mapped:	how many are, or are about to be
 * @free_low:	too few frames are free: a worker evicts until there are enough
 * @capacity:	of a job: how many pages may be @allocated
 * @slots:	numbers 0 to @fetch_count - 1: to fetch into, ordinary memory; all others: for
 *		pages on their way out, registered, so that the kernel can move pages there
 * @free_fetch, @ready: of the former: unused; with a page read ahead
 * @free_out, @clean, @dirty: of the latter: unused; with a page that is in the stores or can
 *		be dropped; with a page still to be put
 * @changed:	a page is no longer busy, a slot or frame is free; broadcast if @waiting
 * @work:	there may be work for the workers
 * @fetch:	there is a job for the thread that does nothing else; it is waiting: @fetcher_waits
 * @job:	a ring of @fetch_count
 * @protocol:	how pages are exchanged
 * @trip:	of the paper's protocols: one a page
 * @internal, @asked, @external: their queues of busy pages
 * @stale:	a bitmap of the places whose contents the stores may forget, of @stale_words words;
 *		@stale_count: how many; @stale_at: the word to go on with
 * @discarding, @discards: the first of the places that they are told of now, and how many
 * @discard:	there may be such places
 * @writing:	pages being put now
 * @changes:	counts what @changed tells, for those who must look twice
 * @left:	the job has ended, and threads that a store keeps waiting were left behind
 */
struct far_pager {
	struct far_uffd uffd;
	struct far_stripe stripe;
	size_t page_size;
	char *base;
	uint64_t pages;
	uint64_t part_pages;
	uint64_t stride;
	uint32_t *place;
	bool rows;
	unsigned int batch;
	unsigned int unit;
	struct far_page *page;
	struct far_link *page_link;
	struct far_list resident;
	uint64_t frames;
	uint64_t mapped;
	bool free_low;
	uint64_t pinned;
	uint64_t allocated;
	uint64_t capacity;

	char *slot_base;
	const void *zeros;
	struct far_slot *slot;
	struct far_link *slot_link;
	uint32_t fetch_count;
	uint32_t out_count;
	struct far_list free_fetch, ready, free_out, clean, dirty;

	struct far_job *job;
	unsigned int job_head, job_count;
	struct far_stream stream[FAR_STREAMS];
	uint64_t stream_clock;

	const struct far_protocol *protocol;
	struct far_trip *trip;
	struct far_list internal, asked, external;

	uint64_t *stale;
	uint64_t stale_words, stale_count, stale_at;
	uint64_t discarding, discards;
	pthread_cond_t discard;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_cond_t work;
	pthread_cond_t fetch;
	bool fetcher_waits;
	unsigned int waiting;
	unsigned int writing;
	unsigned int threads;
	unsigned int started;
	pthread_t thread[FAR_THREADS_MAX + FAR_WORKERS + 2];
	int stop_fd;
	bool stop;
	bool dying;
	bool left;
	pid_t pid;
	uint64_t ram;
	struct pvas_far_counters count;
};

extern struct far_pager far;

static inline void *far_page_addr(uint64_t page)
{
	return far.base + page / far.part_pages * far.stride +
	       page % far.part_pages * far.page_size;
}

/* The page that contains an address; far.pages if there is none */
static inline uint64_t far_page_at(uintptr_t addr)
{
	uint64_t from = addr - (uintptr_t)far.base, row = from / far.stride;
	uint64_t page = from % far.stride / far.page_size;

	if (addr < (uintptr_t)far.base || page >= far.part_pages)
		return far.pages;
	page += row * far.part_pages;
	return page < far.pages ? page : far.pages;
}

/* Is it one of the paper's protocols? */
static inline bool far_exchanges(void)
{
	return far.protocol->communicate;
}

/* Frames that are kept free, so that a fault need not wait for one; when to make more free */
static inline uint64_t far_reserve(void)
{
	return far.frames / 32 + 2;
}

static inline uint64_t far_reserve_low(void)
{
	return far_reserve() / 2 + 1;
}

static inline uint64_t far_place_of(uint64_t page)
{
	return far.place ? far.place[page] : page;
}

/* Do the page and the one @count pages behind it lie in a row, and in the stores, too? */
static inline bool far_are_in_row(uint64_t page, uint64_t count)
{
	return page % far.part_pages + count < far.part_pages;
}

static inline bool far_are_in_store_in_row(uint64_t page, uint64_t count)
{
	return far_are_in_row(page, count) &&
	       far_place_of(page + count) == far_place_of(page) + count;
}

static inline void *far_slot_addr(uint32_t slot)
{
	return far.slot_base + (size_t)slot * far.page_size;
}

/* ---- attr.c: attributes, environment, and what follows from them ---- */

struct far_config {
	char stores[4096];
	uint64_t ram, size, page;
	unsigned int copies, threads;
	bool user_only;
	bool adapt;	/* pages are small, and several are transferred at once if that helps */
	const struct far_protocol *protocol;
	const struct far_rows *rows;
};

/**
 * struct far_rows - far memory of a job: pages in rows, one in each partition
 * @base:	the first row
 * @stride:	from one to the next, in bytes
 * @length:	of each, in bytes
 * @count:	of them
 */
struct far_rows {
	char *base;
	uint64_t stride, length;
	unsigned int count;
};

int far_config_get(struct far_config *config, const struct pvas_far_attr *attr);

/* ---- home.c ---- */

/** struct far_home - where a thread that serves faults runs: on @at; -1: anywhere in @all */
struct far_home {
	int at;
	bool known;
	cpu_set_t all;
};

void far_home_begin(struct far_home *home);		/* the calling thread's */
void far_home_follow(struct far_home *home, pid_t tid);	/* it has served this thread */

/* ---- memory.c: the pager's memory ---- */

int far_memory_map(const struct far_config *config);
void far_memory_unmap(void);

/* ---- thread.c ---- */

int far_threads_start(void);

/*
 * In so many seconds; -1: as long as it takes. False: stores keep some of them waiting. Nobody
 * needs a page any more: they and all that they use stay, and do nothing that can be seen.
 */
bool far_threads_stop(int seconds);

/*
 * A page can't be had: one line on standard error, and the end of the process; of a job,
 * @far_when_dying ends it, and this thread waits for that.
 */
void far_die(const char *what) __attribute__((noreturn));
extern void (*far_when_dying)(const char *what);

/* api.c: the pager without its public functions */
int far_pager_open(const struct far_config *config);
bool far_pager_close(int seconds);	/* as far_threads_stop() */

/* ---- the following are called with the lock held; * may release it meanwhile ---- */

/* page.c */
void far_page_settle(uint64_t page, enum far_state state);	/* it is no longer busy */
void far_page_stay(uint64_t page);	/* mapped: the last one to go */
void far_page_placed(uint64_t page, int err);			/* busy, just mapped, or not */
void far_wait(void);						/* * for @changed */
void far_changed(void);
void far_page_wait(uint64_t page);				/* * until it is not busy */
/* * not FREE, MAPPED, BUSY; and with it up to @most - 1 pages behind it: returns how many */
unsigned int far_page_place(uint64_t page, bool write, unsigned int most);
void far_page_unprotect(uint64_t page);				/* * mapped, clean */
void far_page_forget(uint64_t page);				/* * drop its contents: now EMPTY */
void far_page_bring_in(uint64_t page, bool write);		/* * in the calling thread */

/* slot.c */
void far_slot_queue(uint32_t slot, struct far_list *list);
void far_slot_unqueue(uint32_t slot);
void far_slot_touch(uint32_t slot);				/* queue it anew */
void far_slot_free(uint32_t slot);
void far_slot_release_clean(void);				/* all of @clean */
uint32_t far_slot_for_fetch(bool demand);			/* * if @demand: waits for one */
uint32_t far_slot_for_out(void);				/* FAR_NO_SLOT: none now */
/* The one behind @slot, of the same kind, if it is free or, to take pages out, as good as free */
bool far_slot_take_next(uint32_t slot);

/* discard.c */
int far_discards_open(uint64_t places);
void far_discards_close(void);
void far_discard(uint64_t place);				/* the stores may forget it */
void far_discard_none(uint64_t place);				/* * it will be put */
bool far_discard_work(void);					/* * false: none to be told */

/* evict.c */
void far_frame_reserve(void);					/* * count one more in @mapped */
bool far_evict(void);						/* * one page: false: none now */
/* * a mapped page, into a slot; false: not now */
bool far_evict_page(uint64_t page);

/* put.c */
bool far_write_back(void);					/* * false: nothing to be put */

/* ahead.c */
/* A fault: queues jobs, and returns how many pages to map. far_ahead_mapped(): how many it were */
unsigned int far_ahead(uint64_t page, pid_t tid);
void far_ahead_mapped(uint64_t page, pid_t tid, unsigned int count);
bool far_ahead_work(void);					/* * one job: false: none */

/* fault.c */
void far_fault(const struct far_fault *fault);			/* takes the lock itself */

#endif
