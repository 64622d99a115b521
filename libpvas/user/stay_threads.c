// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: an execve() that stays in the space ends the other threads of the task.
 *
 * The only way to end a thread and not its process is that it does so itself. The signal gets all
 * threads into the handler, where they wait. When all are there, none is in a call that lasts, or
 * can begin one, and that is the point of no return: they end. Or they go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "child.h"
#include "rawsys.h"
#include "stay.h"
#include "worker.h"

#define SIGNAL		USER_STAY_SIGNAL
#define STATUS_SIZE	(96UL << 10)	/* with 10000 groups */
#define WAIT_MS		1000	/* a new thread blocks all signals for a moment */
#define OPEN_MS		200	/* a file server may never answer */

/* The thread pointer is not the library's: functions that depend on the locale can't be used. */
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

/* A file of a thread. Its length; 0: it is gone; -errno */
static long read_file(int dir, const char *name, const char *file, char *text, size_t size)
{
	char path[32];
	long fd, n;

	strncpy(path, name, sizeof(path) - 10);
	path[sizeof(path) - 10] = 0;
	strcat(path, file);
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

/* The kernel's, for rt_tgsigqueueinfo(): not to be taken for the library's own */
struct signal_value {
	int signo, error, code, pad;
	pid_t pid;
	uid_t uid;
	void *value;
	char rest[96];
};

static long call_thread(struct user_part *p, pid_t tid)
{
	struct signal_value info = {
		.signo = SIGNAL, .code = SI_QUEUE, .pid = p->pid, .value = p,
	};

	return pvas_raw4(__NR_rt_tgsigqueueinfo, p->pid, tid, SIGNAL, &info);
}

/* ---- stacks ---- */

/* The last but one of the words "NR ARGUMENTS... SP PC" in hexadecimal; 0: there are none */
static uint64_t sp_of(char *text)
{
	char *at = text + strlen(text), *c;
	uint64_t sp = 0;
	int blanks = 0;

	while (at > text && blanks < 2)
		blanks += *--at == ' ';
	for (c = at + 1; blanks == 2 && *c && *c != ' '; c++)
		if (*c != 'x')
			sp = sp << 4 | (uint64_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
	return sp;
}

/* A sandbox may forbid to ask. */
static int is_mapped(uint64_t at)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)at, 1 };

	return pvas_raw6(__NR_process_vm_readv, pvas_raw0(__NR_gettid), (long)&here, 1,
			 (long)&there, 1, 0) != -EFAULT;
}

/*
 * Has a thread that waits room for the handler on its stack, as far as that can be known? @call:
 * its /proc/self/task/TID/syscall. The first thread's stack grows.
 */
static int has_stack(const struct user_part *p, char *call)
{
	uint64_t sp = sp_of(call);

	return !sp || (sp <= p->layout.stack && p->layout.stack - sp < USER_STAY_FIRST_STACK) ||
	       (is_mapped(sp - USER_STAY_FRAME) && is_mapped(sp - USER_STAY_FRAME / 2));
}

/* Does it wait for a child's execve()? Then glibc blocks all signals, but not for long. */
static int makes_child(const char *call)
{
	const pid_t nr = number_of(call);

	return nr == __NR_clone || nr == __NR_clone3 || pvas_is_vfork(nr);
}

/*
 * Returns -ENOSPC if its stack has no room. If it runs, the kernel doesn't tell. Signals queue up:
 * not another one while it has one. Nor while it blocks them for long: if it leaves, its program
 * would inherit the signal, and die of it.
 */
static int call_other(struct user_part *p, int dir, const char *name)
{
	char status[STATUS_SIZE], call[256];
	long known;

	if (read_file(dir, name, "/status", status, sizeof(status)) <= 0 ||
	    has_signal(status, "\nSigPnd:"))
		return 0;
	known = read_file(dir, name, "/syscall", call, sizeof(call));
	if (known > 0 && *call == 'r')
		return 0;
	if (has_signal(status, "\nSigBlk:") && (known <= 0 || !makes_child(call)))
		return 0;
	if (known > 0 && !has_stack(p, call))
		return -ENOSPC;
	return call_thread(p, number_of(name)) == -EPERM ? -EPERM : 0;
}

