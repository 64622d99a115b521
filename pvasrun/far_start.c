// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory servers that pvasrun starts itself, for this job alone. Each reads the job's key from
 * its standard input, which stays open as long as the job lasts: no file or argument has the key.
 */
#include "far_start.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "component.h"
#include "far_agent.h"
#include "job.h"
#include "report.h"

#define START_MS	60000
#define END_MS		5000
#define NOISE_MAX	(1 << 20)	/* before the line that says where it listens */
#define SAYS		"pvas-memd: listening at "

struct server {
	struct event event;	/* of what it prints */
	const struct far_host *host;
	struct far_agent agent;
	unsigned int port;	/* 0: it does not listen yet */
	size_t len, noise;
	char line[512];		/* the last one, perhaps in part */
	char last[160];		/* the last one that was whole, to be shown */
	struct loop *loop;
};

static struct server *servers;
static unsigned int nr_servers;

/* ---- what they print ---- */

/* It may come from anybody's shell: no control characters. */
static void keep_last(struct server *s)
{
	size_t i, n = s->len < sizeof(s->last) - 1 ? s->len : sizeof(s->last) - 1;

	for (i = 0; i < n; i++)
		s->last[i] = s->line[i] < ' ' || s->line[i] > '~' ? '?' : s->line[i];
	s->last[n] = '\0';
}

/* "pvas-memd: listening at 10.0.0.7 port 45123, 1024.0 MiB" */
static void take_line(struct server *s)
{
	const char *port;
	char *end;
	long n;

	keep_last(s);
	if (s->port || strncmp(s->last, SAYS, strlen(SAYS)))
		return;
	port = strstr(s->last, " port ");
	n = port ? strtol(port + 6, &end, 10) : 0;
	if (n > 0 && n < 65536 && *end == ',')
		s->port = (unsigned int)n;
}

static void take_byte(struct server *s, char c)
{
	s->noise++;
	if (c == '\n') {
		if (s->len)
			take_line(s);
		s->len = 0;
	} else if (s->len < sizeof(s->line)) {
		s->line[s->len++] = c;
	}
}

/* False: it has closed its output. */
static bool read_some(struct server *s)
{
	char bytes[4096];
	ssize_t n, i;

	n = read(s->agent.out, bytes, sizeof(bytes));
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	for (i = 0; i < n; i++)
		take_byte(s, bytes[i]);
	return n;
}

/* ---- start ---- */

static int write_key(const struct server *s, const char *line)
{
	size_t len = strlen(line);

	/* A pipe has room for it: this never waits. */
	return write(s->agent.in, line, len) == (ssize_t)len ? 0 : -errno;
}

static int start_one(struct server *s, const char *memd, uint64_t ram, const char *line)
{
	int err = far_agent_start(&s->agent, s->host, memd, ram);

	s->event.fd = s->agent.out;
	if (!err)
		err = write_key(s, line);
	if (err)
		report_error("--far-start %s: %s", s->host->name, strerror(-err));
	return err;
}

static void close_server(struct server *s)
{
	if (s->agent.in >= 0)
		close(s->agent.in);
	if (s->agent.out >= 0)
		close(s->agent.out);
	s->agent.in = s->agent.out = -1;
}

#define LOOK_MS 20

/* A host can close its output long before ssh or srun ends: pvasrun waits for neither. */
static bool has_ended(const struct server *s, int *status, int64_t until)
{
	pid_t pid;

	while (!(pid = waitpid(s->agent.pid, status, __WALL | WNOHANG)) && now_ms() < until)
		usleep(LOOK_MS * 1000);
	return pid;
}

/* Its output has ended. */
static int report_end(struct server *s, int64_t until)
{
	static const char *const by[] = {
		[FAR_BY_SSH] = "ssh", [FAR_BY_SRUN] = "srun", [FAR_LOCALLY] = "pvas-memd",
	};
	int status = 0;

	if (s->len)
		keep_last(s);
	close_server(s);
	if (!has_ended(s, &status, until)) {
		report_error("--far-start %s: no server (%s has closed its output, and goes on%s%s)",
			     s->host->name, by[s->host->way], s->last[0] ? ": " : "", s->last);
		return STATUS_FAILED;
	}
	s->agent.pid = 0;
	report_error("--far-start %s: no server (%s ended with status %d%s%s)", s->host->name,
		     by[s->host->way], WIFEXITED(status) ? WEXITSTATUS(status) : -1,
		     s->last[0] ? ": " : "", s->last);
	return STATUS_FAILED;
}

