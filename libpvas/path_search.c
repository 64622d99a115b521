// SPDX-License-Identifier: LGPL-2.1-or-later
/* pvas_program_find: find a program in PATH, as execvp(3) does. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "private.h"
#include "pvas.h"

#define DEFAULT_PATH "/bin:/usr/bin"	/* confstr(_CS_PATH), as execvp(3) */

/* 0, -EACCES (it exists, but may not be executed) or -ENOENT. */
static int try_path(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno == EACCES ? -EACCES : -ENOENT;
	if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
		return -EACCES;
	return 0;
}

/* An empty element of PATH means the working directory. */
static int join(char *buf, size_t len, const char *dir, size_t dirlen, const char *name)
{
	size_t need = dirlen + (dirlen ? 1 : 0) + strlen(name) + 1;

	if (need > len)
		return -ENAMETOOLONG;
	memcpy(buf, dir, dirlen);
	if (dirlen)
		buf[dirlen++] = '/';
	strcpy(buf + dirlen, name);
	return 0;
}

static int search(const char *name, const char *path, char *buf, size_t len)
{
	int worst = -ENOENT;
	const char *end;
	int err;

	for (;; path = end + 1) {
		end = strchrnul(path, ':');
		err = join(buf, len, path, end - path, name);
		if (!err)
			err = try_path(buf);
		if (!err)
			return 0;
		if (worst == -ENOENT)
			worst = err;
		if (!*end)
			return worst;
	}
}

PVAS_PUBLIC int pvas_program_find(const char *name, const char *path_env, char *buf, size_t len)
{
	int saved = errno;
	int err;

	pvas_clear_error();
	if (!*name)
		return -ENOENT;
	if (strchr(name, '/')) {
		err = join(buf, len, "", 0, name);
		if (!err)
			err = try_path(buf);
	} else {
		if (!path_env)
			path_env = getenv("PATH");
		err = search(name, path_env ? path_env : DEFAULT_PATH, buf, len);
	}
	errno = saved;
	return err;
}
