// SPDX-License-Identifier: GPL-2.0-only
/* When a process was started. */
#include "start_time.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS 1000

/*
 * Another user's process is left alone. Root can signal all, and /proc/PID is root's if a
 * process is not dumpable, so neither would do.
 */
static bool is_own_process(pid_t pid)
{
	char path[32], line[256];
	bool own = false;
	unsigned int uid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Uid: %u", &uid) == 1)
			own = uid == getuid();
	fclose(f);
	return own;
}

/* Field 22 of /proc/PID/stat, see proc(5) */
static uint64_t read_stat(pid_t pid)
{
	char path[32], line[1024];
	unsigned long long started;
	const char *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	line[fread(line, 1, sizeof(line) - 1, f)] = '\0';
	fclose(f);
	end = strrchr(line, ')');	/* of the name, which may contain anything */
	if (!end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			   &started) != 1)
		return 0;
	return started;
}

static void __attribute__((noreturn)) read_in_child(pid_t pid, int to)
{
	uint64_t started = read_stat(pid);

	_exit(write(to, &started, sizeof(started)) != sizeof(started));
}

/* The kernel ends that wait by SIGKILL. */
static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Of several processes, one that gives no answer is enough to have waited for. */
static bool no_answer;

static uint64_t read_stat_in_time(pid_t pid)
{
	uint64_t started = START_TIME_UNKNOWN;
	struct pollfd answer = { .events = POLLIN };
	int ends[2];
	pid_t child;

	if (no_answer || pipe(ends) < 0)
		return START_TIME_UNKNOWN;
	child = fork();
	if (!child)
		read_in_child(pid, ends[1]);
	close(ends[1]);
	answer.fd = ends[0];
	if (child > 0 && (poll(&answer, 1, ANSWER_MS) != 1 ||
			  read(ends[0], &started, sizeof(started)) != sizeof(started)))
		started = START_TIME_UNKNOWN;
	close(ends[0]);
	no_answer = started == START_TIME_UNKNOWN;
	if (child > 0)
		end_child(child);
	return started;
}

uint64_t start_time_of(pid_t pid)
{
	if (pid == getpid())
		return read_stat(pid);
	return is_own_process(pid) ? read_stat_in_time(pid) : 0;
}
