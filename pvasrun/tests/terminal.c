// SPDX-License-Identifier: GPL-2.0-only
/*
 * Acts as a user at a terminal, and as the shell in it, to test job control.
 *
 * terminal STEP... -- command args
 *
 * The command runs as a shell's foreground job on a new pseudo terminal.
 * Steps: expect=TEXT (wait until it is printed), type=TEXT, run=COMMAND (must
 * succeed), state=STATE (the job is "stopped N", "exit N" or "signal N"), fg
 * (continue it), pause=MS. Exits 0 if all went so, else 1 with what didn't.
 */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS (20 * 1000 * patience())

static char output[1 << 16];
static size_t printed, expected_from;
static int screen, shell;

/* A VM without KVM is slow. */
static int patience(void)
{
	const char *slow = getenv("SLOW");

	return slow ? atoi(slow) : 1;
}

static void give_up(const char *step, const char *why)
{
	printf("terminal: step '%s': %s\nprinted so far:\n%.*s\n", step, why, (int)printed, output);
	exit(1);
}

/* ---- the shell, in the terminal's session ---- */

static void answer(int user, int wait_status)
{
	char text[32] = "";

	if (WIFSTOPPED(wait_status))
		snprintf(text, sizeof(text), "stopped %d", WSTOPSIG(wait_status));
	else if (WIFSIGNALED(wait_status))
		snprintf(text, sizeof(text), "signal %d", WTERMSIG(wait_status));
	else
		snprintf(text, sizeof(text), "exit %d", WEXITSTATUS(wait_status));
	if (write(user, text, sizeof(text)) < 0)
		_exit(1);
}

static void run_shell(int user, char **command)
{
	int wait_status;
	char order;
	pid_t job;

	signal(SIGTTOU, SIG_IGN);
	job = fork();
	if (!job) {
		setpgid(0, 0);
		tcsetpgrp(STDIN_FILENO, getpid());
		signal(SIGTTOU, SIG_DFL);
		execvp(command[0], command);
		_exit(127);
	}
	setpgid(job, job);
	while (read(user, &order, 1) == 1) {
		if (order == 'f') {
			tcsetpgrp(STDIN_FILENO, job);
			kill(-job, SIGCONT);
			continue;
		}
		waitpid(job, &wait_status, WUNTRACED);
		tcsetpgrp(STDIN_FILENO, getpid());
		answer(user, wait_status);
	}
	_exit(0);
}

/* ---- the user ---- */

/* Read output; false at its end or on timeout. */
static int look(int fd, int timeout_ms)
{
	struct pollfd fds[2] = { { screen, POLLIN, 0 }, { fd, POLLIN, 0 } };
	ssize_t n;

	if (poll(fds, fd < 0 ? 1 : 2, timeout_ms) <= 0)
		return 0;
	if (fds[0].revents) {
		n = read(screen, output + printed, sizeof(output) - printed - 1);
		if (n <= 0 && fd < 0)
			return 0;
		printed += n > 0 ? n : 0;
	}
	return 1;
}

static void expect(const char *step, const char *text)
{
	char *found;

	while (!(found = strstr(output + expected_from, text)))
		if (!look(-1, PATIENCE_MS))
			give_up(step, "never printed");
	expected_from = found - output + strlen(text);
}

static void type(const char *step, const char *text)
{
	if (write(screen, text, strlen(text)) < 0)
		give_up(step, strerror(errno));
}

static void state(const char *step, const char *wanted)
{
	struct pollfd answered = { shell, POLLIN, 0 };
	char text[32] = "";

	if (write(shell, "w", 1) < 0)
		give_up(step, "the shell is gone");
	while (!poll(&answered, 1, 0))
		if (!look(shell, PATIENCE_MS))
			give_up(step, "the job's state did not change");
	if (read(shell, text, sizeof(text)) <= 0)
		give_up(step, "the shell is gone");
	if (strcmp(text, wanted))
		give_up(step, text);
}

static const char *value(const char *step, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(step, name, len) && step[len] == '=' ? step + len + 1 : NULL;
}

static void do_step(const char *step)
{
	const char *text;

	if ((text = value(step, "expect")))
		expect(step, text);
	else if ((text = value(step, "type")))
		type(step, text);
	else if ((text = value(step, "state")))
		state(step, text);
	else if ((text = value(step, "pause")))
		usleep(1000 * atoi(text));
	else if (!strcmp(step, "fg") && write(shell, "f", 1) == 1)
		;
	else if (!(text = value(step, "run")) || system(text))
		give_up(step, "failed");
}

int main(int argc, char **argv)
{
	int steps = 1, i, ends[2];
	pid_t pid;

	while (steps < argc && strcmp(argv[steps], "--"))
		steps++;
	if (steps >= argc - 1 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return 2;
	pid = forkpty(&screen, NULL, NULL, NULL);
	if (pid < 0)
		return 2;
	if (!pid)
		run_shell(ends[1], argv + steps + 1);
	close(ends[1]);
	shell = ends[0];
	for (i = 1; i < steps; i++)
		do_step(argv[i]);
	return 0;
}
