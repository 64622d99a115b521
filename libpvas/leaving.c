// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs that leave the space by execve(): how to have that, and a warning for those that
 * expect to be a task: MPI ranks, whose messages go other ways, and all that ask libpvas.
 */
#include <errno.h>
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
#define EXEC		"PVAS_EXEC"
#define LEAVE		"leave"
#define STAY		"stay"

static int should_be_task(void)
{
	const char *launcher = getenv(LAUNCHER), *wish = getenv(EXEC);

	return launcher && atoi(launcher) == getppid() && !(wish && !strcmp(wish, LEAVE));
}

/*
 * A process can have several copies of this library, as Open MPI's components do. A variable that
 * is of no use outside the space is changed in its place, which is safe beside other threads.
 * pvasrun looks for the launcher's, but pvasexec has no other one.
 */
static int is_first_copy(void)
{
	char *mark = getenv(SPACE);

	if (!mark || !*mark)
		mark = getenv(LAUNCHER);
	return __atomic_exchange_n(mark, '-', __ATOMIC_RELAXED) != '-';
}

static void warn(void)
{
	const char *rank = getenv("PVAS_RANK");
	char path[PATH_MAX], why[256] = "", line[PATH_MAX + 512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n < 0 ? 0 : n] = 0;
	if (n > 0)
		pvas_program_check(path, why, sizeof(why));
	n = snprintf(line, sizeof(line), "libpvas: rank %s (pid %d) is no task: %s runs outside the space%s%s\n",
		     rank ? rank : "?", getpid(), path, why[0] ? ": " : " (see PVAS_EXEC in pvas(7))",
		     why);
	if (n > 0 && (size_t)n < sizeof(line) && write(STDERR_FILENO, line, n) < 0)
		return;
}

void pvas_warn_of_leaving(void)
{
	static int asked;

	if (__atomic_exchange_n(&asked, 1, __ATOMIC_RELAXED))
		return;
	if (should_be_task() && is_first_copy())
		warn();
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
