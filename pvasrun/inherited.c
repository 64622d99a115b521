// SPDX-License-Identifier: GPL-2.0-only
/* The descriptors that tasks inherit: see inherited.h. */
#include "inherited.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "linux_names.h"

static struct {
	int *fd;		/* ascending */
	size_t nr;
	unsigned int peers;	/* numbers from here on are of the tasks' */
} inherited = { .peers = ~0U };

static int compare(const void *a, const void *b)
{
	const int *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

static int add(int fd)
{
	int *more = reallocarray(inherited.fd, inherited.nr + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	inherited.fd = more;
	more[inherited.nr++] = fd;
	return 0;
}

int inherited_note(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int fd, err = 0;

	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir))) {
		fd = atoi(entry->d_name);
		if (fd > STDERR_FILENO && fd != dirfd(dir))
			err = add(fd);
	}
	closedir(dir);
	if (inherited.nr)
		qsort(inherited.fd, inherited.nr, sizeof(*inherited.fd), compare);
	return err;
}

/* All numbers from @from on but those that were inherited */
static void close_others(unsigned int from, unsigned int flags)
{
	size_t i;

	for (i = 0; i < inherited.nr; i++) {
		unsigned int fd = (unsigned int)inherited.fd[i];

		if (fd > from)
			syscall(SYS_close_range, from, fd - 1, flags);
		if (fd >= from)
			from = fd + 1;
	}
	syscall(SYS_close_range, from, ~0U, flags);
}

void inherited_only(void)
{
	close_others(STDERR_FILENO + 1, CLOSE_RANGE_CLOEXEC);
}

ssize_t inherited_list(int more, const int **fds)
{
	static int *list;
	size_t i, nr = 0;

	if (!list)
		list = malloc((inherited.nr + 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (i = 0; i < inherited.nr; i++) {
		if (more > STDERR_FILENO && more < inherited.fd[i]) {
			list[nr++] = more;
			more = -1;
		}
		list[nr++] = inherited.fd[i];
	}
	if (more > STDERR_FILENO)
		list[nr++] = more;
	*fds = list;
	return (ssize_t)nr;
}

static bool is_inherited(int fd)
{
	return inherited.nr &&
	       bsearch(&fd, inherited.fd, inherited.nr, sizeof(fd), compare);
}

void inherited_mark(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	int fd, last = dir ? dirfd(dir) : -1;

	while (dir && (entry = readdir(dir))) {
		fd = atoi(entry->d_name);
		if (fd > last && !is_inherited(fd))
			last = fd;
	}
	if (dir)
		closedir(dir);
	if (last >= 0)
		inherited.peers = (unsigned int)last + 1;
}

void inherited_close_peers(void)
{
	if (inherited.peers != ~0U)
		close_others(inherited.peers, 0);
}
