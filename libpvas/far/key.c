// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads and makes key files. A key is never an argument or in the environment: others see those. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "key.h"
#include "store.h"

/* The digits and a newline */
#define TEXT_BYTES	(2 * FAR_KEY_BYTES + 1)

int far_random(void *to, size_t bytes)
{
	ssize_t got;

	do {
		got = getrandom(to, bytes, 0);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	return (size_t)got == bytes ? 0 : -EIO;
}

void far_wipe(void *secret, size_t bytes)
{
	explicit_bzero(secret, bytes);
}

static int refuse(int err, char *why, size_t len, const char *text)
{
	snprintf(why, len, "%s", text);
	return err;
}

static int open_key(const char *name, char *why, size_t len)
{
	char *end;
	long fd;

	if (!strcmp(name, "-"))
		return dup(STDIN_FILENO);
	if (!strncmp(name, "fd:", 3)) {
		fd = strtol(name + 3, &end, 10);
		if (end == name + 3 || *end || fd < 0 || fd > 1 << 20)
			return refuse(-EBADF, why, len, "not the number of a descriptor");
		return fd;
	}
	/* Not blocked by a FIFO, which is no regular file anyway */
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return refuse(-errno, why, len, strerror(errno));
	return fd;
}

/* A pipe has no name by which others could open it: only a file is checked. */
static int check_rights(int fd, int named, char *why, size_t len)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return refuse(-errno, why, len, strerror(errno));
	if (!S_ISREG(st.st_mode)) {
		if (named)
			return refuse(-EINVAL, why, len, "no regular file");
		return 0;
	}
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return refuse(-EPERM, why, len, "belongs to another user");
	if (st.st_mode & 077)
		return refuse(-EPERM, why, len, "other users have rights to it (chmod 600)");
	return 0;
}

static int digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static int parse(const char *text, size_t bytes, uint8_t *key)
{
	int high, low;
	size_t i;

	if (bytes != TEXT_BYTES && bytes != TEXT_BYTES - 1)
		return -EINVAL;
	if (bytes == TEXT_BYTES && text[TEXT_BYTES - 1] != '\n')
		return -EINVAL;
	for (i = 0; i < FAR_KEY_BYTES; i++) {
		high = digit(text[2 * i]);
		low = digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return -EINVAL;
		key[i] = high << 4 | low;
	}
	return 0;
}

static int read_key(int fd, uint8_t *key, char *why, size_t len)
{
	char text[TEXT_BYTES + 1];
	size_t bytes = 0;
	ssize_t got;
	int err = 0;

	while (bytes < sizeof(text)) {
		got = read(fd, text + bytes, sizeof(text) - bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			err = refuse(-errno, why, len, strerror(errno));
		if (got <= 0)
			break;
		bytes += got;
		if (text[bytes - 1] == '\n')
			break;	/* a pipe may stay open */
	}
	if (!err && parse(text, bytes, key) < 0)
		err = refuse(-EINVAL, why, len, "no key (make one: pvas-memd --make-key FILE)");
	far_wipe(text, sizeof(text));
	return err;
}

int far_key_read(const char *name, uint8_t *key, char *why, size_t len)
{
	int fd, err;

	fd = open_key(name, why, len);
	if (fd < 0)
		return fd;
	err = check_rights(fd, strcmp(name, "-") && strncmp(name, "fd:", 3), why, len);
	if (!err)
		err = read_key(fd, key, why, len);
	close(fd);
	return err;
}

void far_key_text(const uint8_t *key, char *text)
{
	size_t i;

	for (i = 0; i < FAR_KEY_BYTES; i++)
		sprintf(text + 2 * i, "%02x", key[i]);
	strcpy(text + TEXT_BYTES - 1, "\n");
}

static int write_key(int fd, const uint8_t *key)
{
	char text[FAR_KEY_TEXT];
	int err = 0;

	far_key_text(key, text);
	if (write(fd, text, TEXT_BYTES) != TEXT_BYTES || fsync(fd) < 0)
		err = errno ? -errno : -EIO;
	far_wipe(text, sizeof(text));
	return err;
}

int far_key_make(const char *name, char *why, size_t len)
{
	uint8_t key[FAR_KEY_BYTES];
	int fd, err;

	err = far_random(key, sizeof(key));
	if (err < 0)
		return refuse(err, why, len, strerror(-err));
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return refuse(-errno, why, len, strerror(errno));
	err = write_key(fd, key);
	far_wipe(key, sizeof(key));
	close(fd);
	if (err < 0) {
		unlink(name);
		return refuse(err, why, len, strerror(-err));
	}
	return 0;
}
