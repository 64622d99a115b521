// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the files of a process or thread in /proc.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "user.h"

int user_proc_open(pid_t tid, const char *name, int flags)
{
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

ssize_t user_proc_read(pid_t tid, const char *name, char *text, size_t size)
{
	int fd = user_proc_open(tid, name, O_RDONLY);
	ssize_t n, len = 0;

	*text = 0;
	if (fd < 0)
		return fd;
	while ((n = read(fd, text + len, size - 1 - len)) > 0)
		len += n;
	if (n < 0)
		len = -errno;
	text[len < 0 ? 0 : len] = 0;
	close(fd);
	return len;
}

int user_maps_next(FILE *maps, struct user_mapping *m)
{
	char line[512], prot[8];
	int found = 0;

	while (!found && fgets(line, sizeof(line), maps)) {
		found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64, &m->start, &m->end,
			       prot, &m->offset) == 4;
		m->writable = found && prot[1] == 'w';
		/* The rest of a long file name could look like a mapping. */
		while (!strchr(line, '\n') && fgets(line, sizeof(line), maps))
			;
	}
	return found;
}
