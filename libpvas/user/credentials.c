// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: does the caller of pvas_task_spawn() have the rights of the tasks?
 *
 * The supervisor clones the tasks, so they have its rights, which were those of the
 * thread that created the space. Rights are per thread: a thread that has given some
 * up since must not regain them by starting a task. libc's setuid() and the like act
 * on all threads, the supervisor included. Landlock rules can't be queried.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "rawsys.h"
#include "user.h"

#define STATUS_LEN	(1UL << 20)	/* there can be 65536 groups */
#define KEEP_CAPS	(1L << 4)	/* of the securebits; execve clears it */

/* A whole file about a thread, as a string. 0 or -errno. */
static int read_thread(pid_t tid, const char *name, char *text, size_t room)
{
	ssize_t len = user_proc_read(tid, name, text, room);

	if (len < 0)
		return (int)len;
	return (size_t)len == room - 1 ? -EOVERFLOW : 0;
}

static const char *line_of(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line ? line + strlen(name) : "";
}

static int same_line(const char *a, const char *b, const char *name)
{
	size_t len;

	a = line_of(a, name);
	b = line_of(b, name);
	len = strcspn(a, "\n");
	return strcspn(b, "\n") == len && !memcmp(a, b, len);
}

/* The supervisor has one filter more. */
static int filters_of(const char *status)
{
	return atoi(line_of(status, "\nSeccomp_filters:"));
}

/* Returns the name of what differs, or NULL. */
static const char *compare_status(const char *mine, const char *supervisor)
{
	static const char *const lines[][2] = {
		{ "\nUid:", "user ids" }, { "\nGid:", "group ids" }, { "\nGroups:", "groups" },
		{ "\nCapInh:", "inheritable capabilities" },
		{ "\nCapPrm:", "permitted capabilities" },
		{ "\nCapEff:", "effective capabilities" },
		{ "\nCapBnd:", "bounding capabilities" },
		{ "\nCapAmb:", "ambient capabilities" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!same_line(mine, supervisor, lines[i][0]))
			return lines[i][1];
	return filters_of(mine) + 1 == filters_of(supervisor) ? NULL : "seccomp filters";
}

static ssize_t read_namespace(pid_t tid, const char *name, char *text, size_t room)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/ns/%s", tid, name);
	return readlink(path, text, room);
}

static int same_namespaces(pid_t a, pid_t b)
{
	static const char *const names[] = {
		"user", "mnt", "pid", "pid_for_children", "net", "ipc", "uts", "cgroup", "time",
		"time_for_children",
	};
	char x[64], y[64];
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ssize_t n = read_namespace(a, names[i], x, sizeof(x));

		/* A namespace that this kernel lacks does not differ. */
		if (read_namespace(b, names[i], y, sizeof(y)) != n || (n > 0 && memcmp(x, y, n)))
			return 0;
	}
	return 1;
}

/* The label of a security module, if there is one */
static int same_label(pid_t a, pid_t b)
{
	char x[4096], y[4096];
	int err = read_thread(a, "attr/current", x, sizeof(x));

	return read_thread(b, "attr/current", y, sizeof(y)) == err && !strcmp(x, y);
}

static long securebits(void)
{
	return pvas_raw1(__NR_prctl, PR_GET_SECUREBITS) & ~KEEP_CAPS;
}

void user_credentials_begin(struct user_space *u)
{
	u->securebits = securebits();
}

static const char *find_difference(const struct user_space *u, char *mine, char *supervisor,
				   int *err)
{
	pid_t me = (pid_t)pvas_raw0(__NR_gettid);
	const char *what;

	*err = read_thread(me, "status", mine, STATUS_LEN);
	if (!*err)
		*err = read_thread(u->supervisor_tid, "status", supervisor, STATUS_LEN);
	if (*err)
		return NULL;
	what = compare_status(mine, supervisor);
	if (!what && securebits() != u->securebits)
		what = "securebits";
	if (!what && !same_namespaces(me, u->supervisor_tid))
		what = "namespaces";
	if (!what && !same_label(me, u->supervisor_tid))
		what = "security label";
	return what;
}

int user_credentials_check(const struct user_space *u)
{
	char *text = malloc(2 * STATUS_LEN);
	const char *what;
	int err, cancel;

	if (!text)
		return -ENOMEM;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	what = find_difference(u, text, text + STATUS_LEN, &err);
	pthread_setcancelstate(cancel, NULL);
	free(text);
	if (err)
		return pvas_fail(err, "user backend: can't read this thread's status in /proc: %s",
				 strerror(-err));
	if (what)
		return pvas_fail(-EPERM,
				 "user backend: this thread's %s differ from those of the space's tasks",
				 what);
	return 0;
}
