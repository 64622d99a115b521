// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: read a file of /proc that can wait for an execve() of the process: see sizes.c.
 *
 * The kernel lets only a fatal signal end that wait, and a thread of ours can't be given one. So a
 * child that shares our memory and descriptors reads, and is killed when it takes too long.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rawsys.h"
#include "worker.h"

#define STACK_SIZE	(16 << 10)
#define LOOK_MS		20
#define LOOKS		5	/* in a row */

struct question {
	const struct user_space *u;
	int fd;
	char *text;
	size_t size;
	long n;
	pid_t pid;	/* the kernel makes it 0 at the end */
};

/* Its errno and thread pointer are those of the thread that waits. */
static int read_and_end(void *arg)
{
	struct question *q = arg;

	pvas_raw2(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL);
	if ((pid_t)pvas_raw0(__NR_getppid) == q->u->owner)
		q->n = pvas_raw3(__NR_read, q->fd, q->text, q->size);
	pvas_raw1(__NR_exit_group, 0);
	return 0;
}

/* R, D, T and others, see proc_pid_status(5); 0 if that is not known */
static char state_of(pid_t pid)
{
	char text[512];
	const char *line;

	user_proc_read(pid, "status", text, sizeof(text));
	line = strstr(text, "\nState:\t");
	return line ? line[8] : 0;
}

/*
 * It may wait for a processor for any time. In D it waits for the execve(). It can also have been
 * stopped with the launcher's process group, and the launcher alone been continued: that says
 * nothing. No state in which it can be outlasts SIGKILL.
 */
static void wait_or_kill(struct question *q, pid_t pid)
{
	const struct timespec look = { .tv_nsec = LOOK_MS * 1000000L };
	int looks = 0;
	char state = 0, last;
	pid_t seen;

	while (looks < LOOKS && (seen = __atomic_load_n(&q->pid, __ATOMIC_ACQUIRE))) {
		if (pvas_raw4(__NR_futex, &q->pid, FUTEX_WAIT, seen, &look) != -ETIMEDOUT)
			continue;
		last = state;
		state = state_of(pid);
		looks = state != 'D' && state != 'T' ? 0 : state == last ? looks + 1 : 1;
	}
	if (looks == LOOKS) {
		pvas_raw2(__NR_kill, pid, SIGKILL);
		q->n = state == 'D' ? -ETIME : -EAGAIN;
	}
	while (pvas_raw4(__NR_wait4, pid, NULL, __WCLONE, NULL) == -EINTR)
		;
}

/* Its descriptors are ours: none is closed by its end. */
static void read_by_child(struct question *q)
{
	char stack[STACK_SIZE] __attribute__((aligned(16)));
	const pid_t pid = clone(read_and_end, stack + sizeof(stack), CLONE_VM | CLONE_FILES |
				CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID, q, &q->pid, NULL,
				&q->pid);

	if (pid > 0)
		wait_or_kill(q, pid);
}

/* Can that thread's process be in an execve()? */
static int can_exec(const struct user_part *p, pid_t tid)
{
	return user_exec_any(p) || !p->pid || !user_is_thread_of(p->pid, tid);
}

ssize_t user_ask(const struct user_space *u, const struct user_part *p, pid_t tid,
		 const char *name, char *text, size_t size)
{
	struct question q = { .u = u, .text = text, .size = size - 1, .n = -EAGAIN };

	if (!can_exec(p, tid))
		return user_proc_read(tid, name, text, size);
	*text = 0;
	q.fd = user_proc_open(tid, name, O_RDONLY);
	if (q.fd < 0)
		return q.fd;
	read_by_child(&q);
	close(q.fd);
	text[q.n < 0 ? 0 : q.n] = 0;
	return q.n;
}
