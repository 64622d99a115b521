// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a command while another process hangs in execve(), in closing a file.
 *
 *	hung_exec DIRECTORY COMMAND ARGUMENT...
 *	hung_exec DIRECTORY
 *
 * Without a command it hangs itself, and prints the number of its server.
 *
 * The command has the number of that process in HUNG_PID. The directory is mounted over,
 * which needs root. Returns the command's exit status; 77 if
 * there can be no such process here.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "../../libpvas/tests/hung_server.h"

#define SKIPPED		77
#define WAIT_MS		10000

static int exit_of(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void __attribute__((noreturn)) hang(const char *dir)
{
	char path[4200];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "%s/file", dir);
	if (open(path, O_RDONLY | O_CLOEXEC) >= 0)
		execl("/bin/true", "true", NULL);
	_exit(1);
}

static void __attribute__((noreturn)) hang_itself(const char *dir, int dev, int *state)
{
	pid_t server = fork();

	if (!server)
		serve(dev, state);
	printf("%d\n", server);
	fflush(stdout);
	close(dev);
	hang(dir);
}

static int run_beside(char **argv, pid_t hanging, const volatile int *state)
{
	char number[16];
	int i;
	pid_t pid;

	for (i = 0; i < WAIT_MS && *state != CLOSE_HANGS; i++)
		usleep(1000);
	if (*state != CLOSE_HANGS)
		return SKIPPED;
	snprintf(number, sizeof(number), "%d", hanging);
	setenv("HUNG_PID", number, 1);
	pid = fork();
	if (!pid) {
		execvp(argv[0], argv);
		_exit(127);
	}
	return exit_of(pid);
}

int main(int argc, char **argv)
{
	volatile int *state = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC), status;
	pid_t server, hanging;

	if (argc < 2 || state == MAP_FAILED)
		return 1;
	if (dev < 0 || mount_it(argv[1], dev))
		return SKIPPED;
	*state = 1;
	if (argc == 2)
		hang_itself(argv[1], dev, (int *)state);
	server = fork();
	if (!server)
		serve(dev, state);
	close(dev);
	hanging = fork();
	if (!hanging)
		hang(argv[1]);
	status = run_beside(argv + 2, hanging, state);
	/* With the server the close fails, and the execve() goes on. */
	kill(server, SIGKILL);
	exit_of(server);
	exit_of(hanging);
	return status;
}
