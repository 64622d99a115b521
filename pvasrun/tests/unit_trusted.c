// SPDX-License-Identifier: GPL-2.0-only
/* May code be loaded from a file beside the program? */
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../trusted.h"
#include "unit.h"

static char dir[] = "/tmp/pvas-unit-XXXXXX";

static const char *in_dir(const char *name)
{
	static char paths[4][200];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static void make(const char *name)
{
	check(close(open(in_dir(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755)) == 0);
}

static bool trusted_path(const char *path, const char *program)
{
	char real[PATH_MAX];
	int fd = trusted_open(path, program, real);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* While a link is switched back and forth, the file that was checked is the one returned. */
static void exchanged(void)
{
	unsigned int i, wrong = 0;
	struct stat st, root;
	char real[PATH_MAX];
	pid_t pid;
	int fd;

	check(!stat(in_dir("shared/plugin"), &root));
	make("evil");
	check(!chown(in_dir("evil"), 54321, 54321));
	check(!symlink(in_dir("shared/plugin"), in_dir("shared/link")));
	check(!symlink(in_dir("evil"), in_dir("shared/other")));
	pid = fork();
	while (!pid)
		renameat2(AT_FDCWD, in_dir("shared/link"), AT_FDCWD, in_dir("shared/other"),
			  RENAME_EXCHANGE);
	for (i = 0; i < 2000; i++) {
		fd = trusted_open(in_dir("shared/link"), in_dir("shared/program"), real);
		if (fd < 0)
			continue;
		wrong += fstat(fd, &st) || st.st_ino != root.st_ino;
		wrong += strcmp(real, in_dir("shared/plugin")) != 0;
		close(fd);
	}
	kill(pid, SIGKILL);
	check(waitpid(pid, NULL, 0) == pid);
	check(!wrong);
}

/* An ACL by which user 7102 may write: struct posix_acl_xattr_header and _entry */
static void list(void)
{
	static const struct {
		uint32_t version;
		struct {
			uint16_t tag, perm;
			uint32_t id;
		} entries[5];
	} acl = { 2, { { 1, 6, -1 }, { 2, 6, 7102 }, { 4, 4, -1 }, { 0x10, 6, -1 },
		       { 0x20, 4, -1 } } };

	check(!chown(in_dir("bin/program"), 0, 0) && !chmod(in_dir("bin/plugin"), 0664));
	check(trusted_path(in_dir("bin/plugin"), in_dir("bin/program")));
	if (setxattr(in_dir("bin/plugin"), "system.posix_acl_access", &acl, sizeof(acl), 0))
		return;		/* this file system has no ACLs */
	check(!trusted_path(in_dir("bin/plugin"), in_dir("bin/program")));
	check(!removexattr(in_dir("bin/plugin"), "system.posix_acl_access"));
}

/* The users of this system, instead of libc's functions */
static const struct passwd *users;

void setpwent(void)
{
}

struct passwd *getpwent(void)
{
	return users && users->pw_name ? (struct passwd *)users++ : NULL;
}

void endpwent(void)
{
}

/* Is the group of that number private to its user, if @list is all users? */
static bool private_among(uid_t id, const struct passwd *list)
{
	bool private;

	users = list;
	private = trusted_group(id, id);
	users = NULL;
	return private;
}

static void primary_groups(void)
{
	const struct passwd alone[] = { { .pw_name = "root" },
					{ .pw_name = "a", .pw_uid = 54321, .pw_gid = 54321 },
					{ .pw_name = "a2", .pw_uid = 54321, .pw_gid = 54321 },
					{ .pw_name = "b", .pw_uid = 54322, .pw_gid = 54322 },
					{ 0 } };
	const struct passwd shared[] = { { .pw_name = "root" },
					 { .pw_name = "operator", .pw_uid = 11 },
					 { .pw_name = "a", .pw_uid = 54321, .pw_gid = 54321 },
					 { .pw_name = "b", .pw_uid = 54322, .pw_gid = 54321 },
					 { 0 } };

	check(private_among(0, alone) && private_among(54321, alone));
	check(!private_among(0, shared) && !private_among(54321, shared));
}

static void groups(void)
{
	primary_groups();
	check(!trusted_group(0, 1) && !trusted_group(1, 0));
	check(trusted_group(54321, 54321));
	/* a group with several members and the number of a user */
	check(!getpwuid(4) || !getgrgid(4) || !trusted_group(4, 4) ==
	      !!strcmp(getpwuid(4)->pw_name, getgrgid(4)->gr_name));
}

static void others(void)
{
	/* in a sticky directory, files beside the program may be of other users */
	check(!chmod(in_dir("shared"), 01777));
	check(!chown(in_dir("shared/plugin"), 12345, 12345));
	check(!trusted_path(in_dir("shared/plugin"), in_dir("shared/program")));
	check(!chown(in_dir("shared/plugin"), 0, 0));
	check(trusted_path(in_dir("shared/plugin"), in_dir("shared/program")));
	exchanged();
	/* such a directory is not trusted itself, for all files in it would be */
	check(!chmod(in_dir("lib"), 01777));
	check(trusted_path(in_dir("lib/plugin"), in_dir("bin/program")));
	check(!trusted_path(in_dir("lib"), in_dir("bin/program")));
	check(!chmod(in_dir("lib"), 0755));
	check(trusted_path(in_dir("lib"), in_dir("bin/program")));
	/* a directory of another user beside the program's directory */
	check(!chown(in_dir("lib"), 12345, 12345));
	check(!trusted_path(in_dir("lib/plugin"), in_dir("bin/program")));
	/* trusted if that user could replace the program itself */
	check(!chown(in_dir("bin/program"), 12345, 12345));
	check(trusted_path(in_dir("lib/plugin"), in_dir("bin/program")));
	/* but not a third user */
	check(!chown(in_dir("lib/plugin"), 54321, 54321));
	check(!trusted_path(in_dir("lib/plugin"), in_dir("bin/program")));
}

void test_trusted(void)
{
	char command[64];

	umask(022);
	check(mkdtemp(dir) != NULL && !chmod(dir, 0755));
	check(!mkdir(in_dir("bin"), 0755) && !mkdir(in_dir("lib"), 0755) &&
	      !mkdir(in_dir("shared"), 0755));
	make("bin/program");
	make("bin/plugin");
	make("lib/plugin");
	make("shared/program");
	make("shared/plugin");
	check(trusted_path(in_dir("bin/plugin"), in_dir("bin/program")));
	check(trusted_path(in_dir("bin/../lib/plugin"), in_dir("bin/program")));
	check(!trusted_path(in_dir("lib/none"), in_dir("bin/program")));
	check(!trusted_path(in_dir("lib/plugin"), in_dir("bin/none")));
	/* writable for all users, or for a group */
	check(!chmod(in_dir("lib/plugin"), 0757));
	check(!trusted_path(in_dir("lib/plugin"), in_dir("bin/program")));
	check(!chmod(in_dir("lib/plugin"), 0755) && !chmod(in_dir("lib"), 0777));
	check(!trusted_path(in_dir("lib/plugin"), in_dir("bin/program")));
	check(!chmod(in_dir("lib"), 0755) && !symlink(in_dir("lib"), in_dir("link")));
	check(trusted_path(in_dir("link/plugin"), in_dir("bin/program")));
	groups();
	if (!geteuid()) {
		others();
		list();
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	check(!system(command));
}
