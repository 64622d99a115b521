// SPDX-License-Identifier: GPL-2.0-only
/*
 * The secret of a job in the user's keyring, see user-keyring(7). Only processes of the
 * user, in the same user namespace, can add to it, read it or fill it. The space itself
 * can't be shared across user namespaces either.
 */
#include "job_secret.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From KEYCTL_SETPERM(2const); no header of the kernel has them. */
#define POSSESSOR_ALL	0x3f000000
#define USER_VIEW	0x00010000
#define USER_READ	0x00020000
#define USER_SEARCH	0x00080000

/* The kernel removes it then, if no other job of the user has. */
#define EXPIRY_S (24 * 3600)

#define MAX_KEYS 1024

typedef int32_t serial_t;

static long ctl(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	long ret = syscall(SYS_keyctl, op, a, b, c, d);

	return ret < 0 ? -errno : ret;
}

static int read_key(serial_t key, struct job_secret *secret)
{
	char text[JOB_SECRET_TEXT];
	long len = ctl(KEYCTL_READ, key, (unsigned long)text, sizeof(text), 0);

	if (len < 0)
		return len;
	return (size_t)len > sizeof(text) ? -EBADMSG : job_secret_parse(secret, text, len);
}

/* "user;uid;gid;perm;description": is it a secret of any job? */
static bool is_secret(const char *text)
{
	int at = 0;

	sscanf(text, "user;%*u;%*u;%*x;%n", &at);
	return at && !strncmp(text + at, JOB_SECRET_PREFIX, strlen(JOB_SECRET_PREFIX));
}

/*
 * An expired key stays for gc_delay seconds (/proc/sys/kernel/keys), and hides its name
 * from others. It can't be described any more.
 */
static bool is_removable(serial_t key)
{
	char description[256];
	struct job_secret secret;
	long len = ctl(KEYCTL_DESCRIBE, key, (unsigned long)description, sizeof(description), 0);

	if (len == -EKEYEXPIRED)
		return true;
	return len > 0 && (size_t)len <= sizeof(description) && is_secret(description) &&
	       !read_key(key, &secret) && job_secret_is_stale(&secret);
}

static void remove_stale(void)
{
	static serial_t keys[MAX_KEYS];
	long len = ctl(KEYCTL_READ, KEY_SPEC_USER_KEYRING, (unsigned long)keys, sizeof(keys), 0);
	size_t i, nr;

	if (len < 0)
		return;
	nr = (size_t)len < sizeof(keys) ? len / sizeof(*keys) : MAX_KEYS;
	for (i = 0; i < nr; i++)
		if (is_removable(keys[i]))
			ctl(KEYCTL_UNLINK, keys[i], KEY_SPEC_USER_KEYRING, 0, 0);
}

/*
 * add_key(2) would replace a key with this name. So it is added to the process's own
 * keyring, and moved; only one process can do that.
 */
static int create_key(const char *name)
{
	struct job_secret secret;
	char text[JOB_SECRET_TEXT];
	long key;
	int err;

	err = job_secret_create(&secret);
	if (err)
		return err;
	job_secret_format(&secret, text);
	key = syscall(SYS_add_key, "user", name, text, strlen(text), KEY_SPEC_PROCESS_KEYRING);
	if (key < 0)
		return -errno;
	err = ctl(KEYCTL_SETPERM, key, POSSESSOR_ALL | USER_VIEW | USER_READ | USER_SEARCH, 0, 0);
	if (!err)
		err = ctl(KEYCTL_SET_TIMEOUT, key, EXPIRY_S, 0, 0);
	if (!err)
		err = ctl(KEYCTL_MOVE, key, KEY_SPEC_PROCESS_KEYRING, KEY_SPEC_USER_KEYRING,
			  KEYCTL_MOVE_EXCL);
	if (err)
		ctl(KEYCTL_UNLINK, key, KEY_SPEC_PROCESS_KEYRING, 0, 0);
	return err == -EEXIST ? 0 : err;
}

static long find_key(const char *name)
{
	return ctl(KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, (unsigned long)"user",
		   (unsigned long)name, 0);
}

int job_secret_in_keyring(const char *name, struct job_secret *secret)
{
	char description[128];
	long key;
	int err;

	snprintf(description, sizeof(description), JOB_SECRET_PREFIX "%s", name);
	key = find_key(description);
	if (key == -ENOKEY || key == -EKEYEXPIRED) {
		remove_stale();
		err = create_key(description);
		if (err)
			return err;
		key = find_key(description);
	}
	return key < 0 ? key : read_key(key, secret);
}
