// SPDX-License-Identifier: LGPL-2.1-or-later
/* kmod/pvas_layout.h: the layout of a partition, for all kinds of arguments. */
#include <stdint.h>
#include <string.h>

#include "../kmod/pvas_layout.h"
#include "kselftest_harness.h"

#define MIB	(1ULL << 20)
#define GIB	(1ULL << 30)
#define PAGE	4096ULL
#define ROUNDS	200000

static const uint64_t no_limit = ~0ULL;

/* xorshift64*: the same numbers everywhere. */
static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 0x2545f4914f6cdd1dULL;
}

static uint64_t below(uint64_t *seed, uint64_t n)
{
	return next(seed) % n;
}

/* One number in @extreme has only zeros or only ones. */
static struct pvas_layout_random numbers(uint64_t *seed, uint64_t extreme)
{
	uint64_t words[sizeof(struct pvas_layout_random) / 8];
	struct pvas_layout_random r;
	size_t i;

	for (i = 0; i < sizeof(words) / 8; i++)
		words[i] = below(seed, extreme) ? next(seed) : below(seed, 2) ? ~0ULL : 0;
	memcpy(&r, words, sizeof(r));
	return r;
}

/* Sizes of all magnitudes, and the largest possible one. */
static struct pvas_elf_image image_for(uint64_t *seed, uint64_t size)
{
	struct pvas_elf_image image = { .align = PAGE << below(seed, 10) };
	uint64_t len = size / 2;

	if (below(seed, 4))
		len = ((next(seed) >> (64 - 13 - below(seed, 30))) & ~(PAGE - 1)) + PAGE;
	if (len > size / 2)
		len = size / 2;
	image.lo = below(seed, 4) ? 0 : below(seed, 1 << 20) * PAGE;
	image.hi = image.lo + len;
	return image;
}

static uint64_t limit_for(uint64_t *seed)
{
	return below(seed, 4) ? next(seed) >> below(seed, 64) : no_limit;
}

/* The least distance between mappings and stack, so that it can grow. */
static uint64_t room_for(uint64_t size, uint64_t limit)
{
	uint64_t room = limit == no_limit ? size / 4 : limit;

	room = room < size / 3 - PAGE ? room : size / 3 - PAGE;
	return room < 128 * MIB ? 128 * MIB : room;
}

/* NULL if all is inside, in order, apart and aligned; else what is not. */
static const char *wrong(const struct pvas_layout *l, uint64_t base, uint64_t size,
			 const struct pvas_elf_image *image, uint64_t limit)
{
	uint64_t lo = l->load + image->lo, hi = l->load + image->hi, end = base + size;

	if (l->load % image->align)
		return "load bias not aligned";
	if (lo < base + 2 * MIB || hi < lo)
		return "program over the lower edge";
	if (l->heap % PAGE || l->heap < hi + PAGE)
		return "heap on the program";
	if (l->mmap_top % PAGE || l->mmap_top < l->heap || l->mmap_top - l->heap < size / 16)
		return "nothing between heap and mmap_top";
	if (l->stack % PAGE || l->stack < l->mmap_top + MIB + room_for(size, limit))
		return "no room for the stack";
	if (l->stack > end - MIB || l->stack < base)
		return "stack over the upper edge";
	if (l->skew % 16 || l->skew >= 2 * PAGE)
		return "skew";
	return NULL;
}

/* whatever the sizes, limits and random numbers */
TEST(all_in_order)
{
	uint64_t seed = 1;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		uint64_t size = 1ULL << (32 + below(&seed, 12)), base, limit = limit_for(&seed);
		struct pvas_elf_image image = image_for(&seed, size);
		struct pvas_layout_random r = numbers(&seed, 8);
		struct pvas_layout l;
		const char *what;

		base = (1 + below(&seed, (1ULL << 47) / size - 2)) * size;
		ASSERT_EQ(pvas_layout(&l, base, size, &image, limit, &r), 0);
		what = wrong(&l, base, size, &image, limit);
		ASSERT_EQ(what, NULL) TH_LOG("%s: size %lx image %llx-%llx/%llx limit %lx load %llx "
			"heap %llx mmap_top %llx stack %llx", what, size, image.lo, image.hi,
			image.align, limit, l.load, l.heap, l.mmap_top, l.stack);
	}
}

