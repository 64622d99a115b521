// SPDX-License-Identifier: GPL-2.0-only
/*
 * A user has more than one uid: /etc/subuid gives him thousands, with which he can run
 * processes. For limits they are all one user. See subuid(5).
 */
#include "ps.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>

struct range {
	uint64_t first, count;
	char name[64];		/* of the user, or his uid */
	bool known;
	uid_t owner;
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
		if (sscanf(text, "%63[^:]:%ju:%ju", range.name, (uintmax_t *)&range.first,
			   (uintmax_t *)&range.count) != 3)
			continue;
		ranges = ps_grow(ranges, nr_ranges, sizeof(*ranges));
		ranges[nr_ranges++] = range;
	}
	fclose(f);
}

static uid_t owner_of(struct range *range)
{
	const struct passwd *user;
	char *end;

	if (range->known)
		return range->owner;
	range->known = true;
	range->owner = strtoul(range->name, &end, 10);
	if (!*end)
		return range->owner;
	user = getpwnam(range->name);
	/* the file may name a user who is gone: his processes may not be */
	range->owner = user ? user->pw_uid : range->first;
	return range->owner;
}

uid_t ps_owner_of(uid_t uid)
{
	uint32_t i;

	if (!loaded)
		load();
	for (i = 0; i < nr_ranges; i++)
		if (uid >= ranges[i].first && uid - ranges[i].first < ranges[i].count)
			return owner_of(&ranges[i]);
	return uid;
}
