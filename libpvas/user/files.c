// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the workers have a table of descriptors of their own.
 *
 * They take a task's descriptor to map its file, and close it again. In the
 * launcher's table that would take away the launcher's fcntl locks on the file:
 * such locks go with whatever descriptor of the table is closed. And a
 * descriptor that the launcher opens meanwhile can't be mistaken for one.
 *
 * The new table begins as a copy, since only so do the listener and the eventfd
 * get in. All else in it is closed: a pipe whose last writer the launcher closes
 * has to end. One by one and by the numbers that were there, because workers use
 * the table already: to close can take as long as a file server likes.
 */
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "rawsys.h"
#include "user.h"

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

static void note(struct user_files *f, int fd)
{
	int *more;

	if (f->count % FILES_STEP == 0) {
		more = realloc(f->fds, (f->count + FILES_STEP) * sizeof(*f->fds));
		if (!more)
			return;
		f->fds = more;
	}
	f->fds[f->count++] = fd;
}

/* All but what the workers need, and the directory's own. */
static void list(const struct user_space *u, struct user_files *f)
{
	DIR *dir = opendir("/proc/thread-self/fd");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (*entry->d_name != '.' && fd != u->listener && fd != u->wake &&
		    fd != dirfd(dir))
			note(f, fd);
	}
	if (dir)
		closedir(dir);
}

/* Unlike unshare(2), this is allowed in containers too: nothing is closed by it. */
void user_files_leave(const struct user_space *u, struct user_files *f)
{
	f->fds = NULL;
	f->count = 0;
	if (!pvas_raw3(__NR_close_range, ~0U, ~0U, CLOSE_RANGE_UNSHARE))
		list(u, f);
}

void user_files_close(struct user_files *f)
{
	unsigned int i;

	for (i = 0; i < f->count; i++)
		pvas_raw1(__NR_close, f->fds[i]);
	free(f->fds);
}
