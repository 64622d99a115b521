// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: an execve() that stays in the space ends the other threads of the task.
 *
 * The only way to end a thread and not its process is that it does so itself. glibc lets no
 * program block the signal by which setuid() reaches all threads: this sends it to them,
 * with a handler that ends the thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "child.h"
#include "rawsys.h"
#include "stay.h"

#define SIGNAL		USER_STAY_SIGNAL
#define WITH_RESTORER	0x04000000UL
#define STATUS_SIZE	(96UL << 10)	/* with 10000 groups: beside others the program leaves */
#define WAIT_BEFORE	1000	/* milliseconds; a new thread blocks all signals for a moment */

void user_stay_thread_end(void);

__asm__(".text\n\t"
	".hidden user_stay_thread_end\n\t"
	".globl user_stay_thread_end\n\t"
	".type user_stay_thread_end, @function\n"
	"user_stay_thread_end:\n\t"
	"movl $60, %eax\n\t"		/* exit */
	"xorl %edi, %edi\n\t"
	"syscall\n\t"
	".size user_stay_thread_end, . - user_stay_thread_end\n");

/* The thread pointer is the task's: functions that depend on the locale can't be used. */
static pid_t number_of(const char *digits)
{
	pid_t n = 0;

	for (; *digits >= '0' && *digits <= '9'; digits++)
		n = n * 10 + *digits - '0';
	return n;
}

static int64_t now_ms(void)
{
	struct timespec t = { 0, 0 };

	pvas_raw2(__NR_clock_gettime, CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void pause_1ms(void)
{
	const struct timespec t = { 0, 1000000 };

	pvas_raw2(__NR_nanosleep, &t, NULL);
}

/* The status of a thread. Its length; 0: it is gone; -errno */
static long read_status(int dir, const char *name, char *text, size_t size)
{
	char path[32];
	long fd, n;

	strncpy(path, name, sizeof(path) - 8);
	path[sizeof(path) - 8] = 0;
	strcat(path, "/status");
	*text = 0;
	fd = pvas_raw4(__NR_openat, dir, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	n = pvas_raw_pread((int)fd, text, size - 1, 0);
	pvas_raw1(__NR_close, fd);
	text[n < 0 ? 0 : n] = 0;
	return n < 0 ? 0 : n;
}

/* In a line such as "\nSigBlk:\t0000000000000000": the digit that has the signal's bit */
static int has_signal(const char *status, const char *set)
{
	const char *line = strstr(status, set);
	char c = line && strlen(line) > 24 ? line[9 + 15 - (SIGNAL - 1) / 4] : '0';
	int digit = c >= 'a' ? c - 'a' + 10 : c - '0';

	return digit >> (SIGNAL - 1) % 4 & 1;
}

/* It is in no call that lasts, such as vfork(), nor stopped, and does not block the signal. */
static int is_ready(int dir, const char *name)
{
	char text[STATUS_SIZE], *at;
	long n = read_status(dir, name, text, sizeof(text));

	if (n <= 0)
		return !n;
	at = strstr(text, "\nState:\t");
	return at && !strchr("DTt", at[8]) && strstr(text, "\nSigCgt:") && !has_signal(text, "\nSigBlk:");
}

/*
 * Calls @function for each other thread until it returns 0, but not after @until. Returns how many
 * are left, or -errno.
 */
static int each_other(int dir, int (*function)(int dir, const char *name, int64_t until),
		      int64_t until)
{
	const long self = pvas_raw0(__NR_gettid);
	char buf[2048] __attribute__((aligned(8)));
	int count = 0;
	long n, at;

	pvas_raw3(__NR_lseek, dir, 0, 0);
	while ((n = pvas_raw3(__NR_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (at = 0; at < n; at += ((struct dirent64 *)(buf + at))->len) {
			const char *name = ((struct dirent64 *)(buf + at))->name;

			if (*name != '.' && number_of(name) != self)
				count += function(dir, name, until);
		}
	}
	return n < 0 ? (int)n : count;
}

/*
 * One after the other: threads that start children without pause are hardly ever all ready at the
 * same moment. Later they come out of such calls, too.
 */
static int wait_until_ready(int dir, const char *name, int64_t until)
{
	int ready = is_ready(dir, name);

	while (!ready && now_ms() < until) {
		pause_1ms();
		ready = is_ready(dir, name);
	}
	return !ready;
}

/* Signals queue up: not another one while it has one. Returns 1: it is still there. */
static int end(int dir, const char *name, int64_t until)
{
	char text[STATUS_SIZE];

	(void)until;
	if (read_status(dir, name, text, sizeof(text)) <= 0 || !has_signal(text, "\nSigPnd:"))
		pvas_raw3(__NR_tgkill, pvas_raw0(__NR_getpid), number_of(name), SIGNAL);
	return 1;
}

static int open_threads(void)
{
	int proc = user_program_proc(), dir;

	dir = (int)pvas_raw4(__NR_openat, proc, "self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (proc >= 0 && proc != user_proc_fd())
		pvas_raw1(__NR_close, proc);
	return dir;
}

int user_stay_may_end_threads(void)
{
	int dir = open_threads(), left;

	if (dir < 0)
		return 0;
	left = each_other(dir, wait_until_ready, now_ms() + WAIT_BEFORE);
	pvas_raw1(__NR_close, dir);
	return !left;
}

/* Until they have ended, as an execve() does */
int user_stay_end_threads(void)
{
	const uint64_t act[4] = {
		(uint64_t)user_stay_thread_end, WITH_RESTORER, (uint64_t)user_stay_thread_end,
	};
	int dir = open_threads(), left = -1;

	pvas_raw4(__NR_rt_sigaction, SIGNAL, act, NULL, 8);
	while (dir >= 0 && (left = each_other(dir, end, 0)) > 0)
		pause_1ms();
	pvas_raw1(__NR_close, dir);
	return !left;
}
