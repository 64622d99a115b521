// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: an execve() that stays in the space: signals and timers, as an execve() leaves
 * them. The caller is the only thread of its process, and all signals are blocked.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "child.h"
#include "rawsys.h"
#include "stay.h"

#define NR_SIGNALS	64
#define FIRST_QUEUED	32
#define SET(sig)	(1UL << ((sig) - 1))
/* By default */
#define IGNORED		(SET(SIGCHLD) | SET(SIGCONT) | SET(SIGURG) | SET(SIGWINCH))

/* ---- actions ---- */

/* The next one of a set, without waiting. Its number, or less than 1 */
static long take(uint64_t set, siginfo_t *info)
{
	const struct timespec none = { 0, 0 };

	return pvas_raw4(__NR_rt_sigtimedwait, &set, info, &none, sizeof(set));
}

static int is_pending(int sig)
{
	uint64_t pending = 0;

	pvas_raw2(__NR_rt_sigpending, &pending, sizeof(pending));
	return !!(pending & SET(sig));
}

/*
 * To have a signal ignored, also as its default, discards it if it is pending: this puts it back.
 * The kernel's structure, with the mask at its end
 */
static void set_action(int sig, uint64_t handler)
{
	const uint64_t act[4] = { handler };
	siginfo_t info;
	int pending = 0;

	if (handler == (uint64_t)SIG_IGN || (SET(sig) & IGNORED))
		pending = take(SET(sig), &info) > 0;
	pvas_raw4(__NR_rt_sigaction, sig, act, NULL, 8);
	if (pending)
		pvas_raw3(__NR_rt_sigqueueinfo, pvas_raw0(__NR_getpid), sig, &info);
}

/* One that is ignored stays so. If many of it are pending, flags stay that mean nothing. */
static void reset_action(int sig)
{
	uint64_t act[4] = { 0 };
	int ignored;

	if (pvas_raw4(__NR_rt_sigaction, sig, NULL, act, 8))
		return;
	ignored = act[0] == (uint64_t)SIG_IGN;
	if ((act[0] == (uint64_t)SIG_DFL || ignored) && !act[1] && !act[3])
		return;
	if (!ignored || sig < FIRST_QUEUED || !is_pending(sig))
		set_action(sig, ignored ? (uint64_t)SIG_IGN : (uint64_t)SIG_DFL);
}

/* While it opens files, which may hang: signals that run no code of the program's */
void user_stay_admit_signals(uint64_t mask)
{
	uint64_t act[4], blocked = ~0ULL;
	int sig;

	for (sig = 1; sig <= NR_SIGNALS; sig++)
		if (!(mask & SET(sig)) && sig != USER_STAY_SIGNAL &&
		    !pvas_raw4(__NR_rt_sigaction, sig, NULL, act, 8) && act[0] == (uint64_t)SIG_DFL)
			blocked &= ~SET(sig);
	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, 8);
}

void user_stay_block_signals(void)
{
	const uint64_t all = ~0ULL;

	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
}

static void reset_actions(void)
{
	const stack_t none = { .ss_flags = SS_DISABLE };
	int sig;

	for (sig = 1; sig <= NR_SIGNALS; sig++)
		reset_action(sig);
	pvas_raw2(__NR_sigaltstack, &none, NULL);
}

/* ---- timers ---- */

/* Without /proc/self/timers the kernel's first numbers are tried. */
static int delete_timers(void)
{
	struct user_proc_dir proc = user_program_proc(0);
	char text[4096], *line;
	int found = 0, id;
	long fd, n = 0;

	fd = pvas_raw4(__NR_openat, proc.fd, "self/timers", O_RDONLY | O_CLOEXEC, 0);
	user_program_close_proc(&proc);
	if (fd < 0) {
		for (id = 0; id < 256; id++)
			pvas_raw1(__NR_timer_delete, id);
		return 1;
	}
	do {
		n = pvas_raw_pread((int)fd, text, sizeof(text) - 1, 0);
		text[n < 0 ? 0 : n] = 0;
		line = text;
		id = -1;
		while ((line = strstr(line, "ID: ")) && strchr(line, '\n')) {
			for (id = 0, line += 4; *line >= '0' && *line <= '9'; line++)
				id = id * 10 + *line - '0';
			pvas_raw1(__NR_timer_delete, id);
			found = 1;
		}
	} while (n == sizeof(text) - 1 && id >= 0);
	pvas_raw1(__NR_close, fd);
	return found;
}

/* ---- pending signals ---- */

static int is_mark(const siginfo_t *info)
{
	return info->si_code == SI_QUEUE && info->si_value.sival_ptr == is_mark;
}

/* Behind all that are pending now. Those below the first real-time signal are pending only once. */
static int put_mark(long pid, int sig)
{
	siginfo_t info;

	if (sig < FIRST_QUEUED)
		return 1;
	memset(&info, 0, sizeof(info));
	info.si_code = SI_QUEUE;
	info.si_value.sival_ptr = is_mark;
	return !pvas_raw3(__NR_rt_sigqueueinfo, pid, sig, &info);
}

/* The others are put back, in their order. */
static void drop_timer_signals(int sig)
{
	long pid = pvas_raw0(__NR_getpid);
	siginfo_t info;

	if (!put_mark(pid, sig))
		return;
	while (take(SET(sig), &info) > 0 && !is_mark(&info)) {
		if (info.si_code != SI_TIMER)
			pvas_raw3(__NR_rt_sigqueueinfo, pid, sig, &info);
		if (sig < FIRST_QUEUED)
			break;
	}
}

static void drop_all_timer_signals(void)
{
	int sig;

	for (sig = 1; sig <= NR_SIGNALS; sig++)
		if (is_pending(sig))
			drop_timer_signals(sig);
}

void user_stay_reset_signals(void)
{
	siginfo_t info;

	reset_actions();
	/* The old program would have had to do something on it. */
	while (take(SET(USER_STAY_SIGNAL), &info) > 0)
		;
	if (delete_timers())
		drop_all_timer_signals();
}
