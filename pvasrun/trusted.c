// SPDX-License-Identifier: GPL-2.0-only
/*
 * May code be loaded from a file? Beside a copy of this program in /tmp, any user can
 * create files, and replace them at any time. So each directory of the path is opened
 * in the one before it, without following links, and checked by its descriptor.
 */
#include "trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NO_USER 65534	/* the overflow uid: all users that this namespace does not map */

struct owners {
	uid_t user, program, root;	/* @root: the owner of /, 0 unless in a namespace */
	bool below_shared;		/* a directory above is sticky and world-writable */
};

static bool is_owner(const struct owners *owners, uid_t uid)
{
	/* several users may have this uid */
	if (uid == NO_USER && owners->below_shared && owners->root == NO_USER)
		return false;
	return uid == 0 || uid == owners->user || uid == owners->program || uid == owners->root;
}

/* With an ACL the group bits are its mask, which may apply to any user. */
static bool has_acl(int fd)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return getxattr(path, "system.posix_acl_access", NULL, 0) >= 0;
}

/* Also members by their primary group, which /etc/group doesn't name */
static bool is_primary_of_others(uid_t uid, gid_t gid)
{
	const struct passwd *user;
	bool found = false;

	setpwent();
	while (!found && (user = getpwent()))
		found = user->pw_gid == gid && user->pw_uid != uid;
	endpwent();
	return found;
}

/*
 * A user private group has the same number and name, and no other member. Users of a
 * directory service that can't be listed are not seen.
 */
bool trusted_group(uid_t uid, gid_t gid)
{
	const struct passwd *user;
	const struct group *group;
	char **member;

	if (gid != uid)
		return false;
	user = getpwuid(uid);
	group = getgrgid(gid);
	if (!group)
		return !is_primary_of_others(uid, gid);
	if (!user || strcmp(group->gr_name, user->pw_name))
		return false;
	for (member = group->gr_mem; member && *member; member++)
		if (strcmp(*member, user->pw_name))
			return false;
	return !is_primary_of_others(uid, gid);
}

static bool others_may_write(int fd, const struct stat *st)
{
	if (st->st_mode & S_IWOTH)
		return true;
	return st->st_mode & S_IWGRP &&
	       (!trusted_group(st->st_uid, st->st_gid) || has_acl(fd));
}

/* There users can neither rename nor remove files of others. */
static bool is_sticky(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX;
}

/* Is @path, up to @len, a directory that @program is in? */
static bool is_above(const char *path, size_t len, const char *program)
{
	return !strncmp(path, program, len) && (len == 1 || program[len] == '/');
}

/* @fd refers to the first @len bytes of @path. @last: that is the whole path */
static bool check_one(int fd, const char *path, size_t len, bool last, const char *program,
		      struct owners *owners)
{
	struct stat st;

	if (fstat(fd, &st) || S_ISLNK(st.st_mode))
		return false;
	if (!last && is_sticky(&st) && others_may_write(fd, &st)) {
		owners->below_shared = true;
		return is_owner(owners, st.st_uid) || st.st_uid == owners->root;
	}
	if (is_above(path, len, program))
		return true;
	return is_owner(owners, st.st_uid) && !others_may_write(fd, &st);
}

/* Open the component @at of the path in @dir, and close @dir. */
static int open_next(int dir, const char *at, size_t len)
{
	char name[NAME_MAX + 1];
	int fd;

	if (len > NAME_MAX) {
		close(dir);
		return -1;
	}
	memcpy(name, at, len);
	name[len] = '\0';
	fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	close(dir);
	return fd;
}

static int walk(const char *real, const char *program, struct owners *owners)
{
	const char *at = real + 1, *end = at;
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool good = fd >= 0 && check_one(fd, real, 1, !*at, program, owners);

	while (good && *at) {
		end = strchrnul(at, '/');
		fd = open_next(fd, at, end - at);
		if (fd < 0)
			return -EPERM;
		good = check_one(fd, real, end - real, !*end, program, owners);
		at = *end ? end + 1 : end;
	}
	if (good)
		return fd;
	if (fd >= 0)
		close(fd);
	return -EPERM;
}

int trusted_open(const char *path, const char *program, char real[static PATH_MAX])
{
	struct owners owners = { .user = geteuid() };
	struct stat st;

	if (!realpath(path, real))
		return -errno;
	if (stat(program, &st))
		return -EPERM;
	owners.program = st.st_uid;
	if (stat("/", &st))
		return -EPERM;
	owners.root = st.st_uid;
	return walk(real, program, &owners);
}
