// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs that leave the space by execve(): how to have that, and a warning for those that
 * expect to be a task: MPI ranks, whose messages go other ways, and all that ask libpvas.
 *
 * A child process of a task's is none, on purpose or because a wrapper forks ("timeout 5 ./app").
 * So it is reported only if the user wants to know more (pvasrun --verbose).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "private.h"
#include "pvas.h"

/* The launchers set it: only their children, and not those of tasks, were meant to be tasks. */
#define LAUNCHER	"PVAS_LAUNCHER"
#define SPACE		"PVAS_SPACE"
#define VERBOSE		"PVAS_VERBOSE"
#define EXEC		"PVAS_EXEC"
#define LEAVE		"leave"
#define STAY		"stay"

static int wants_to_leave(void)
{
	const char *wish = getenv(EXEC);

	return wish && !strcmp(wish, LEAVE);
}

/*
 * A process can have several copies of this library, as Open MPI's components do. A variable that
 * is of no use outside the space is changed in its place, which is safe beside other threads.
 */
static int is_first_copy(char *mark)
{
	return __atomic_exchange_n(mark, '-', __ATOMIC_RELAXED) != '-';
}

/* pvasrun looks for the launcher's, but pvasexec has no other one. */
static char *mark_of_task(void)
{
	char *mark = getenv(SPACE);

	return mark && *mark ? mark : getenv(LAUNCHER);
}

/* Both names can have any character. */
static void write_line(char *line, int len, size_t room)
{
	char *p;

	if (len <= 0 || (size_t)len >= room)
		return;
	for (p = line; p < line + len - 1; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

static ssize_t own_program(char path[static PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	path[n < 0 ? 0 : n] = 0;
	return n;
}

static void warn(void)
{
	const char *rank = getenv("PVAS_RANK");
	char path[PATH_MAX], why[256] = "", line[PATH_MAX + 512];
	int n;

	if (own_program(path) > 0)
		pvas_program_check(path, why, sizeof(why));
	n = snprintf(line, sizeof(line), "libpvas: rank %s (pid %d) is no task: %s runs outside the space%s%s\n",
		     rank ? rank : "?", getpid(), path, why[0] ? ": " : " (see PVAS_EXEC in pvas(7))",
		     why);
	write_line(line, n, sizeof(line));
}

static void parent_name(pid_t pid, char name[static 32])
{
	char file[32];
	ssize_t n = -1;
	int fd;

	snprintf(file, sizeof(file), "/proc/%d/comm", pid);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, name, 31);
		close(fd);
	}
	if (n <= 0)
		n = snprintf(name, 32, "a process") + 1;
	name[n - 1] = 0;
}

static void tell_of_child(void)
{
	const char *rank = getenv("PVAS_RANK");
	char path[PATH_MAX], parent[32], line[PATH_MAX + 512];
	pid_t pid = getppid();
	int n;

	own_program(path);
	parent_name(pid, parent);
	n = snprintf(line, sizeof(line), "libpvas: %s (pid %d) is no task: %s (pid %d), in rank %s, started it as a child process, outside the space (have it started by pvasrun itself, or by a wrapper that executes it without a fork)\n",
		     path, getpid(), parent, pid, rank ? rank : "?");
	write_line(line, n, sizeof(line));
}

void pvas_warn_of_leaving(void)
{
	const char *launcher = getenv(LAUNCHER);
	char *verbose = getenv(VERBOSE);
	static int asked;

	if (__atomic_exchange_n(&asked, 1, __ATOMIC_RELAXED) || !launcher || wants_to_leave())
		return;
	if (atoi(launcher) != getppid()) {
		if (verbose && !strcmp(verbose, "1") && is_first_copy(verbose))
			tell_of_child();
	} else if (is_first_copy(mark_of_task())) {
		warn();
	}
}

PVAS_PUBLIC int pvas_exec_leave(int leave)
{
	int saved = errno, err;

	pvas_clear_error();
	if (leave != 0 && leave != 1)
		return pvas_fail(-EINVAL, "%d is neither 0 nor 1", leave);
	err = setenv(EXEC, leave ? LEAVE : STAY, 1);
	err = err ? -errno : 0;
	errno = saved;
	return err;
}
