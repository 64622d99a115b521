// SPDX-License-Identifier: GPL-2.0-only
/* The secret of a job as a file in a directory that only the user can change. */
#include "job_secret.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_NONBLOCK: it could be a FIFO. */
static int read_file(int dir, const char *file, struct job_secret *secret)
{
	int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[JOB_SECRET_TEXT];
	struct stat st;
	ssize_t len;
	int err;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & 077) {
		err = -EACCES;
	} else {
		len = read(fd, text, sizeof(text));
		err = len < 0 ? -errno : job_secret_parse(secret, text, len);
	}
	close(fd);
	return err;
}

static void remove_stale(int dir)
{
	int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = own < 0 ? NULL : fdopendir(own);
	struct job_secret secret;
	struct dirent *entry;

	if (!names) {
		if (own >= 0)
			close(own);
		return;
	}
	while ((entry = readdir(names)))
		if (!strncmp(entry->d_name, JOB_SECRET_PREFIX, strlen(JOB_SECRET_PREFIX)) &&
		    !read_file(dir, entry->d_name, &secret) && job_secret_is_stale(&secret))
			unlinkat(dir, entry->d_name, 0);
	closedir(names);
}

static int write_whole(int dir, const char *file, const char *text)
{
	int fd = openat(dir, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -EIO;
}

/* Written under another name, so that it is complete before others can open it. */
static int create_file(int dir, const char *file)
{
	struct job_secret secret, unique;
	char temporary[64], text[JOB_SECRET_TEXT];
	int err;

	err = job_secret_create(&secret);
	if (!err)
		err = job_secret_create(&unique);
	if (err)
		return err;
	job_secret_format(&secret, text);
	snprintf(temporary, sizeof(temporary), JOB_SECRET_PREFIX "%s", unique.digits);
	err = write_whole(dir, temporary, text);
	if (!err && linkat(dir, temporary, dir, file, 0) < 0 && errno != EEXIST)
		err = -errno;
	unlinkat(dir, temporary, 0);
	return err;
}

int job_secret_in_directory(int dir, const char *name, struct job_secret *secret)
{
	char file[128], *p;
	int err;

	snprintf(file, sizeof(file), JOB_SECRET_PREFIX "%s", name);
	for (p = file; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr(".-@~", *p))
			*p = '_';
	err = read_file(dir, file, secret);
	if (err != -ENOENT)
		return err;
	remove_stale(dir);
	err = create_file(dir, file);
	return err ? err : read_file(dir, file, secret);
}
