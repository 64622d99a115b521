// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the workers have a descriptor table of their own.
 *
 * A worker gets a copy of a task's descriptor to map its file, and closes the copy
 * afterwards. In the launcher's table that would drop the launcher's fcntl() locks
 * on the file, which end when any descriptor of the file in the table is closed.
 * Nor can a descriptor that the launcher opens meanwhile be mistaken for such a copy.
 *
 * The new table begins as a copy of the launcher's, because it needs the listener and
 * the eventfd. All other descriptors in it are closed: a reader of a pipe must see its
 * end when the launcher closes the last writer. They are closed one by one, from a
 * list made before, because workers use the table already: a close can take as long
 * as a file server does not answer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rawsys.h"
#include "worker.h"

#define FILES_STEP	USER_FEW_FILES
#define NUMBERS_TRIED	1024	/* takes less than a list */

static int note(struct user_files *f, int fd)
{
	int *old = f->fds == f->few ? NULL : f->fds, *more;

	if (f->count && f->count % FILES_STEP == 0) {
		more = realloc(old, (f->count + FILES_STEP) * sizeof(*f->fds));
		if (!more)
			return -ENOMEM;
		if (!old)
			memcpy(more, f->few, sizeof(f->few));
		f->fds = more;
	}
	f->fds[f->count++] = fd;
	return 0;
}

void user_files_free(struct user_files *f)
{
	if (f->fds != f->few)
		free(f->fds);
	f->fds = f->few;
	f->count = 0;
}

/* Does a worker need it, or the thread that makes them? */
static int is_needed(const struct user_space *u, int fd)
{
	return fd == u->listener || fd == u->wake || fd == user_proc_fd();
}

/* How many descriptors this thread has. Before Linux 6.2 that is not known: @most */
static int64_t count_open(int most)
{
	struct stat st;

	if (fstatat(user_proc_fd(), "thread-self/fd", &st, 0) || !st.st_size)
		return most;
	return st.st_size;
}

static int try_numbers(const struct user_space *u, struct user_files *f, int end)
{
	int64_t open = count_open(end);
	int fd, err = 0;

	for (fd = 0; fd < end && open > 0 && !err; fd++) {
		if (pvas_raw2(__NR_fcntl, fd, F_GETFD) < 0)
			continue;
		open--;
		if (!is_needed(u, fd))
			err = note(f, fd);
	}
	return err;
}

static DIR *open_list(void)
{
	int fd = openat(user_proc_fd(), "thread-self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

/* All but those that the workers need, and the directory's own: 0 or -errno */
static int list(const struct user_space *u, struct user_files *f)
{
	DIR *dir = open_list();
	const struct dirent *entry;
	int err = dir ? 0 : -errno;

	errno = 0;
	while (!err && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (*entry->d_name != '.' && fd != dirfd(dir) && !is_needed(u, fd))
			err = note(f, fd);
		else
			errno = 0;
	}
	if (!err)
		err = -errno;
	if (dir)
		closedir(dir);
	return err;
}

/* Above this number there is nothing to be copied. */
static unsigned int end_of_numbers(const struct user_space *u)
{
	const int needed[] = { u->listener, u->wake, user_proc_fd() };
	unsigned int i, end = u->descriptors;

	/* The application may have opened more since they were counted: those are left out. */
	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (needed[i] >= (int)end)
			end = (unsigned int)needed[i] + 1;
	return end;
}

/*
 * Unlike unshare(2), containers permit it; some forbid it, and then there are no copies. Nor
 * with far memory: workers call the pager, whose descriptors are the launcher's.
 */
void user_files_unshare(const struct user_space *u, struct user_files *f)
{
	f->fds = f->few;
	f->count = 0;
	f->are_copies = !u->far && !pvas_raw3(__NR_close_range, end_of_numbers(u), ~0U,
					      CLOSE_RANGE_UNSHARE);
}

int user_files_list(const struct user_space *u, struct user_files *f)
{
	unsigned int end = end_of_numbers(u);
	int err;

	if (!f->are_copies)
		return 0;
	err = end <= NUMBERS_TRIED ? try_numbers(u, f, (int)end) : list(u, f);
	if (err)
		user_files_free(f);
	return err;
}

/* Does it have a server that can be asked at its close? To find that out must not ask it. */
static int is_file(int fd)
{
	struct statx st;

	if (pvas_raw6(__NR_statx, fd, (long)"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE,
		      (long)&st, 0))
		return 1;
	return S_ISREG(st.stx_mode) || S_ISDIR(st.stx_mode);
}

/* In a copy of the launcher's table, whose numbers are below @end. */
void user_files_close_others(unsigned int end, int keep)
{
	int fd;

	for (fd = 0; (unsigned int)fd < end; fd++)
		if (fd != keep && fd != user_proc_fd() && !is_file(fd))
			pvas_raw1(__NR_close, fd);
}

/* Others wait for the end of pipes and connections. */
void user_files_close_first(const struct user_space *u, struct user_files *f)
{
	unsigned int i, files = 0;

	for (i = 0; i < f->count; i++)
		if (f->fds[i] != u->maps && f->fds[i] != u->image && is_file(f->fds[i]))
			f->fds[files++] = f->fds[i];
		else
			pvas_raw1(__NR_close, f->fds[i]);
	f->count = files;
}

void user_files_close(const struct user_files *f)
{
	unsigned int i;

	for (i = 0; i < f->count; i++)
		pvas_raw1(__NR_close, f->fds[i]);
}
