// SPDX-License-Identifier: GPL-2.0-only
/*
 * A user has more than one uid: /etc/subuid gives him thousands, with which he can run
 * processes. For limits they are all one, but not the user himself: they may be those of others
 * who work in his containers. And of a large range, each container is one: where root has
 * a range for all containers, and other users' are in it, they must not be slow together.
 * See subuid(5).
 */
#include "ps.h"

#include <string.h>

#define CONTAINER	65536	/* uids of one, as newuidmap's users and LXD count them */

struct range {
	uint64_t first, count;
};

static struct range *ranges;
static uint32_t nr_ranges;
static bool loaded;

static void load(void)
{
	FILE *f = fopen("/etc/subuid", "re");
	struct range range = { 0 };
	char text[256];

	loaded = true;
	if (!f)
		return;
	while (ps_next_line(f, text, sizeof(text))) {
		if (sscanf(text, "%*[^:]:%ju:%ju", (uintmax_t *)&range.first,
			   (uintmax_t *)&range.count) != 2)
			continue;
		ranges = ps_grow(ranges, nr_ranges, sizeof(*ranges));
		ranges[nr_ranges++] = range;
	}
	fclose(f);
}

uid_t ps_account_of(uid_t uid)
{
	uint32_t i;

	if (!loaded)
		load();
	for (i = 0; i < nr_ranges; i++)
		if (uid >= ranges[i].first && uid - ranges[i].first < ranges[i].count)
			return uid - (uid - ranges[i].first) % CONTAINER;
	return uid;
}
