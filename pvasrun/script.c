// SPDX-License-Identifier: GPL-2.0-only
/* The first line of a script, as the kernel reads it. */
#include "script.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "open_regular.h"

static int read_head(const char *path, char head[static SCRIPT_HEAD + 1])
{
	struct stat st;
	int fd = open_regular(path, &st);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = pread(fd, head, SCRIPT_HEAD, 0);
	close(fd);
	if (n < 0)
		return -errno;
	head[n] = '\0';
	return 0;
}

/* As binfmt_script: the first word, and all the rest as one argument */
static int split_as_kernel(struct script_words *w)
{
	char *at = w->line + 2 + strspn(w->line + 2, " \t"), *end;

	at[strcspn(at, "\n")] = '\0';
	for (end = at + strlen(at); end > at && strchr(" \t", end[-1]); )
		*--end = '\0';
	if (!*at)
		return -ENOEXEC;
	w->word[w->nr++] = at;
	at += strcspn(at, " \t");
	if (!*at)
		return 0;
	*at++ = '\0';
	w->word[w->nr++] = at + strspn(at, " \t");
	return 0;
}

int script_read(const char *path, struct script_words *w)
{
	int err = read_head(path, w->line);

	w->nr = 0;
	if (err || w->line[0] != '#' || w->line[1] != '!')
		return err;
	return split_as_kernel(w);
}
