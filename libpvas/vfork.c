// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Start a process by vfork: for the kernel backend, and in parts for the user backend.
 *
 * The child shares the launcher's memory until it execs (CLONE_VM | CLONE_VFORK): so
 * starting it costs a large launcher no more than a small one, and it returns errors
 * in a variable. Because it shares the memory, it runs on a stack of its own, blocks
 * all signals until no handler of the launcher is left, and does not use errno, which
 * belongs to the sleeping parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend.h"
#include "rawsys.h"

#define STACK_SIZE	(256UL << 10)	/* attr.setup runs on it */
#define GUARD		4096UL
#define NSIG_BYTES	8		/* the kernel's signal set: 64 bits */
#define LAST_SIGNAL	64

enum stage { STAGE_PREPARE, STAGE_CWD, STAGE_SETUP, STAGE_ENTER, STAGE_EXEC };

/* The argument of the child */
struct child {
	struct pvas_spawn_call *call;
	int (*enter)(struct pvas_spawn_call *call);
};

/* ---- in the child ---- */

struct kernel_sigaction {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

/* By the system call, because libc's function excludes its own internal signals. */
static void default_signals(void)
{
	const struct kernel_sigaction dfl = { .handler = (void *)SIG_DFL };
	int sig;

	for (sig = 1; sig <= LAST_SIGNAL; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			pvas_raw4(__NR_rt_sigaction, sig, &dfl, NULL, NSIG_BYTES);
}

static void unblock_signals(void)
{
	const uint64_t none = 0;

	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &none, NULL, NSIG_BYTES);
}

/*
 * Make the descriptors @want 0, 1 and 2. Those that are among the three are first
 * duplicated elsewhere, or they could be overwritten before they are used.
 */
static int place_fds(const int want[3])
{
	int fds[3];
	long fd;
	int i;

	for (i = 0; i < 3; i++) {
		fds[i] = want[i];
		if (want[i] < 0 || want[i] > 2)
			continue;
		fd = pvas_raw3(__NR_fcntl, want[i], F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return fd;
		fds[i] = fd;
	}
	for (i = 0; i < 3; i++) {
		if (fds[i] < 0)
			continue;
		fd = pvas_raw3(__NR_dup3, fds[i], i, 0);
		if (fd < 0)
			return fd;
	}
	return 0;
}

static int set_no_aslr(void)
{
	long persona = pvas_raw1(__NR_personality, ~0U);

	if (persona >= 0)
		persona = pvas_raw1(__NR_personality, persona | ADDR_NO_RANDOMIZE);
	return persona < 0 ? (int)persona : 0;
}

int pvas_child_prepare(struct pvas_spawn_call *call)
{
	int err;

	call->stage = STAGE_PREPARE;
	default_signals();
	if (call->attr.flags & PVAS_SPAWN_NO_ASLR) {
		err = set_no_aslr();
		if (err)
			return err;
	}
	if (call->attr.set_fds) {
		err = place_fds(call->attr.fds);
		if (err)
			return err;
	}
	if (call->attr.cwd) {
		call->stage = STAGE_CWD;
		err = pvas_raw1(__NR_chdir, call->attr.cwd);
		if (err)
			return err;
	}
	if (call->attr.setup) {
		call->stage = STAGE_SETUP;
		err = call->attr.setup(call->attr.setup_arg);
		if (err < 0)
			return err;
	}
	call->stage = STAGE_ENTER;
	return 0;
}

static int child_main(void *arg)
{
	struct child *c = arg;
	struct pvas_spawn_call *call = c->call;
	int err;

	err = pvas_child_prepare(call);
	if (!err)
		err = c->enter(call);
	if (!err) {
		call->stage = STAGE_EXEC;
		unblock_signals();
		/* From here on a signal may end the child, as it may end any starting program. */
		call->err = 0;
		err = pvas_raw3(__NR_execve, call->path, call->argv, call->envp);
	}
	call->err = err;
	pvas_raw1(__NR_exit_group, 127);
	return 127;
}

/* ---- in the launcher ---- */

/* The child may be gone already, if the application ignores SIGCHLD or waits for any child. */
void pvas_reap(pid_t pid)
{
	while (pvas_raw4(__NR_wait4, pid, NULL, __WALL, NULL) == -EINTR)
		;
}

void *pvas_stack_top(const struct pvas_space *space)
{
	return (char *)space->stack + GUARD + STACK_SIZE;
}

/* Once for each space and not for each task: a mapping costs more than the clone. */
int pvas_get_stack(struct pvas_space *space)
{
	void *p;

	if (space->stack)
		return 0;
	p = mmap(NULL, STACK_SIZE + GUARD, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (p == MAP_FAILED)
		return pvas_fail(-ENOMEM, "no memory for a stack");
	mprotect(p, GUARD, PROT_NONE);
	space->stack = p;
	return 0;
}

void pvas_free_stack(struct pvas_space *space)
{
	if (space->stack)
		munmap(space->stack, STACK_SIZE + GUARD);
	space->stack = NULL;
}

int pvas_spawn_explain(const struct pvas_spawn_call *call, int err)
{
	if (call->stage == STAGE_CWD)
		return pvas_fail(err, "can't change to directory %s", call->attr.cwd);
	if (call->stage == STAGE_SETUP)
		return pvas_fail(err, "the setup function failed");
	if (call->stage == STAGE_PREPARE)
		return pvas_fail(err, err == -ECHILD ? "killed before it could start" :
				 "can't set standard input, output or error");
	if (call->stage == STAGE_ENTER && err == -EBUSY)
		return pvas_fail(err, "partition %u is taken", call->index);
	if (call->stage == STAGE_ENTER && err == -ENOSPC)
		return pvas_fail(err, "all partitions are taken");
	if (call->stage == STAGE_ENTER && err == -ENOENT)
		return pvas_fail(-ESRCH, "the space has ended");
	return err;
}

static pid_t start_child(struct child *c)
{
	int saved = errno;
	pid_t pid;

	pid = clone(child_main, pvas_stack_top(c->call->space),
		    CLONE_VM | CLONE_VFORK | SIGCHLD, c);
	if (pid < 0)
		pid = -errno;
	errno = saved;
	return pid;
}

int pvas_vfork_exec(struct pvas_spawn_call *call, int (*enter)(struct pvas_spawn_call *call))
{
	struct child c = { .call = call, .enter = enter };
	const uint64_t all = ~0ULL;
	uint64_t mask;

	call->err = -ECHILD;	/* holds if the child is killed before it can report */
	call->stage = STAGE_PREPARE;
	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &mask, NSIG_BYTES);
	call->pid = start_child(&c);
	if (call->pid > 0 && call->err)
		pvas_reap(call->pid);
	pvas_raw4(__NR_rt_sigprocmask, SIG_SETMASK, &mask, NULL, NSIG_BYTES);

	if (call->pid < 0)
		return pvas_fail(call->pid, "can't make a process");
	return call->err ? pvas_spawn_explain(call, call->err) : 0;
}
