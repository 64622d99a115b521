// SPDX-License-Identifier: GPL-2.0-only
/* The descriptors that tasks inherit: see inherited.h. */
#include "inherited.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "linux_names.h"

static struct {
	int *fd;	/* ascending */
	size_t nr;
} inherited;

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

void inherited_only(void)
{
	unsigned int from = STDERR_FILENO + 1;
	size_t i;

	for (i = 0; i < inherited.nr; i++) {
		if ((unsigned int)inherited.fd[i] > from)
			syscall(SYS_close_range, from, (unsigned int)inherited.fd[i] - 1,
				CLOSE_RANGE_CLOEXEC);
		from = (unsigned int)inherited.fd[i] + 1;
	}
	syscall(SYS_close_range, from, ~0U, CLOSE_RANGE_CLOEXEC);
}
