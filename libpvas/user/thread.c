// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: threads of the launcher that share less than threads usually do.
 *
 * After unshare(CLONE_FILES) a number names another descriptor than in the supervisor,
 * and after unshare(CLONE_FS) root, working directory and umask can be others than those
 * that a task gets from the supervisor. Where kcmp() is forbidden, as in containers, they
 * are compared by their effects. A thread can also have control groups of its own.
 */
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rawsys.h"

static long compare(const struct user_space *u, int type)
{
	return pvas_raw4(__NR_kcmp, pvas_raw0(__NR_gettid), u->supervisor_tid, type, 0);
}

/* ---- descriptors ---- */

/* Is the pipe @fd of the caller also the supervisor's? A pipe's number is its own. */
static int is_supervisors(const struct user_space *u, int fd)
{
	char name[16], a[64], b[64];

	snprintf(name, sizeof(name), "fd/%d", fd);
	return user_proc_link((pid_t)pvas_raw0(__NR_gettid), name, a, sizeof(a)) > 0 &&
	       user_proc_link(u->supervisor_tid, name, b, sizeof(b)) > 0 && !strcmp(a, b);
}

int user_thread_has_files(const struct user_space *u)
{
	long ret = compare(u, KCMP_FILES);
	int p[2];

	if (ret >= 0)
		return !ret;
	ret = pvas_raw2(__NR_pipe2, p, O_CLOEXEC);
	if (ret)
		return (int)ret;
	ret = is_supervisors(u, p[0]);
	pvas_raw1(__NR_close, p[0]);
	pvas_raw1(__NR_close, p[1]);
	return (int)ret;
}

/* ---- root, working directory, umask ---- */

static int same_directory(const struct user_space *u, const char *name)
{
	struct statx a, b;

	return !user_proc_statx((pid_t)pvas_raw0(__NR_gettid), name, &a) &&
	       !user_proc_statx(u->supervisor_tid, name, &b) &&
	       a.stx_dev_major == b.stx_dev_major && a.stx_dev_minor == b.stx_dev_minor &&
	       a.stx_ino == b.stx_ino;
}

/* -1 if unknown */
static int umask_of(pid_t tid)
{
	char text[256], *line;

	/* It is the second line, after the name, whose line feeds are escaped. */
	user_proc_read(tid, "status", text, sizeof(text));
	line = strstr(text, "\nUmask:");
	return line ? (int)strtol(line + 7, NULL, 8) : -1;
}

static int has_directories(const struct user_space *u)
{
	long ret = compare(u, KCMP_FS);

	if (ret >= 0)
		return !ret;
	return same_directory(u, "root") && same_directory(u, "cwd") &&
	       umask_of((pid_t)pvas_raw0(__NR_gettid)) == umask_of(u->supervisor_tid);
}

/* ---- control groups ---- */

#define CGROUPS_LEN	(1 << 17)	/* of 15 hierarchies with paths of PATH_MAX, and more */

struct cgroups {
	char mine[CGROUPS_LEN], its[CGROUPS_LEN], again[CGROUPS_LEN];
};

_Static_assert(sizeof(struct cgroups) <= USER_SCRATCH, "they are read into it");

/*
 * A task gets the supervisor's; and both can be moved while they are read. A list that is cut is
 * not compared.
 */
static int are_equal(const struct user_space *u, struct cgroups *c)
{
	pid_t self = (pid_t)pvas_raw0(__NR_gettid);
	ssize_t len;

	do {
		len = user_proc_read(self, "cgroup", c->mine, sizeof(c->mine));
		user_proc_read(u->supervisor_tid, "cgroup", c->its, sizeof(c->its));
		user_proc_read(self, "cgroup", c->again, sizeof(c->again));
	} while (strcmp(c->mine, c->again));
	return len < CGROUPS_LEN - 1 && !strcmp(c->mine, c->its);
}

const char *user_thread_differs(const struct user_space *u, int promised, int *err)
{
	int ret = user_thread_has_files(u);

	if (ret < 0) {
		*err = ret;
		return NULL;
	}
	if (!ret)
		return "descriptors";
	if (!has_directories(u))
		return "root, working directory or umask";
	return promised || are_equal(u, u->scratch) ? NULL : "control groups";
}