/* Call all but @self. Returns how many there are, or -errno. */
static int call_others(struct user_part *p, int dir, pid_t self)
{
	char buf[2048] __attribute__((aligned(8)));
	int count = 0, err;
	long n, at;

	pvas_raw3(__NR_lseek, dir, 0, 0);
	while ((n = pvas_raw3(__NR_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (at = 0; at < n; at += ((struct dirent64 *)(buf + at))->len) {
			const char *name = ((struct dirent64 *)(buf + at))->name;

			if (*name == '.' || number_of(name) == self)
				continue;
			count++;
			err = call_other(p, dir, name);
			if (err)
				return err;
		}
	}
	return n < 0 ? (int)n : count;
}

static int open_threads(void)
{
	struct user_proc_dir proc = user_program_proc(0);
	int dir;

	dir = (int)pvas_raw4(__NR_openat, proc.fd, "self/task",
			     O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	user_program_close_proc(&proc);
	/* With one descriptor less. By another /proc, only the task's own threads get signals. */
	if (dir < 0)
		dir = (int)pvas_raw4(__NR_openat, AT_FDCWD, "/proc/self/task",
				     O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return dir;
}

int user_stay_call_others(struct user_part *p, pid_t self)
{
	int dir = user_proc_open(p->pid, "task", O_RDONLY | O_DIRECTORY), count;

	if (dir < 0)
		return dir;
	count = call_others(p, dir, self);
	pvas_raw1(__NR_close, dir);
	return count;
}

/* Twice: one that came later may have made another before. */
static int all_are_parked(struct user_stay *e, int count)
{
	return count == __atomic_load_n(&e->part->nr_parked, __ATOMIC_ACQUIRE) &&
	       user_stay_ask_for_others(e) == count;
}

int user_stay_park_others(struct user_stay *e)
{
	int64_t until = now_ms() + WAIT_MS;
	int count, parked = 0, parks = PARK_NOT;

	/* The signal would kill the program of one that leaves. */
	if (!__atomic_compare_exchange_n(&e->part->parks, &parks, PARK_WAIT, 0, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return 0;
	do {
		count = user_stay_ask_for_others(e);
		parked = count >= 0 && all_are_parked(e, count);
		if (!parked)
			pause_1ms();
	} while (!parked && count >= 0 && now_ms() < until);
	return parked;
}

void user_stay_release_others(struct user_part *p)
{
	int parks = PARK_WAIT;

	__atomic_compare_exchange_n(&p->parks, &parks, PARK_NOT, 0, __ATOMIC_ACQ_REL,
				    __ATOMIC_RELAXED);
}

void user_stay_opens(struct user_part *p)
{
	__atomic_store_n(&p->opens_since, now_ms(), __ATOMIC_RELAXED);
	__atomic_store_n(&p->parks, PARK_OPENS, __ATOMIC_RELEASE);
}

int user_stay_opened(struct user_part *p)
{
	int parks = PARK_OPENS;

	return __atomic_compare_exchange_n(&p->parks, &parks, PARK_WAIT, 0, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Nobody waits for a program whose server doesn't answer. */
static void let_go_in_time(struct user_part *p)
{
	int parks = PARK_OPENS;

	if (now_ms() - __atomic_load_n(&p->opens_since, __ATOMIC_RELAXED) >= OPEN_MS)
		__atomic_compare_exchange_n(&p->parks, &parks, PARK_NOT, 0, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
}

static int has_to_wait(int parks)
{
	return parks == PARK_WAIT || parks == PARK_OPENS || parks == PARK_END;
}

/* In the handler of another thread. The first one may have to go on with the execve(). */
void user_stay_park(struct user_part *p)
{
	int is_first = p->pid == pvas_raw0(__NR_gettid), parks;

	parks = __atomic_load_n(&p->parks, __ATOMIC_ACQUIRE);
	if (!has_to_wait(parks))
		return;
	__atomic_add_fetch(&p->nr_parked, 1, __ATOMIC_ACQ_REL);
	while (has_to_wait(parks)) {
		if (is_first && __atomic_load_n(&p->handed, __ATOMIC_ACQUIRE))
			break;
		while (parks == PARK_END)
			pvas_raw1(__NR_exit, 0);
		pause_1ms();
		if (parks == PARK_OPENS)
			let_go_in_time(p);
		parks = __atomic_load_n(&p->parks, __ATOMIC_ACQUIRE);
	}
	__atomic_sub_fetch(&p->nr_parked, 1, __ATOMIC_ACQ_REL);
}

/* All are parked, but for the one that has handed over to this one, which ends, too. */
void user_stay_end_others(struct user_part *p)
{
	int dir;

	/* There were some before, for the program: now they can only be short for a moment. */
	while ((dir = open_threads()) < 0)
		pause_1ms();
	__atomic_store_n(&p->parks, PARK_END, __ATOMIC_RELEASE);
	while (call_others(p, dir, (pid_t)pvas_raw0(__NR_gettid)) > 0)
		pause_1ms();
	pvas_raw1(__NR_close, dir);
	p->nr_parked = 0;
	__atomic_store_n(&p->parks, PARK_NOT, __ATOMIC_RELEASE);
}
