// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The program's threads are suspended while a page is put in place, as in the paper (section 2).
 * Each that runs gets a signal, whose handler waits. Those that wait in the kernel, for a page for
 * example, are left alone: they can't touch the page, and no call of theirs is interrupted.
 *
 * DLM must not let a thread see a page that is there in part. Here the kernel sees to that, and
 * all of this only costs the time that it costs DLM. So whenever it can't be done at once it is
 * not done:
 *
 *  - threads that block the signal, as the pager's and the stores' do, go on;
 *  - nobody waits for a thread that is not in the handler after ACK_MS;
 *  - a thread goes on by itself after HOLD_MS: it may have a lock, of malloc() for example, that a
 *    store needs before the exchange can end.
 *
 * Each suspension has an odd number, in the signal's value: a signal that comes late does nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "far.h"
#include "protocol.h"
#include "store.h"

enum { ACK_MS = 20, HOLD_MS = 100 };

static uint32_t number;		/* odd: threads are suspended */
static uint32_t stopped;	/* how many are */
static int signo;		/* 0: no signal */
static int tasks = -1;		/* /proc/self/task */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* ---- a thread of the program ---- */

/* While *@word is @value, and not after @until */
static void wait_while(const uint32_t *word, uint32_t value, int64_t until)
{
	int64_t left = until - now_ms();
	struct timespec t = { left / 1000, left % 1000 * 1000000 };

	if (left > 0)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &t, NULL, 0);
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	uint32_t mine = (uint32_t)info->si_value.sival_int;
	int64_t until = now_ms() + HOLD_MS;
	int err = errno;

	(void)sig;
	(void)context;
	if (info->si_code == SI_QUEUE && __atomic_load_n(&number, __ATOMIC_ACQUIRE) == mine) {
		__atomic_add_fetch(&stopped, 1, __ATOMIC_ACQ_REL);
		syscall(SYS_futex, &stopped, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		while (__atomic_load_n(&number, __ATOMIC_ACQUIRE) == mine && now_ms() < until)
			wait_while(&number, mine, until);
	}
	errno = err;
}

/* ---- the thread that exchanges pages ---- */

/* The beginning of a thread's file; "" if it is gone */
static void read_file(const char *tid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", tid, name);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
}

static bool runs(const char *tid)
{
	char text[16];

	read_file(tid, "syscall", text, sizeof(text));
	return !strncmp(text, "running", 7);
}

static bool blocks_it(const char *tid)
{
	char text[2048];
	const char *mask;

	read_file(tid, "status", text, sizeof(text));
	mask = strstr(text, "SigBlk:\t");
	return !mask || strtoull(mask + 8, NULL, 16) >> (signo - 1) & 1;
}

static bool send(const char *tid)
{
	siginfo_t info = { .si_signo = signo, .si_code = SI_QUEUE };

	info.si_pid = far.pid;
	info.si_uid = getuid();
	info.si_value.sival_int = (int)number;
	return !syscall(SYS_rt_tgsigqueueinfo, far.pid, atoi(tid), signo, &info);
}

/* As getdents64(2) has it. Not readdir(): malloc()'s lock may be a suspended thread's. */
struct entry {
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};

static uint32_t signal_all(void)
{
	char list[4096] __attribute__((aligned(8)));
	uint32_t sent = 0;
	const struct entry *e;
	long n, at;

	lseek(tasks, 0, SEEK_SET);
	while ((n = syscall(SYS_getdents64, tasks, list, sizeof(list))) > 0)
		for (at = 0; at < n; at += e->len) {
			e = (const struct entry *)(list + at);
			if (*e->name != '.' && runs(e->name) && !blocks_it(e->name))
				sent += send(e->name);
		}
	return sent;
}

void far_suspend(void)
{
	int64_t until = now_ms() + ACK_MS;
	uint32_t sent, now;

	if (!signo)
		return;
	__atomic_store_n(&stopped, 0, __ATOMIC_RELEASE);
	__atomic_add_fetch(&number, 1, __ATOMIC_ACQ_REL);
	sent = signal_all();
	while ((now = __atomic_load_n(&stopped, __ATOMIC_ACQUIRE)) < sent && now_ms() < until)
		wait_while(&stopped, now, until);
	far.count.suspended += now;
}

void far_resume(void)
{
	if (!signo)
		return;
	__atomic_add_fetch(&number, 1, __ATOMIC_ACQ_REL);
	syscall(SYS_futex, &number, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* The last real-time signal that the program has not taken, or the one of the pager before */
static int find_signal(void)
{
	struct sigaction now;
	int sig;

	for (sig = SIGRTMAX; sig >= SIGRTMIN; sig--)
		if (!sigaction(sig, NULL, &now) &&
		    (now.sa_handler == SIG_DFL || now.sa_sigaction == on_signal))
			return sig;
	return 0;
}

int far_suspend_open(void)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	int sig = far.rows ? 0 : find_signal();

	/* A job's tasks are processes of their own, with handlers of their own. */
	if (far.rows)
		return 0;
	if (!sig)
		return far_fail(-EBUSY, "the program has taken all real-time signals: none is left to suspend its threads");
	tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tasks < 0)
		return far_fail(-errno, "/proc/self/task: %s", strerror(errno));
	action.sa_sigaction = on_signal;
	sigfillset(&action.sa_mask);
	sigaction(sig, &action, NULL);
	signo = sig;
	return 0;
}

/* Nobody is suspended. A signal that is still on its way must find the handler, so that stays. */
void far_suspend_close(void)
{
	if (tasks >= 0)
		close(tasks);
	tasks = -1;
	signo = 0;
}
