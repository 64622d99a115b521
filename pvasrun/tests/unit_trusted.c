// SPDX-License-Identifier: GPL-2.0-only
/* May code be loaded from a file beside the program? */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
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

static void others(void)
{
	/* where everybody can make files: the program was put there, its neighbours by others */
	check(!chmod(in_dir("shared"), 01777));
	check(!chown(in_dir("shared/plugin"), 12345, 12345));
	check(!trusted_path(in_dir("shared/plugin"), in_dir("shared/program")));
	check(!chown(in_dir("shared/plugin"), 0, 0));
	check(trusted_path(in_dir("shared/plugin"), in_dir("shared/program")));
	/* a directory of another's beside the program's own */
	check(!chown(in_dir("lib"), 12345, 12345));
	check(!trusted_path(in_dir("lib/plugin"), in_dir("bin/program")));
	/* unless he could as well have exchanged the program */
	check(!chown(in_dir("bin/program"), 12345, 12345));
	check(trusted_path(in_dir("lib/plugin"), in_dir("bin/program")));
	/* but nobody else */
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
	/* what everybody, or a group, can change */
	check(!chmod(in_dir("lib/plugin"), 0757));
	check(!trusted_path(in_dir("lib/plugin"), in_dir("bin/program")));
	check(!chmod(in_dir("lib/plugin"), 0755) && !chmod(in_dir("lib"), 0777));
	check(!trusted_path(in_dir("lib/plugin"), in_dir("bin/program")));
	check(!chmod(in_dir("lib"), 0755) && !symlink(in_dir("lib"), in_dir("link")));
	check(trusted_path(in_dir("link/plugin"), in_dir("bin/program")));
	if (!geteuid())
		others();
	snprintf(command, sizeof(command), "rm -r %s", dir);
	check(!system(command));
}
