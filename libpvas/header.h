/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The space header, in partition 0: every task can read it.
 *
 * Private to libpvas but still an ABI: a task may carry another libpvas (in a
 * container, or linked in statically) than the launcher that made the space.
 * So a task finds the header one page below pvas_start.table, checks @magic and
 * @version, and takes all other addresses from its members.
 *
 *	base		struct pvas_header, one page
 *	base + 4096	the partition table (struct pvas_part[entries])
 *	areas		struct pvas_area[entries]: the exports of each task
 *	end - 64 KiB	scratch: stack and arguments of the process that creates
 *			the space (see create_mm.c); unused afterwards
 *
 * The range is private anonymous memory with MADV_WIPEONFORK: all tasks share it,
 * being in one mm, while a fork child of a task reads zeros. So a fork child can
 * tell without a system call that it is not a task.
 *
 * Tasks can write to the header as to all memory of a space. They trust each other;
 * the launcher never reads it.
 */
#ifndef PVAS_HEADER_H
#define PVAS_HEADER_H

#include <stddef.h>
#include <stdint.h>
#include <linux/pvas.h>

#define PVAS_HEADER_MAGIC	0x5244485341565021ULL	/* "!PVASHDR" */
#define PVAS_HEADER_VERSION	1
#define PVAS_HEADER_TABLE	4096	/* offset of the table: part of the ABI */
#define PVAS_HEADER_SCRATCH	65536
#define PVAS_HEADER_FAR		2048	/* offset of struct pvas_far_seen, in the first page */

/* The header begins at a multiple of STEP, and ends below LIMIT: in partition 0. */
#define PVAS_HEADER_STEP	(256UL << 20)
#define PVAS_HEADER_LIMIT	(1UL << PVAS_SHIFT_MIN)

/* Set in the ids of the user backend; the module counts from 1. */
#define PVAS_ID_USER		0x80000000U

#define PVAS_NAME_WORDS		8	/* PVAS_NAME_MAX + NUL, in 64-bit words */
#define PVAS_AREA_SLOTS		255	/* PVAS_EXPORT_MAX */

/**
 * struct pvas_eventcount - wakes waiters after an export
 * @seq:	futex; counts the exports
 * @waiters:	number of sleepers. One that is killed stays counted, which only
 *		costs later exports a system call
 */
struct pvas_eventcount {
	uint32_t seq;
	uint32_t waiters;
};

/**
 * struct pvas_slot - one exported name
 * @tag:	gen << 32 | version << 2 | PVAS_SLOT_*. A slot whose gen is not its
 *		owner's is free: so names end with their task, without cleaning up
 * @ptr:	the exported value
 * @name:	the name, padded with zeros, in words so that readers and the writer
 *		may race (see slot.h)
 */
struct pvas_slot {
	uint64_t tag;
	uint64_t ptr;
	uint64_t name[PVAS_NAME_WORDS];
	uint64_t reserved[6];
};

#define PVAS_SLOT_FREE	0	/* not used yet in this gen: a search ends here */
#define PVAS_SLOT_BUSY	1	/* being written */
#define PVAS_SLOT_LIVE	2
#define PVAS_SLOT_GONE	3	/* withdrawn: a search continues, an export reuses it */

/**
 * struct pvas_area - the exports of the task in one partition
 * @lock:	serialises the threads of the owner: gen << 32 | tid, 0 if free.
 *		Only the owner writes to the area, and readers take no lock, so a
 *		killed task blocks no other
 * @exports:	tasks wait on it for a name of this task
 * @slots:	open addressing by the hash of the name
 */
struct pvas_area {
	uint64_t lock;
	struct pvas_eventcount exports;
	uint64_t reserved[14];
	struct pvas_slot slots[PVAS_AREA_SLOTS];
};

/**
 * struct pvas_header - the first page
 * @magic:	PVAS_HEADER_MAGIC, stored last; 0 in a fork child
 * @version:	PVAS_HEADER_VERSION: changes with the layout
 * @id:		the space
 * @shift:	log2 of the partition size
 * @first:	lowest index a task can have
 * @last:	highest index a task can have
 * @entries:	entries in the table and in @areas
 * @length:	bytes from here to the end of the scratch
 * @table:	address of the partition table
 * @areas:	address of the areas
 * @exports:	tasks wait on it for a name of any task
 */
struct pvas_header {
	uint64_t magic;
	uint32_t version;
	uint32_t id;
	uint32_t shift;
	uint32_t first;
	uint32_t last;
	uint32_t entries;
	uint64_t length;
	uint64_t table;
	uint64_t areas;
	uint64_t reserved;
	struct pvas_eventcount exports;
};

/**
 * struct pvas_far_seen - far memory, for those who look on: updated each second
 * @ram:	the budget, in bytes; 0: no far memory
 * @allocated:	bytes of far memory
 * @resident:	of them, bytes in memory, with the pager's buffers
 * @stored:	bytes that the stores use
 * @faults:	in all
 * @faults_s:	of them, in the last second
 * @in_s:	bytes that came from the stores in the last second
 * @out_s:	and went there
 * @hits:	of 1000 pages that threads waited for in the last second, those that no store had
 *		to be asked for; more than 1000: unknown
 *
 * And of each partition, in KiB, 32 bits each: see PVAS_PART_FAR.
 */
struct pvas_far_seen {
	uint64_t ram, allocated, resident, stored, faults, faults_s, in_s, out_s, hits;
};

/* Words of struct pvas_part's @reserved: KiB of the task's far memory, and of them in memory */
#define PVAS_PART_FAR		0
#define PVAS_PART_FAR_LOCAL	1

_Static_assert(sizeof(struct pvas_header) <= PVAS_HEADER_FAR, "layout");
_Static_assert(PVAS_HEADER_FAR + sizeof(struct pvas_far_seen) <= PVAS_HEADER_TABLE, "layout");
_Static_assert(sizeof(struct pvas_slot) == 128, "layout");
_Static_assert(sizeof(struct pvas_area) == 32768, "layout");
_Static_assert(offsetof(struct pvas_header, exports) == 64, "layout");

/* Entries for partitions of 1 << @shift bytes. */
uint32_t pvas_header_entries(unsigned int shift);

/* Bytes that a header with @entries takes, scratch included. */
size_t pvas_header_length(uint32_t entries);

/* Fill in a header in zeroed memory at @base: all but @magic, @id, @first, @last. */
void pvas_header_init(struct pvas_header *base, unsigned int shift);

/*
 * header_map.c: map @len bytes for a header where one can lie, and @below bytes just
 * before it. Returns the header's address; -EEXIST: all places are occupied; -errno.
 */
long pvas_header_map(size_t len, size_t below);

/* Set these too, @magic last: then tasks can use it. */
void pvas_header_publish(struct pvas_header *h, uint32_t id, uint32_t first, uint32_t last);

static inline struct pvas_part *pvas_header_part(const struct pvas_header *h, uint32_t index)
{
	return (struct pvas_part *)h->table + index;
}

static inline struct pvas_area *pvas_header_area(const struct pvas_header *h, uint32_t index)
{
	return (struct pvas_area *)h->areas + index;
}

static inline char *pvas_header_scratch(struct pvas_header *h)
{
	return (char *)h + h->length - PVAS_HEADER_SCRATCH;
}

#endif /* PVAS_HEADER_H */
