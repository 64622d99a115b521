// SPDX-License-Identifier: GPL-2.0-only
/*
 * May code be loaded from a file? A copy of this program in /tmp has neighbours
 * that anybody can have put there.
 */
#include "trusted.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_USER 65534	/* as a user looks who has no number in this namespace */

struct owners {
	uid_t user, program, root;	/* @root: as / has it, 0 unless in a namespace */
	bool below_shared;		/* in a directory where everybody can make files */
};

static bool is_owner(const struct owners *owners, uid_t uid)
{
	/* several users look like this one */
	if (uid == NO_USER && owners->below_shared && owners->root == NO_USER)
		return false;
	return uid == 0 || uid == owners->user || uid == owners->program || uid == owners->root;
}

/* A user's private group has the same number, and the same one member. */
static bool others_may_write(const struct stat *st)
{
	return st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid != st->st_uid);
}

/* Nobody can rename or remove another's file in such a directory. */
static bool is_sticky(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX;
}

/* Is @path, up to @len, a directory that @program is in? */
static bool is_above(const char *path, size_t len, const char *program)
{
	return !strncmp(path, program, len) && (len == 1 || program[len] == '/');
}

static bool check_one(char *path, size_t len, const char *program, struct owners *owners)
{
	char kept = path[len];
	struct stat st;
	bool there;

	path[len] = '\0';
	there = !lstat(path, &st);
	path[len] = kept;
	if (!there)
		return false;
	if (is_sticky(&st) && others_may_write(&st)) {
		owners->below_shared = true;
		return is_owner(owners, st.st_uid) || st.st_uid == owners->root;
	}
	if (is_above(path, len, program))
		return true;
	return is_owner(owners, st.st_uid) && !others_may_write(&st);
}

bool trusted_path(const char *path, const char *program)
{
	struct owners owners = { .user = geteuid() };
	char real[PATH_MAX];
	struct stat st;
	char *at = real;

	if (!realpath(path, real) || stat(program, &st))
		return false;
	owners.program = st.st_uid;
	if (stat("/", &st))
		return false;
	owners.root = st.st_uid;
	if (!check_one(real, 1, program, &owners))
		return false;
	while ((at = strchr(at + 1, '/')))
		if (!check_one(real, at - real, program, &owners))
			return false;
	return check_one(real, strlen(real), program, &owners);
}
