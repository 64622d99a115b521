// SPDX-License-Identifier: GPL-2.0-only
/* The command: its start, its output, and its end. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init.h"

#define OUTPUT_MAX	(1ULL << 30)	/* a runaway must not fill the host's disk */
#define KILL_SECONDS	20		/* for all processes to die */

__attribute__((noreturn))
static void exec_command(const int out[2], const int err[2], int null)
{
	sigset_t none;
	int status;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	/* Opening /dev/stdout again must be allowed to --user. */
	if (fchown(out[1], job.uid, job.gid) || fchown(err[1], job.uid, job.gid) ||
	    dup2(null, 0) < 0 || dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0)
		_exit(126);
	if (setgroups(job.n_groups, job.groups) || setgid(job.gid) ||
	    setuid(job.uid)) {
		dprintf(2, "vm/init: user %u: %s\n", job.uid, strerror(errno));
		_exit(126);
	}
	if (chdir(job.cwd)) {
		dprintf(2, "vm/init: %s: %s (is it on the root file system?)\n",
			job.cwd, strerror(errno));
		_exit(126);
	}
	environ = job.env;
	execvp(job.argv[0], job.argv);
	status = errno == ENOENT ? 127 : 126;
	dprintf(2, "vm/init: %s: %s\n", job.argv[0], strerror(errno));
	_exit(status);
}

/* False at the end of the stream, or when there is nothing to read now. */
static bool copy_some(struct stream *s)
{
	static char buf[65536];
	ssize_t n, done, m;

	if (s->from < 0)
		return false;
	n = read(s->from, buf, sizeof(buf));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		close(s->from);
		s->from = -1;
		return false;
	}
	s->bytes += n;
	if (s->bytes > OUTPUT_MAX)
		die("%s: more than 1 GiB of output", s->name);
	for (done = 0; done < n; done += m) {
		m = write(s->to, buf + done, n - done);
		if (m < 0)
			die("write %s: %s", s->name, strerror(errno));
	}
	return true;
}

/* Takes in the dead. True, and the exit status, once @child is one of them. */
static bool reap(pid_t child, int *status)
{
	bool found = false;
	pid_t pid;
	int st;

	while ((pid = waitpid(-1, &st, WNOHANG)) > 0) {
		if (pid != child)
			continue;
		found = true;
		*status = WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
	}
	return found;
}

/* The time is over: leave in the log what everyone was waiting for. */
__attribute__((noreturn))
static void time_out(void)
{
	klog("timeout: backtraces follow");
	write_file("/proc/sysrq-trigger", "l");
	write_file("/proc/sysrq-trigger", "w");
	tell("timeout");
	power_off();
}

static void copy_until_exit(pid_t child, int sigs, struct stream *out,
			    struct stream *err, int *status)
{
	struct signalfd_siginfo info;
	bool ended = false;

	while (!ended) {
		struct pollfd fds[] = {
			{ .fd = sigs, .events = POLLIN },
			{ .fd = out->from, .events = POLLIN },
			{ .fd = err->from, .events = POLLIN },
		};

		if (uptime() >= job.limit)
			time_out();
		if (poll(fds, 3, 1000) <= 0)
			continue;
		if (fds[1].revents)
			copy_some(out);
		if (fds[2].revents)
			copy_some(err);
		if (fds[0].revents) {
			if (read(sigs, &info, sizeof(info)) < 0 && errno != EAGAIN)
				die("signalfd: %s", strerror(errno));
			ended = reap(child, status);
		}
	}
	while (copy_some(out))
		;
	while (copy_some(err))
		;
}

void kill_all(void)
{
	long end = uptime() + KILL_SECONDS;
	pid_t pid;

	for (;;) {
		kill(-1, SIGKILL);
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return;
		if (uptime() >= end)
			break;
		usleep(10000);
	}
	write_file("/proc/sysrq-trigger", "l");
	write_file("/proc/sysrq-trigger", "w");
	klog("fail: processes survive SIGKILL, backtraces above");
	tell("fail processes survive SIGKILL");
}

int run_command(struct stream *out, struct stream *err)
{
	int out_pipe[2], err_pipe[2], null, sigs, status = 0;
	sigset_t chld;
	pid_t child;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	sigs = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (sigs < 0 || null < 0 || pipe2(out_pipe, O_CLOEXEC) ||
	    pipe2(err_pipe, O_CLOEXEC))
		die("prepare the command: %s", strerror(errno));

	child = fork();
	if (child < 0)
		die("fork: %s", strerror(errno));
	if (!child)
		exec_command(out_pipe, err_pipe, null);
	close(out_pipe[1]);
	close(err_pipe[1]);
	close(null);
	/* Only the reading ends: the command's own are another description. */
	fcntl(out_pipe[0], F_SETFL, O_NONBLOCK);
	fcntl(err_pipe[0], F_SETFL, O_NONBLOCK);
	out->from = out_pipe[0];
	err->from = err_pipe[0];
	copy_until_exit(child, sigs, out, err, &status);
	close(sigs);
	return status;
}
