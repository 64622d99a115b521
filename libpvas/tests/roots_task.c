// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Task of the unit "roots", static so that it runs in an empty root.
 * usage: roots_task exe DIR | exe-itself DIR | tries | open NUMBER...
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES	30
#define TRY_US	50000

/* With @dir as its root: 0 if /proc/self/exe has no name there, 1 if it has ours. */
static int ask_in(const char *dir)
{
	char name[4096];
	ssize_t n;

	if (geteuid() && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return 77;
	if (chroot(dir) || chdir("/"))
		return 77;
	n = readlink("/proc/self/exe", name, sizeof(name) - 1);
	name[n < 0 ? 0 : n] = 0;
	if (n < 0)
		return 0;
	return strstr(name, "/roots_task") ? 1 : 2;
}

static int ask_by_child(const char *dir)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid)
		_exit(ask_in(dir));
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* As a search in PATH: whether the task has left is asked again after each. */
static int try_programs(void)
{
	char *argv[] = { "none", NULL };
	int i;

	for (i = 0; i < TRIES; i++) {
		execv("/nonexistent", argv);
		usleep(TRY_US);
	}
	return 0;
}

/* A bit for each that is open */
static int which_are_open(char **numbers)
{
	int i, mask = 0;

	for (i = 0; numbers[i]; i++)
		mask |= (fcntl(atoi(numbers[i]), F_GETFD) >= 0) << i;
	return mask;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "exe"))
		return ask_by_child(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "exe-itself"))
		return ask_in(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "tries"))
		return try_programs();
	if (argc > 2 && !strcmp(argv[1], "open"))
		return which_are_open(argv + 2);
	return 98;
}
