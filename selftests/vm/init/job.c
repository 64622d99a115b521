// SPDX-License-Identifier: GPL-2.0-only
/* The job: read from the file "job" that the host has written. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init.h"

struct job job;

static char *slurp(const char *path, size_t *size)
{
	struct stat st;
	ssize_t n;
	size_t have = 0;
	char *buf;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		die("%s: %s", path, strerror(errno));
	buf = malloc(st.st_size + 1);
	if (!buf)
		die("%s: out of memory", path);
	while ((n = read(fd, buf + have, st.st_size - have)) > 0)
		have += n;
	if (n < 0)
		die("%s: %s", path, strerror(errno));
	close(fd);
	buf[have] = '\0';
	*size = have;
	return buf;
}

/*
 * The job is a sequence of NUL-terminated strings. The first byte says what
 * each is: A argument, C directory, E environment, G group, g supplementary
 * group, K the kernel's modules, L limit, M module, U user.
 */
void read_job(void)
{
	size_t size, n_env = 0, n_argv = 0, n = 0;
	char *buf, *s;

	buf = slurp("/io/job", &size);
	for (s = buf; s < buf + size; s += strlen(s) + 1)
		n++;
	job.env = calloc(n + 1, sizeof(char *));
	job.argv = calloc(n + 1, sizeof(char *));
	if (!job.env || !job.argv)
		die("job: out of memory");

	for (s = buf; s < buf + size; s += strlen(s) + 1) {
		char *value = s + 1;

		switch (*s) {
		case 'A':
			job.argv[n_argv++] = value;
			break;
		case 'C':
			job.cwd = value;
			break;
		case 'E':
			job.env[n_env++] = value;
			break;
		case 'G':
			job.gid = strtoul(value, NULL, 10);
			break;
		case 'g':
			if (job.n_groups < sizeof(job.groups) / sizeof(gid_t))
				job.groups[job.n_groups++] = strtoul(value, NULL, 10);
			break;
		case 'K':
			job.modules = value;
			break;
		case 'L':
			job.limit = strtol(value, NULL, 10);
			break;
		case 'M':
			job.module = value;
			break;
		case 'U':
			job.uid = strtoul(value, NULL, 10);
			break;
		default:
			die("job: unknown record '%c' (init and run differ)", *s);
		}
	}
	if (!job.cwd || !n_argv)
		die("job: no directory or no command");
}
