/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The space header: what partition 0 holds, as seen by every task.
 *
 * Private to libpvas but still an ABI: a task may carry another libpvas (in a
 * container, or linked in statically) than the launcher that made the space.
 * So: a task finds the header one page below pvas_start.table, checks @magic
 * and @version, and takes all other places from its members.
 *
 *	base		struct pvas_header, one page
 *	base + 4096	the partition table (struct pvas_part[entries])
 *	areas		struct pvas_area[entries]: what each task exports
 *	end - 64 KiB	scratch: stack and arguments of the process that makes
 *			the space (see create_mm.c); unused afterwards
 *
 * The range is private anonymous memory under MADV_WIPEONFORK: all tasks are
 * in one mm and share it, while in a fork child of a task it reads zero. That
 * is how a fork child knows that it is no task, with no system call.
 *
 * The header is advice between tasks that trust each other, like all memory
 * of a space. A launcher outside never reads it.
 */
#ifndef PVAS_HEADER_H
#define PVAS_HEADER_H

#include <stddef.h>
#include <stdint.h>
#include <linux/pvas.h>

#define PVAS_HEADER_MAGIC	0x5244485341565021ULL	/* "!PVASHDR" */
#define PVAS_HEADER_VERSION	1
#define PVAS_HEADER_TABLE	4096	/* offset of the table: never changes */
#define PVAS_HEADER_SCRATCH	65536

/* The header begins at a multiple of the first, and ends below the second: in partition 0. */
#define PVAS_HEADER_STEP	(256UL << 20)
#define PVAS_HEADER_LIMIT	(1UL << PVAS_SHIFT_MIN)

/* Set in the ids of the user backend; the module counts from 1. */
#define PVAS_ID_USER		0x80000000U

#define PVAS_NAME_WORDS		8	/* PVAS_NAME_MAX + NUL, in 64-bit words */
#define PVAS_AREA_SLOTS		255	/* PVAS_EXPORT_MAX */

/**
 * struct pvas_eventcount - tell waiters that something was exported
 * @seq:	futex; counts the exports
 * @waiters:	who sleeps on it. A waiter killed in its sleep stays counted:
 *		that costs later exports a system call, nothing else
 */
struct pvas_eventcount {
	uint32_t seq;
	uint32_t waiters;
};

/**
 * struct pvas_slot - one exported name
 * @tag:	gen << 32 | version << 2 | PVAS_SLOT_*. A slot of another gen than
 *		its owner's is free: names end with their task, nobody cleans up
 * @ptr:	the exported value
 * @name:	the name, padded with zeros, in words so that a reader may race
 *		with the writer (see export.c)
 */
struct pvas_slot {
	uint64_t tag;
	uint64_t ptr;
	uint64_t name[PVAS_NAME_WORDS];
	uint64_t reserved[6];
};

#define PVAS_SLOT_FREE	0	/* never used in this gen: a search ends here */
#define PVAS_SLOT_BUSY	1	/* being written */
#define PVAS_SLOT_LIVE	2
#define PVAS_SLOT_GONE	3	/* withdrawn: a search goes on, an export reuses it */

/**
 * struct pvas_area - what the task of one partition exports
 * @lock:	serialises the threads of the owner: gen << 32 | tid, 0 if free.
 *		Nobody else writes to the area, and readers take no lock, so a
 *		killed task can block nobody
 * @exports:	for those who wait for a name of this task
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
 * @version:	PVAS_HEADER_VERSION; a change of layout changes it
 * @id:		the space
 * @shift:	log2 of the partition size
 * @first:	lowest index a task can have
 * @last:	highest index a task can have
 * @entries:	entries in the table and in @areas
 * @length:	bytes from here to the end of the scratch
 * @table:	address of the partition table
 * @areas:	address of the areas
 * @exports:	for those who wait for a name of any task
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

_Static_assert(sizeof(struct pvas_slot) == 128, "layout");
_Static_assert(sizeof(struct pvas_area) == 32768, "layout");
_Static_assert(offsetof(struct pvas_header, exports) == 64, "layout");

/* Entries for partitions of 1 << @shift bytes. */
uint32_t pvas_header_entries(unsigned int shift);

/* Bytes a header with @entries needs, scratch included. */
size_t pvas_header_length(uint32_t entries);

/* Lay out a header in zeroed memory at @base; all but @magic, @id, @first, @last. */
void pvas_header_init(struct pvas_header *base, unsigned int shift);

/*
 * header_map.c: map @len bytes for a header where one can lie, and @below bytes just
 * before it. Returns the header's address; -EEXIST: all places are occupied; -errno.
 */
long pvas_header_map(size_t len, size_t below);

/* Complete it and let tasks see it. */
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
