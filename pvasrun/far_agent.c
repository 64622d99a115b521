// SPDX-License-Identifier: GPL-2.0-only
/*
 * The process that starts a memory server, and watches that it ends.
 *
 * The server ends when its standard input does, which ssh and srun pass on: so if pvasrun dies
 * in any way, the kernel ends the server. Ssh and srun themselves may still stay, if their
 * network hangs: hence a process between, the agent, which outlives pvasrun by some seconds and
 * then kills them. It isn't seen by those who wait for any child, as it ends without a signal.
 */
#include "far_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask.h"
#include "job.h"

/* After pvasrun's end, and after SIGTERM */
#define LEAVE_MS	5000
#define TERM_MS		2000

enum { WORDS_MAX = 24 };

struct command {
	const char *word[WORDS_MAX];
	unsigned int count;
	char listen[INET6_ADDRSTRLEN + 16];
	char ram[24];
	char line[3 * PATH_MAX];	/* for a shell */
};

/* ---- the command ---- */

static void add(struct command *c, const char *word)
{
	if (c->count < WORDS_MAX - 1)
		c->word[c->count++] = word;
	c->word[c->count] = NULL;
}

/* In single quotes, in which a shell changes nothing; -1: there is no room */
static int quote(char *line, size_t size, size_t *at, const char *word)
{
	const char *c;

	for (c = word; ; c++) {
		if (*at + 8 > size)
			return -1;
		if (c == word)
			line[(*at)++] = '\'';
		if (!*c)
			break;
		if (*c == '\'')
			*at += (size_t)sprintf(line + *at, "'\\''");
		else
			line[(*at)++] = *c;
	}
	*at += (size_t)sprintf(line + *at, "' ");
	return 0;
}

static void add_server(struct command *c, const char *memd)
{
	add(c, memd);
	add(c, "--key");
	add(c, "-");
	add(c, "--until-eof");
	add(c, "--listen");
	add(c, c->listen);
	add(c, "--ram");
	add(c, c->ram);
}

/* Ssh gives the words to a shell there. It must ask nothing, and leave nothing behind. */
static int add_ssh(struct command *c, const char *name, const char *memd)
{
	struct command server = *c;
	size_t at = (size_t)sprintf(c->line, "exec ");
	unsigned int i;

	server.count = 0;
	add_server(&server, memd);
	for (i = 0; i < server.count; i++)
		if (quote(c->line, sizeof(c->line), &at, server.word[i]))
			return -ENAMETOOLONG;
	add(c, "ssh");
	add(c, "-xaT");
	add(c, "-oBatchMode=yes");
	add(c, "-oConnectTimeout=20");
	add(c, "-oControlMaster=no");
	add(c, "-oControlPath=none");
	add(c, "--");
	add(c, name);
	add(c, c->line);
	return 0;
}

static void add_srun(struct command *c, const char *name, const char *memd)
{
	static const char *const options[] = {
		"srun", "--nodes=1", "--ntasks=1", "--overlap", "--mem=0", "--cpu-bind=none",
		"--quiet", "--unbuffered", "--nodelist",
	};
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		add(c, options[i]);
	add(c, name);
	add_server(c, memd);
}

static int make_command(struct command *c, const struct far_host *host, const char *memd,
			uint64_t ram)
{
	c->count = 0;
	snprintf(c->listen, sizeof(c->listen), "%s:0", host->address);
	snprintf(c->ram, sizeof(c->ram), "%" PRIu64, ram);
	if (host->way == FAR_BY_SSH)
		return add_ssh(c, host->name, memd);
	if (host->way == FAR_BY_SRUN)
		add_srun(c, host->name, memd);
	else
		add_server(c, memd);
	return 0;
}

/* ---- in the agent ---- */

static _Noreturn void run(const struct command *c, int in, int out)
{
	sigset_t none;

	/* A group of its own, to be killed as a whole */
	setpgid(0, 0);
	/* Both are above the standard descriptors, which pvasrun keeps open. */
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	syscall(__NR_close_range, STDERR_FILENO + 1, ~0U, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(c->word[0], (char **)c->word);
	dprintf(STDERR_FILENO, "%s: %s\n", c->word[0], strerror(errno));
	_exit(STATUS_NOT_FOUND);
}

/* True: it has ended within that time. */
static int has_ended(int child, int timeout_ms)
{
	struct pollfd end = { .fd = child, .events = POLLIN };

	return poll(&end, 1, timeout_ms) == 1;
}

/* It has none of its own where a sandbox forbids that. */
static void end_group(pid_t pid, int signo)
{
	if (kill(-pid, signo))
		kill(pid, signo);
}

static _Noreturn void watch(pid_t pid, int parent)
{
	int child = (int)syscall(__NR_pidfd_open, pid, 0), status = 0;
	struct pollfd ends[] = {
		{ .fd = child, .events = POLLIN }, { .fd = parent, .events = POLLIN },
	};

	while (poll(ends, 2, -1) < 0 && errno == EINTR)
		;
	if (!has_ended(child, LEAVE_MS)) {
		end_group(pid, SIGTERM);
		if (!has_ended(child, TERM_MS))
			end_group(pid, SIGKILL);
	}
	waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_SIGNAL + WTERMSIG(status));
}

static _Noreturn void be_agent(const struct command *c, int in, int out, int parent)
{
	pid_t pid;

	/* Signals of the terminal are not for it. */
	setsid();
	prctl(PR_SET_NAME, "pvas-far-agent");
	pid = fork();
	if (!pid)
		run(c, in, out);
	/* Others wait for the end of pipes. */
	syscall(__NR_close_range, 0, parent - 1, 0);
	syscall(__NR_close_range, parent + 1, ~0U, 0);
	if (pid < 0)
		_exit(STATUS_FAILED);
	watch(pid, parent);
}

/* ---- in pvasrun ---- */

static int fork_agent(struct far_agent *agent, const struct command *c, int in, int out)
{
	int self = (int)syscall(__NR_pidfd_open, getpid(), 0), err;

	if (self < 0)
		return -errno;
	agent->pid = fork_without_signal();
	if (!agent->pid)
		be_agent(c, in, out, self);
	err = agent->pid < 0 ? -errno : 0;
	close(self);
	return err;
}

int far_agent_start(struct far_agent *agent, const struct far_host *host, const char *memd,
		    uint64_t ram)
{
	int in[2], out[2], err;
	struct command c;

	err = make_command(&c, host, memd, ram);
	if (err)
		return err;
	if (pipe2(in, O_CLOEXEC))
		return -errno;
	if (pipe2(out, O_CLOEXEC)) {
		err = -errno;
		close(in[0]);
		close(in[1]);
		return err;
	}
	err = fork_agent(agent, &c, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	if (err) {
		close(in[1]);
		close(out[0]);
		agent->pid = 0;
		return err;
	}
	agent->in = in[1];
	agent->out = out[0];
	return 0;
}
