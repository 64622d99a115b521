// SPDX-License-Identifier: GPL-2.0-only
/* A root directory in memory: see own_root.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "own_root.h"
#include "pvas_test.h"

#define PLACE	"/tmp"		/* covered by the tmpfs, in a mount namespace of its own */
#define PROGRAM	"/program"

bool own_root_is_here(void)
{
	struct statfs fs;

	return !statfs("/", &fs) && fs.f_type == TMPFS_MAGIC;
}

static int copy_program(int from)
{
	int to = open(PLACE PROGRAM, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ssize_t n;

	if (to < 0)
		return -1;
	do
		n = sendfile(to, from, NULL, 1 << 20);
	while (n > 0);
	close(to);
	return n;
}

static int bind_kernels_own(void)
{
	static const char * const own[] = { "/proc", "/sys", "/dev" };
	char path[32];
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(own); i++) {
		snprintf(path, sizeof(path), PLACE "%s", own[i]);
		if (mkdir(path, 0755) || mount(own[i], path, NULL, MS_BIND | MS_REC, NULL))
			return -1;
	}
	return mkdir(PLACE "/tmp", 0755) ?: chmod(PLACE "/tmp", 01777);
}

static int enter(void)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (from < 0 || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", PLACE, "tmpfs", 0, "mode=755"))
		return -1;
	if (copy_program(from) || bind_kernels_own())
		return -1;
	return chroot(PLACE) ?: chdir("/");
}

int own_root_run(char **argv)
{
	pid_t pid = fork();

	if (!pid) {
		if (!enter())
			execv(PROGRAM, argv);
		perror("# a root of its own");
		_exit(1);
	}
	return pt_wait(pid);
}
