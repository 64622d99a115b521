// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which places in the stores are in use: a bitmap, and a cursor that goes round. */
#include <errno.h>
#include <stdlib.h>

#include "places.h"
#include "store.h"

static uint64_t *used;
static uint64_t words, cursor;

int far_places_open(uint64_t count)
{
	uint64_t n;

	words = (count + 63) / 64;
	cursor = 0;
	used = calloc(words, sizeof(*used));
	if (!used)
		return far_fail(-ENOMEM, "no memory for a table of places");
	/* There are none behind the last one. */
	for (n = count; n < words * 64; n++)
		used[n / 64] |= 1ULL << n % 64;
	return 0;
}

void far_places_close(void)
{
	free(used);
	used = NULL;
}

uint32_t far_place_take(void)
{
	uint64_t n = cursor;

	while (used[n / 64] >> n % 64 & 1)
		n = ~used[n / 64] >> n % 64 ? n + 1 : (n / 64 + 1) % words * 64;
	used[n / 64] |= 1ULL << n % 64;
	cursor = (n + 1) % (words * 64);
	return (uint32_t)n;
}

void far_place_give(uint32_t place)
{
	used[place / 64] &= ~(1ULL << place % 64);
}