/* more than half of the partition is refused, and nothing is written */
TEST(too_large)
{
	struct pvas_elf_image image = { .hi = 2 * GIB + PAGE, .align = PAGE };
	struct pvas_layout_random r = { 0 };
	struct pvas_layout l = { .load = 77 };

	EXPECT_EQ(pvas_layout(&l, 4 * GIB, 4 * GIB, &image, 8 * MIB, &r), -ENOMEM);
	EXPECT_EQ(l.load, 77);
	EXPECT_EQ(pvas_layout(&l, 8 * GIB, 8 * GIB, &image, 8 * MIB, &r), 0);
}

/* without random numbers: always the same, and as close to the ends as possible */
TEST(fixed)
{
	struct pvas_elf_image image = { .hi = 5 * PAGE, .align = PAGE };
	struct pvas_layout_random r = { 0 };
	uint64_t base = 64 * GIB;
	struct pvas_layout l;

	ASSERT_EQ(pvas_layout(&l, base, 64 * GIB, &image, 8 * MIB, &r), 0);
	EXPECT_EQ(l.load, base + 2 * MIB);
	EXPECT_EQ(l.heap, l.load + 6 * PAGE);
	EXPECT_EQ(l.mmap_top, base + 64 * GIB - 130 * MIB);
	EXPECT_EQ(l.stack, base + 64 * GIB - MIB);
	EXPECT_EQ(l.skew, 0);
}

/* half of a partition, in one piece, can be reserved, with any stack limit */
TEST(half_is_left)
{
	static const uint64_t limits[] = { 8 * MIB, no_limit };
	struct pvas_elf_image image = { .hi = 300 * PAGE, .align = PAGE };
	struct pvas_layout_random r;
	uint64_t seed = 2, size;
	struct pvas_layout l;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		size = 1ULL << (32 + below(&seed, 12));
		r = numbers(&seed, 8);
		ASSERT_EQ(pvas_layout(&l, size, size, &image, limits[i % 2], &r), 0);
		ASSERT_LE(size / 2, l.mmap_top - l.heap);
	}
}

static uint64_t tables(uint64_t from, uint64_t to, uint64_t each)
{
	return (to - 1) / each - from / each + 1;
}

/* as many page tables as in the fixed layout, for what any small task touches */
TEST(page_tables)
{
	uint64_t seed = 3, size, pages, near;
	struct pvas_layout_random r;
	struct pvas_layout l;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		struct pvas_elf_image image = { .align = PAGE };

		size = 1ULL << (32 + below(&seed, 12));
		pages = 1 + below(&seed, 2000);
		image.hi = pages * PAGE;
		near = (pages + 1) * PAGE + (160 << 10);
		r = numbers(&seed, 8);
		ASSERT_EQ(pvas_layout(&l, size, size, &image, 8 * MIB, &r), 0);
		ASSERT_EQ(tables(l.load, l.heap + (160 << 10), 2 * MIB),
			  (near + 2 * MIB - 1) / (2 * MIB));
		ASSERT_EQ(tables(l.load, l.heap + (160 << 10), GIB), 1);
		ASSERT_EQ(tables(l.stack - (256 << 10), l.stack + 64 * PAGE, 2 * MIB), 1);
		ASSERT_EQ(tables(l.mmap_top - 64 * MIB, l.stack, GIB), 1);
	}
}

enum { LOAD, HEAP, MMAP, STACK, APART, SKEW, WHATS };

/*
 * Estimate the number of possible places: the fewer there are, the more random draws
 * coincide. @draws of @n places give draws^2 / 2n equal pairs.
 */
