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
#include <sys/stat.h>
#include <unistd.h>

#include "rawsys.h"
#include "worker.h"

#define FILES_STEP	64

static int note(struct user_files *f, int fd)
{
	int *more;

	if (f->count % FILES_STEP == 0) {
		more = realloc(f->fds, (f->count + FILES_STEP) * sizeof(*f->fds));
		if (!more)
			return -ENOMEM;
		f->fds = more;
	}
	f->fds[f->count++] = fd;
	return 0;
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

		if (*entry->d_name != '.' && fd != u->listener && fd != u->wake &&
		    fd != user_proc_fd() && fd != dirfd(dir))
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

/*
 * Unlike unshare(2), containers permit it; some forbid it, and then there are no copies. Nor
 * with far memory: workers call the pager, whose descriptors are the launcher's.
 */
int user_files_unshare(const struct user_space *u, struct user_files *f)
{
	int err = 0;

	f->fds = NULL;
	f->count = 0;
	if (!u->far && !pvas_raw3(__NR_close_range, ~0U, ~0U, CLOSE_RANGE_UNSHARE))
		err = list(u, f);
	if (err)
		free(f->fds);
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

void user_files_close_others(const struct user_files *f, int keep)
{
	unsigned int i;

	for (i = 0; i < f->count; i++)
		if (f->fds[i] != keep && !is_file(f->fds[i]))
			pvas_raw1(__NR_close, f->fds[i]);
}

/* Files come last: others wait for the end of pipes and connections. */
void user_files_close(struct user_files *f)
{
	unsigned int i, files = 0;

	for (i = 0; i < f->count; i++)
		if (is_file(f->fds[i]))
			f->fds[files++] = f->fds[i];
		else
			pvas_raw1(__NR_close, f->fds[i]);
	for (i = 0; i < files; i++)
		pvas_raw1(__NR_close, f->fds[i]);
	free(f->fds);
}
