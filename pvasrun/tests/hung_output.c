// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a command whose standard output, and with "both" standard error, is a file whose server
 * answers no write; or with "in" its standard input one whose contents never come.
 *
 *	hung_output DIRECTORY in|out|both COMMAND ARGUMENT...
 *	hung_output DIRECTORY over COMMAND ARGUMENT...
 *
 * With "over" only what is looked up there from then on does not answer: it is mounted when
 * DIRECTORY/ready exists.
 *
 * The directory is mounted over, which needs root. Returns the command's exit status; 77 if
 * there can be no such file here.
 */
#include <stdbool.h>
#include <sys/wait.h>

#include "../../libpvas/tests/hung_server.h"

#define SKIPPED		77

static void __attribute__((noreturn)) run(const char *dir, const char *which, char **argv)
{
	const bool in = !strcmp(which, "in");
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, in ? "file" : "changed");
	fd = open(path, (in ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
	if (fd < 0 || dup2(fd, in ? STDIN_FILENO : STDOUT_FILENO) < 0)
		_exit(SKIPPED);
	if (!strcmp(which, "both"))
		dup2(fd, STDERR_FILENO);
	execvp(argv[0], argv);
	_exit(127);
}

/* Its own mounts, which the command sees, too */
static pid_t run_below(const char *dir, char **argv)
{
	char ready[4200];
	pid_t command;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	snprintf(ready, sizeof(ready), "%s/ready", dir);
	command = fork();
	if (!command) {
		execvp(argv[0], argv);
		_exit(127);
	}
	while (access(ready, F_OK))
		usleep(10000);
	return command;
}

int main(int argc, char **argv)
{
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC), status = 0, state = 0;
	pid_t server, command = 0;
	bool over;

	if (argc < 4)
		return 1;
	over = !strcmp(argv[2], "over");
	if (dev < 0)
		return SKIPPED;
	if (over)
		command = run_below(argv[1], argv + 3);
	if (command < 0 || (over ? mount_over(argv[1], dev) : mount_it(argv[1], dev)))
		return SKIPPED;
	server = fork();
	if (!server)
		serve(dev, &state);
	close(dev);
	if (!over)
		command = fork();
	if (!command)
		run(argv[1], argv[2], argv + 3);
	waitpid(command, &status, 0);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