static void count_pairs(uint64_t size, uint64_t pairs[WHATS], int draws)
{
	static uint64_t seen[WHATS][4096];
	struct pvas_elf_image image = { .hi = 20 * PAGE, .align = PAGE };
	uint64_t seed = 4;
	int i, k, what;

	memset(pairs, 0, WHATS * sizeof(*pairs));
	for (i = 0; i < draws; i++) {
		struct pvas_layout_random r = numbers(&seed, 1ULL << 62);
		uint64_t now[WHATS];
		struct pvas_layout l;

		pvas_layout(&l, size, size, &image, 8 * MIB, &r);
		now[LOAD] = l.load;
		now[HEAP] = l.heap - l.load;
		now[MMAP] = l.mmap_top;
		now[STACK] = l.stack;
		now[APART] = l.stack - l.mmap_top;
		now[SKEW] = l.skew;
		for (what = 0; what < WHATS; what++) {
			for (k = 0; k < i; k++)
				pairs[what] += seen[what][k] == now[what];
			seen[what][i] = now[what];
		}
	}
}

/* the bits that the header's table promises (collision entropy, with a tolerance of half a bit) */
TEST(entropy)
{
	static const struct { uint64_t size; int bits[WHATS]; } rows[] = {
		{ 4 * GIB, { 13, 5, 13, 15, 13, 9 } },
		{ 64 * GIB, { 17, 5, 16, 18, 13, 9 } },
	};
	uint64_t pairs[WHATS];
	const int draws = 4096;
	size_t row;
	int what;

	for (row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		count_pairs(rows[row].size, pairs, draws);
		for (what = 0; what < WHATS; what++) {
			uint64_t most = (uint64_t)draws * draws / 2 >> rows[row].bits[what];

			EXPECT_LE(pairs[what], most + most / 2 + 5)
				TH_LOG("size %lx, number %d", rows[row].size, what);
		}
	}
}

/* a range is outside if any byte of it is, even when its end wraps around to below its begin */
TEST(outside)
{
	const uint64_t base = 4 * GIB, end = 8 * GIB;

	EXPECT_FALSE(pvas_layout_outside(base, end, base, end - base));
	EXPECT_FALSE(pvas_layout_outside(base, end, end - PAGE, PAGE));
	EXPECT_FALSE(pvas_layout_outside(base, end, base, 0));
	EXPECT_TRUE(pvas_layout_outside(base, end, base - PAGE, PAGE));
	EXPECT_TRUE(pvas_layout_outside(base, end, base - PAGE, 2 * PAGE));
	EXPECT_TRUE(pvas_layout_outside(base, end, end - PAGE, 2 * PAGE));
	EXPECT_TRUE(pvas_layout_outside(base, end, end, 0));
	EXPECT_TRUE(pvas_layout_outside(base, end, end, PAGE));
	EXPECT_TRUE(pvas_layout_outside(base, end, base, end - base + 1));
	EXPECT_TRUE(pvas_layout_outside(base, end, base + 2, ~0ULL));
	EXPECT_TRUE(pvas_layout_outside(base, end, base + PAGE, -base));
}

/* a range that may be mapped: without the outermost pages */
TEST(may_map)
{
	const uint64_t base = 4 * GIB, end = 8 * GIB;

	EXPECT_TRUE(pvas_layout_may_map(base, end, base + PAGE, end - base - 2 * PAGE));
	EXPECT_TRUE(pvas_layout_may_map(base, end, end - 2 * PAGE, PAGE));
	EXPECT_TRUE(pvas_layout_may_map(base, end, end - 2 * PAGE, PAGE - 1));
	EXPECT_FALSE(pvas_layout_may_map(base, end, end - 2 * PAGE, PAGE + 1));
	EXPECT_FALSE(pvas_layout_may_map(base, end, end - PAGE, PAGE));
	EXPECT_FALSE(pvas_layout_may_map(base, end, base, PAGE));
	EXPECT_FALSE(pvas_layout_may_map(base, end, base - PAGE, 3 * PAGE));
	EXPECT_FALSE(pvas_layout_may_map(base, end, base + PAGE, end - base));
	EXPECT_FALSE(pvas_layout_may_map(base, end, base + PAGE, -PAGE));
	EXPECT_FALSE(pvas_layout_may_map(base, end, 0, PAGE));
	/* One that is empty, as the creator's */
	EXPECT_FALSE(pvas_layout_may_map(0, 0, PAGE, PAGE));
	EXPECT_FALSE(pvas_layout_may_map(0, 0, base, PAGE));
	EXPECT_FALSE(pvas_layout_may_map(0, 0, 0, 0));
}

TEST_HARNESS_MAIN