static int report_late(const struct server *s, const struct options *opt)
{
	const char *colon = s->last[0] ? ": " : "";

	if (opt->timeout_at && now_ms() >= opt->timeout_at) {
		report_error("--timeout %s: the time is over, and no server listens on %s%s%s",
			     opt->timeout_text, s->host->name, colon, s->last);
		return STATUS_TIMEOUT;
	}
	report_error("--far-start %s: no server listens after %d seconds%s%s", s->host->name,
		     START_MS / 1000, colon, s->last);
	return STATUS_FAILED;
}

static int wait_for_one(struct server *s, int64_t until, const struct options *opt)
{
	struct pollfd out = { .fd = s->agent.out, .events = POLLIN };

	while (!s->port) {
		int64_t left = until - now_ms();

		if (left <= 0)
			return report_late(s, opt);
		if (poll(&out, 1, (int)left) == 1 && !read_some(s) && !s->port)
			return report_end(s, now_ms() + (left < END_MS ? left : END_MS));
		if (!s->port && s->noise > NOISE_MAX) {
			report_error("--far-start %s: it prints much, but not where a server listens",
				     s->host->name);
			return STATUS_FAILED;
		}
	}
	report_note("memory server on %s: %s port %u", s->host->name, s->host->address, s->port);
	return 0;
}

static int find_memd(char path[static PATH_MAX])
{
	int fd = companion_open("../memd/pvas-memd", "pvas-memd", path);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	report_error(fd == -EPERM ? "--far-start: other users could have changed %s (install all of PVAS)" :
				    "--far-start: %s is missing (install all of PVAS, with UCX)",
		     fd == -EPERM ? path : "pvas-memd");
	return -1;
}

int far_start(const struct options *opt, uint64_t ram, const char *line)
{
	unsigned int i, count = opt->far.nr_start;
	int64_t until = now_ms() + START_MS;
	char memd[PATH_MAX];
	int status;

	if (opt->timeout_at && opt->timeout_at < until)
		until = opt->timeout_at;
	if (find_memd(memd))
		return STATUS_FAILED;
	servers = calloc(count, sizeof(*servers));
	if (!servers) {
		report_error("--far-start: %s", strerror(ENOMEM));
		return STATUS_FAILED;
	}
	for (i = 0; i < count; i++) {
		struct server *s = &servers[nr_servers++];

		s->host = &opt->far.start[i];
		s->agent.in = s->agent.out = -1;
		if (start_one(s, memd, ram, line))
			return STATUS_FAILED;
	}
	for (i = 0; i < count; i++) {
		status = wait_for_one(&servers[i], until, opt);
		if (status)
			return status;
	}
	return 0;
}

int far_start_stores(char *text, size_t size)
{
	size_t at = 0;
	unsigned int i;

	for (i = 0; i < nr_servers; i++) {
		at += (size_t)snprintf(text + at, size - at, "%s%s:%u", i ? "," : "",
				       servers[i].host->address, servers[i].port);
		if (at >= size)
			return -ENAMETOOLONG;
	}
	return 0;
}

/* ---- while the job runs ---- */

/* That it ended is seen by the pager, which then misses a page. */
static void on_output(struct event *event, uint32_t what)
{
	struct server *s = (struct server *)event;

	(void)what;
	s->last[0] = '\0';
	if (!read_some(s))
		loop_forget(s->loop, event);
	if (s->last[0])
		report_note("memory server on %s: %s", s->host->name, s->last);
}

int far_start_watch(struct loop *loop)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < nr_servers && !err; i++) {
		servers[i].loop = loop;
		servers[i].event.ready = on_output;
		err = loop_watch(loop, &servers[i].event, EPOLLIN);
	}
	return err;
}

/* ---- end ---- */

/* The agent kills processes that have not ended by themselves when pvasrun has. */
static void wait_for_end(struct server *s, int64_t until)
{
	struct pollfd out = { .fd = s->agent.out, .events = POLLIN };
	int64_t left = until - now_ms();
	int status;

	while (s->agent.out >= 0 && left > 0) {
		if (poll(&out, 1, (int)left) == 1 && !read_some(s))
			break;
		left = until - now_ms();
	}
	has_ended(s, &status, until);
}

void far_start_end(void)
{
	int64_t until = now_ms() + END_MS;
	unsigned int i;

	for (i = 0; i < nr_servers; i++) {
		if (servers[i].agent.in >= 0)
			close(servers[i].agent.in);
		servers[i].agent.in = -1;
	}
	for (i = 0; i < nr_servers; i++) {
		if (servers[i].agent.pid > 0)
			wait_for_end(&servers[i], until);
		close_server(&servers[i]);
	}
	free(servers);
	servers = NULL;
	nr_servers = 0;
}
