// SPDX-License-Identifier: LGPL-2.1-or-later
/* The pager's memory: far memory itself, slots and tables. Their sizes follow from the budget. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "far.h"
#include "store.h"

/* Fetched ahead at a time: enough for slow links, unless pages are large */
enum { FETCH_BYTES = 4 << 20 };

static uint64_t clamp(uint64_t n, uint64_t least, uint64_t most)
{
	return n < least ? least : n > most ? most : n;
}

static size_t slots_size(void)
{
	return (size_t)(far.fetch_count + far.out_count) * far.page_size;
}

/* Memory that takes no room until it is used */
static void *map(size_t size, int protection)
{
	void *p = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void unmap(const void *addr, size_t size)
{
	if (addr)
		munmap((void *)(uintptr_t)addr, size);
}

/*
 * Of pages: aligned, not in children, which have no pager, and not in core dumps. No huge
 * pages: the kernel would fill a whole one where one small page was put.
 */
static char *map_pages(uint64_t pages, int protection)
{
	size_t size = pages * far.page_size, lead;
	char *p = map(size + far.page_size, protection);

	if (!p)
		return NULL;
	lead = -(uintptr_t)p & (far.page_size - 1);
	if (lead)
		munmap(p, lead);
	munmap(p + lead + size, far.page_size - lead);
	p += lead;
	madvise(p, size, MADV_NOHUGEPAGE);
	madvise(p, size, MADV_DONTDUMP);
	if (!madvise(p, size, MADV_DONTFORK))
		return p;
	munmap(p, size);
	return NULL;
}

/*
 * The budget is for mapped pages and all slots: how many of each. Batches are small beside it. The
 * paper's protocols exchange one page for another.
 */
static void divide(uint64_t budget, bool adapt)
{
	bool own = !far_exchanges();
	uint64_t fetch = clamp(FETCH_BYTES / far.page_size, 64, 1024);

	if (!own)
		fetch = far.protocol->fetch_slots;
	far.fetch_count = (uint32_t)clamp(budget / 16, own ? 8 : 4, fetch);
	far.out_count = (uint32_t)clamp(budget / 8, 4, own ? 1024 : far.protocol->out_slots);
	far.frames = budget - far.fetch_count - far.out_count;
	far.batch = (unsigned int)clamp(FAR_BATCH_BYTES / far.page_size, 1, FAR_BATCH);
	far.batch = own ? (unsigned int)clamp(far.frames / 32, 1, far.batch) : 1;
	far.unit = adapt ? far.batch : 1;
}

static void init_lists(void)
{
	uint32_t i;

	far.resident = far.free_fetch = far.ready = FAR_LIST_EMPTY;
	far.free_out = far.clean = far.dirty = FAR_LIST_EMPTY;
	far.internal = far.asked = far.external = FAR_LIST_EMPTY;
	for (i = 0; i < far.fetch_count + far.out_count; i++)
		far_slot_free(i);
}

/* Where pages are in the stores, if that is not their number; and the times of exchanges */
static int map_places(void)
{
	uint64_t n;

	if (!far.rows && !far_exchanges())
		return 0;
	far.place = map(far.pages * sizeof(*far.place), PROT_READ | PROT_WRITE);
	if (far_exchanges())
		far.trip = map(far.pages * sizeof(*far.trip), PROT_READ | PROT_WRITE);
	if (!far.place || (far_exchanges() && !far.trip))
		return far_fail(-ENOMEM, "no memory for a table of places");
	/* Of a job, a page has a place when it is mapped. */
	for (n = 0; !far.rows && n < far.pages; n++)
		far.place[n] = (uint32_t)n;
	return 0;
}

static int map_tables(void)
{
	uint32_t slots = far.fetch_count + far.out_count;

	far.page = map(far.pages * sizeof(*far.page), PROT_READ | PROT_WRITE);
	far.page_link = map(far.pages * sizeof(*far.page_link), PROT_READ | PROT_WRITE);
	far.slot = map(slots * sizeof(*far.slot), PROT_READ | PROT_WRITE);
	far.slot_link = map(slots * sizeof(*far.slot_link), PROT_READ | PROT_WRITE);
	far.job = map(far.fetch_count * sizeof(*far.job), PROT_READ | PROT_WRITE);
	/* Never written: it reads as zeros, and takes no memory. */
	far.zeros = map(far.unit * far.page_size, PROT_READ);
	if (!far.page || !far.page_link || !far.slot || !far.slot_link || !far.job || !far.zeros)
		return far_fail(-ENOMEM, "no memory for the tables of %llu pages",
				(unsigned long long)far.pages);
	init_lists();
	return map_places();
}

static int map_all(const struct far_rows *rows)
{
	if (!rows)
		far.base = map_pages(far.pages, PROT_NONE);
	far.slot_base = map_pages(far.fetch_count + far.out_count, PROT_READ | PROT_WRITE);
	if (!far.base || !far.slot_base)
		return far_fail(-ENOMEM, "no addresses for %llu bytes of far memory (a limit: ulimit -v?)",
				(unsigned long long)far.pages * far.page_size);
	return map_tables();
}

static int register_all(const struct far_rows *rows)
{
	int err = rows ? 0 : far_uffd_register(&far.uffd, far.base, far.pages * far.page_size);

	if (err || !far.uffd.move)
		return err;
	return far_uffd_register(&far.uffd, far_slot_addr(far.fetch_count),
				 far.out_count * far.page_size);
}

/* Which addresses have which pages */
static void set_shape(const struct far_config *config)
{
	const struct far_rows *rows = config->rows;

	far.part_pages = (rows ? rows->length : config->size + config->page - 1) / config->page;
	far.stride = rows ? rows->stride : far.part_pages * config->page;
	far.pages = far.part_pages * (rows ? rows->count : 1);
	far.base = rows ? rows->base : NULL;
	far.rows = !!rows;
}

int far_memory_map(const struct far_config *config)
{
	int err;

	far.page_size = config->page;
	far.ram = config->ram / config->page * config->page;
	set_shape(config);
	divide(config->ram / config->page, config->adapt);
	err = map_all(config->rows);
	if (!err)
		err = register_all(config->rows);
	if (err)
		far_memory_unmap();
	return err;
}

void far_memory_unmap(void)
{
	uint32_t slots = far.fetch_count + far.out_count;

	/* Of a job, the partitions' memory goes with them. */
	if (!far.rows)
		unmap(far.base, far.pages * far.page_size);
	unmap(far.place, far.pages * sizeof(*far.place));
	unmap(far.trip, far.pages * sizeof(*far.trip));
	unmap(far.slot_base, slots_size());
	unmap(far.page, far.pages * sizeof(*far.page));
	unmap(far.page_link, far.pages * sizeof(*far.page_link));
	unmap(far.slot, slots * sizeof(*far.slot));
	unmap(far.slot_link, slots * sizeof(*far.slot_link));
	unmap(far.job, far.fetch_count * sizeof(*far.job));
	unmap(far.zeros, far.unit * far.page_size);
}
