// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: readers that wait for a file server although their callers are dead.
 *
 * They can't be killed. A helper that waited with each would soon be missed, and whoever has hung
 * it is gone. But their number is limited: above that helpers wait.
 */
#include <poll.h>
#include <unistd.h>

#include "reader.h"
#include "worker.h"

#define OWNER_HUNG_MAX	16	/* of a stranger's calls, of USER_HUNG_MAX */

/* Those that have answered since, or all, end with their connections. Under the lock. */
static void drop_hung(struct user_readers *r, int all)
{
	unsigned int i, n = 0;

	for (i = 0; i < r->nr_hung; i++) {
		struct pollfd end = { .fd = r->hung[i].connection, .events = POLLIN };
		const int ours = user_file_is_ours(end.fd);

		if (ours && !all && poll(&end, 1, 0) <= 0)
			r->hung[n++] = r->hung[i];
		else if (ours)
			close(end.fd);
	}
	r->nr_hung = n;
}

static int has_room(const struct user_readers *r, int64_t owner)
{
	unsigned int i, of_owner = 0, strangers = 0;

	for (i = 0; i < r->nr_hung; i++) {
		of_owner += r->hung[i].owner == owner;
		strangers += r->hung[i].owner >= 0;
	}
	return r->nr_hung < USER_HUNG_MAX &&
	       (owner < 0 || (of_owner < OWNER_HUNG_MAX && strangers < USER_HUNG_MAX / 2));
}

int user_hung_add(struct user_readers *r, int connection, int64_t owner)
{
	int has;

	pthread_mutex_lock(&r->hung_lock);
	drop_hung(r, 0);
	has = has_room(r, owner);
	if (has) {
		user_file_mark(connection);
		r->hung[r->nr_hung++] = (struct user_hung){ connection, owner };
	}
	pthread_mutex_unlock(&r->hung_lock);
	return has;
}

void user_hung_end(struct user_readers *r)
{
	pthread_mutex_lock(&r->hung_lock);
	drop_hung(r, 1);
	pthread_mutex_unlock(&r->hung_lock);
}
