// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a command again and again while another process exchanges a program with a FIFO.
 *
 *	exchange PROGRAM FIFO TIMES COMMAND ARGUMENT...
 *
 * Exit status 0 if the FIFO was never opened, 1 if it was. Were it a watchdog or a tape, to open
 * it would have had effects.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void __attribute__((noreturn)) exchange(const char *one, const char *other)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE))
			_exit(1);
}

static void run(char **command)
{
	pid_t pid = fork();

	if (!pid) {
		execvp(command[0], command);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), times, status;
	char events[4096];
	bool opened = false;
	pid_t other;

	if (argc < 5 || inotify_add_watch(watch, argv[2], IN_OPEN) < 0)
		return 2;
	other = fork();
	if (!other)
		exchange(argv[1], argv[2]);
	for (times = atoi(argv[3]); times > 0 && !opened; times--) {
		run(argv + 4);
		opened = read(watch, events, sizeof(events)) > 0;
	}
	if (waitpid(other, &status, WNOHANG))
		return 2;
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	return opened;
}
