// SPDX-License-Identifier: GPL-2.0-only
/* When a process was started. */
#include "start_time.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "proc_read.h"

#define ANSWER_MS 1000

/* Field 22 of /proc/PID/stat, see proc(5) */
static uint64_t read_stat(pid_t pid)
{
	unsigned long long started;
	char line[1024];
	const char *end;

	if (!proc_read(pid, "stat", line, sizeof(line)))
		return 0;
	end = strrchr(line, ')');	/* of the name, which may contain anything */
	if (!end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			   &started) != 1)
		return 0;
	return started;
}

/*
 * Another user's process is left alone. Root can signal all, and /proc/PID is root's if a
 * process is not dumpable, so neither would do.
 */
static bool is_own_process(pid_t pid)
{
	unsigned int uid;
	char text[4096];
	const char *at;

	if (!proc_read(pid, "status", text, sizeof(text)))
		return false;
	at = strstr(text, "\nUid:");
	return at && sscanf(at, " Uid: %u", &uid) == 1 && uid == getuid();
}

/* In the child: who reads these files may have to release the process's memory. */
static void answer_start(const void *about)
{
	const uint64_t started = read_stat(*(const pid_t *)about);

	if (write(STDIN_FILENO, &started, sizeof(started)) < 0)
		return;
}

static void answer_own(const void *about)
{
	const pid_t pid = *(const pid_t *)about;
	const uint64_t started = is_own_process(pid) ? read_stat(pid) : 0;

	if (write(STDIN_FILENO, &started, sizeof(started)) < 0)
		return;
}

static uint64_t ask_for_start(void (*answer)(const void *about), pid_t pid, int64_t *patience)
{
	uint64_t started = START_TIME_UNKNOWN;
	struct ask ask;

	if (*patience <= 0 || ask_begin(&ask, answer, &pid))
		return START_TIME_UNKNOWN;
	if (!ask_read(&ask, &started, sizeof(started), patience))
		started = START_TIME_UNKNOWN;
	ask_end(&ask);
	return started;
}

uint64_t start_time_of_any(pid_t pid, int64_t *patience)
{
	return ask_for_start(answer_start, pid, patience);
}

uint64_t start_time_of(pid_t pid)
{
	/* Of several processes, one that gives no answer is enough to have waited for. */
	static int64_t patience = ANSWER_MS;

	return pid == getpid() ? read_stat(pid) : ask_for_start(answer_own, pid, &patience);
}
