// SPDX-License-Identifier: GPL-2.0-only
/*
 * Small files of /proc/PID. The helper reads them: while one of them is read, the kernel holds the
 * process's memory, and who reads about one that is killed releases it, which can wait for its
 * file server. And stat waits while the process is in execve(2), which can hang in one. A
 * process may end at any time: values that can't be read stay zero.
 */
#include "ps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the directory: for that the kernel holds no memory. */
int64_t ps_owner(pid_t pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) ? -1 : (int64_t)st.st_uid;
}

int64_t ps_status_number(pid_t pid, const char *key)
{
	FILE *f = ps_reader_open(pid, "status");
	size_t len = strlen(key);
	int64_t value = -1;
	char line[256];
	char *word;

	if (!f)
		return -1;
	while (value < 0 && ps_next_line(f, line, sizeof(line))) {
		if (strncmp(line, key, len) || line[len] != ':')
			continue;
		for (word = strtok(line + len + 1, " \t\n"); word; word = strtok(NULL, " \t\n"))
			if (*word >= '0' && *word <= '9')
				value = strtoll(word, NULL, 10);
	}
	fclose(f);
	return value;
}

/* Without control characters, for it is printed on terminals. */
static void take_name(struct ps_task *task, const char *from, size_t len)
{
	size_t i;

	if (len >= sizeof(task->name))
		len = sizeof(task->name) - 1;
	for (i = 0; i < len; i++)
		task->name[i] = from[i] < ' ' || from[i] == 127 ? '?' : from[i];
	task->name[len] = 0;
}

/* Bytes above 127 can be control characters as well, as Latin 1 or as UTF-8. */
const char *ps_name_text(const char *name, char buf[static 64])
{
	size_t i;

	for (i = 0; i < 63 && name[i]; i++)
		buf[i] = (unsigned char)name[i] < 127 ? name[i] : '?';
	buf[i] = 0;
	return buf;
}

/* The fields after the name, which may itself contain parentheses: see proc(5). */
static void take_numbers(struct ps_task *task, const char *from)
{
	unsigned long long user, system, born;
	unsigned int threads;
	uint64_t hz = sysconf(_SC_CLK_TCK);

	if (sscanf(from, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %u %*d %llu",
		   &user, &system, &threads, &born) != 4)
		return;
	task->cpu_ms = (user + system) * 1000 / hz;
	task->threads = threads;
	task->born = born;
}

void ps_read_task(struct ps_task *task)
{
	FILE *f = ps_reader_open(task->pid, "stat");
	char text[1024];
	char *open, *close;
	size_t len;

	if (!f)
		return;
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[len] = 0;
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close < open)
		return;
	take_name(task, open + 1, close - open - 1);
	take_numbers(task, close + 1);
}
